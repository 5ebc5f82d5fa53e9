//! The statistics of a split.

use crate::split::Partition;
use fedtvd_core::labels::{Reference, tvd};
use serde::Serialize;

/// One client of a split.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClientStatistics {
    /// Its number.
    pub client: usize,
    /// How many rows it has.
    pub size: usize,
    /// Total variation distance of its labels from the reference.
    pub tvd: f64,
    /// How many rows of each class it has.
    pub counts: Vec<u64>,
}

/// A split in numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Statistics {
    /// Each client.
    pub clients: Vec<ClientStatistics>,
    /// The clients' mean TVD.
    pub mean_tvd: f64,
    /// Standard deviation of the sizes over their mean.
    pub size_cv: f64,
    /// Pearson correlation of size and TVD; `None` if either is the same for all.
    pub size_tvd_correlation: Option<f64>,
    /// Spearman's rank correlation of size and TVD.
    pub size_tvd_rank_correlation: Option<f64>,
    /// Mean over clients of 1 / sum p_c^2, the effective number of classes.
    pub effective_classes: f64,
    /// The partition's hash.
    pub hash: String,
}

impl Statistics {
    /// The statistics of a split; `reference` is the label distribution that TVD is measured against.
    pub fn of(partition: &Partition, labels: &[u32], reference: &Reference) -> Self {
        let client = |(client, rows): (usize, &Vec<u32>)| {
            let counts = counts(rows, labels, reference.classes());
            ClientStatistics { client, size: rows.len(), tvd: tvd(&counts, reference), counts }
        };
        let clients: Vec<ClientStatistics> = partition.clients.iter().enumerate().map(client).collect();
        let sizes: Vec<f64> = clients.iter().map(|client| client.size as f64).collect();
        let tvds: Vec<f64> = clients.iter().map(|client| client.tvd).collect();
        let effective: Vec<f64> = clients.iter().map(effective_classes).collect();
        let size_tvd_correlation = pearson(&sizes, &tvds);
        Self {
            mean_tvd: mean(&tvds),
            size_cv: deviation(&sizes) / mean(&sizes),
            size_tvd_correlation,
            // Ranks of values that differ by rounding alone would be noise.
            size_tvd_rank_correlation: size_tvd_correlation
                .and_then(|_| pearson(&middle_ranks(&sizes), &middle_ranks(&tvds))),
            effective_classes: mean(&effective),
            hash: partition.hash(),
            clients,
        }
    }
}

/// How many of the rows have each label.
pub fn counts(rows: &[u32], labels: &[u32], classes: usize) -> Vec<u64> {
    let mut counts = vec![0; classes];
    rows.iter().for_each(|row| counts[labels[*row as usize] as usize] += 1);
    counts
}

fn effective_classes(client: &ClientStatistics) -> f64 {
    let n = client.size as f64;
    1.0 / client.counts.iter().map(|count| (*count as f64 / n).powi(2)).sum::<f64>()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    (values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / values.len() as f64).sqrt()
}

fn pearson(x: &[f64], y: &[f64]) -> Option<f64> {
    let (mean_x, mean_y) = (mean(x), mean(y));
    let covariance = x.iter().zip(y).map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>() / x.len() as f64;
    let (deviation_x, deviation_y) = (deviation(x), deviation(y));
    // Equal values leave a deviation of rounding errors, whose correlation would be noise.
    let varies = deviation_x > 1e-12 * mean_x.abs() && deviation_y > 1e-12 * mean_y.abs();
    varies.then(|| (covariance / (deviation_x * deviation_y)).clamp(-1.0, 1.0))
}

/// Ranks from 0, equal values sharing the middle of theirs.
fn middle_ranks(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = |x: &f64| {
        let below = sorted.partition_point(|y| y < x);
        let through = sorted.partition_point(|y| y <= x);
        (below + through - 1) as f64 / 2.0
    };
    values.iter().map(rank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_three_clients_have_the_papers_distances() {
        // Clients with 30,30,30; 20,40,40; 10,30,70 rows of three classes: the paper's Table 1.
        let mut labels = Vec::new();
        let mut clients = Vec::new();
        for counts in [[30, 30, 30], [20, 40, 40], [10, 30, 70]] {
            let start = labels.len() as u32;
            for (label, count) in counts.into_iter().enumerate() {
                labels.extend(std::iter::repeat_n(label as u32, count));
            }
            clients.push((start..labels.len() as u32).collect());
        }
        let statistics = Statistics::of(&Partition { clients }, &labels, &Reference::uniform(3));
        let tvds: Vec<f64> = statistics.clients.iter().map(|client| client.tvd).collect();
        for (tvd, paper) in tvds.iter().zip([0.0, 2.0 / 15.0, 10.0 / 33.0]) {
            assert!((tvd - paper).abs() < 1e-12, "{tvd} {paper}");
        }
        assert_eq!(statistics.clients[2].counts, [10, 30, 70]);
        // Sizes 90, 100, 110: deviation sqrt(200 / 3) over 100.
        assert!((statistics.size_cv - 0.081_649_658).abs() < 1e-9);
        assert_eq!(statistics.size_tvd_rank_correlation, Some(1.0));
        // 3; 1 / (0.04 + 0.16 + 0.16); 1 / (100 + 900 + 4900) * 12,100.
        let effective = (3.0 + 1.0 / 0.36 + 12_100.0 / 5_900.0) / 3.0;
        assert!((statistics.effective_classes - effective).abs() < 1e-12);
    }

    #[test]
    fn a_correlation_with_what_does_not_vary_is_none() {
        let partition = Partition { clients: vec![vec![0, 1], vec![2, 3]] };
        let statistics = Statistics::of(&partition, &[0, 1, 0, 0], &Reference::uniform(2));
        assert_eq!(statistics.size_tvd_correlation, None);
        assert_eq!(statistics.size_tvd_rank_correlation, None);
        assert_eq!(pearson(&[0.7; 97], &(0..97).map(f64::from).collect::<Vec<_>>()), None);
        let r = pearson(&[1.0, 2.0, 4.0], &[1.0, 0.0, 3.0]).unwrap();
        assert!((r - 11.0 / 14.0).abs() < 1e-12, "{r}");
    }
}
