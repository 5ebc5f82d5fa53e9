//! The last layer: its units are the classes, which need no matching, and a client counts for each class by how many
//! samples of it the client has.
//!
//! ```text
//! row c of the result = Σ_k h_k[c] / (Σ_i h_i[c]) · row c of client k
//! ```

use crate::matching::Rows;

/// The share of each client in each class, by the clients' label counts; a class that no client has is shared by
/// `weights`, which sum to 1.
pub fn class_shares(counts: &[&[u64]], weights: &[f64]) -> Vec<Vec<f64>> {
    let classes = counts.iter().map(|counts| counts.len()).min().unwrap_or(0);
    let total = |class: usize| counts.iter().map(|counts| counts[class] as f64).sum::<f64>();
    let totals: Vec<f64> = (0..classes).map(total).collect();
    let share = |counts: &[u64], weight: f64, class: usize| match totals[class] {
        0.0 => weight,
        total => counts[class] as f64 / total,
    };
    let of_client =
        |(counts, &weight): (&&[u64], &f64)| (0..classes).map(|class| share(counts, weight, class)).collect();
    counts.iter().zip(weights).map(of_client).collect()
}

/// The clients' last layers, averaged row by row. `shares` has one number per class for each client.
///
/// # Panics
/// Panics without clients, if their layers differ in size, and if a share is missing.
pub fn class_weighted(clients: &[Rows], shares: &[Vec<f64>]) -> Rows {
    let columns = clients[0].columns();
    let mut sums = vec![0.0f64; columns * clients[0].len()];
    for (rows, shares) in clients.iter().zip(shares) {
        assert_eq!((rows.columns(), rows.len()), (columns, shares.len()), "one row and one share per class");
        for ((sums, row), share) in sums.chunks_exact_mut(columns).zip(rows.iter()).zip(shares) {
            for (sum, &value) in sums.iter_mut().zip(row) {
                *sum += share * f64::from(value);
            }
        }
    }
    Rows::new(columns, sums.into_iter().map(|sum| sum as f32).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_count_for_a_class_by_their_samples_of_it() {
        // The numbers of fedma_matching.json, computed with numpy; its matrices are transposed.
        let shares = class_shares(&[&[10, 0, 5], &[30, 20, 5]], &[0.5, 0.5]);
        assert_eq!(shares, [[0.25, 0.0, 0.5], [0.75, 1.0, 0.5]]);
        let clients = [Rows::new(1, vec![1.0, 2.0, 3.0]), Rows::new(1, vec![5.0, 6.0, 7.0])];
        assert_eq!(class_weighted(&clients, &shares), Rows::new(1, vec![4.0, 6.0, 5.0]));
    }

    #[test]
    fn a_class_that_no_client_has_is_shared_by_the_weights() {
        assert_eq!(class_shares(&[&[0, 1], &[0, 3]], &[0.9, 0.1]), [[0.9, 0.25], [0.1, 0.75]]);
    }
}
