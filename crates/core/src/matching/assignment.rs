//! The exact rectangular assignment: one column for each row, no column twice, the greatest sum of scores.
//!
//! Rows are added one by one, each along a shortest augmenting path (Dijkstra) over costs reduced by prices: O(rows² columns).
//!
//! Jonker and Volgenant, "A shortest augmenting path algorithm for dense and sparse linear assignment problems",
//! Computing 38, 1987.

/// The column of each row. `scores` holds row after row; of equally good assignments, always the same one is chosen.
///
/// # Panics
/// Panics if there are fewer columns than rows, or if the scores are not whole rows.
pub fn best_columns(scores: &[f64], columns: usize) -> Vec<usize> {
    if scores.is_empty() {
        return Vec::new();
    }
    assert!(columns > 0 && scores.len().is_multiple_of(columns), "the scores are whole rows");
    let rows = scores.len() / columns;
    assert!(rows <= columns, "{rows} rows cannot have {columns} different columns");
    let mut partial = Partial {
        scores,
        columns,
        row_price: vec![0.0; rows],
        column_price: vec![0.0; columns],
        row_of: vec![None; columns],
    };
    (0..rows).for_each(|row| partial.add(row));
    let mut column_of = vec![0; rows];
    for (column, row) in partial.row_of.iter().enumerate() {
        if let Some(row) = *row {
            column_of[row] = column;
        }
    }
    column_of
}

/// The best assignment of the rows so far. No reduced cost is below 0, and those of assigned pairs are 0.
struct Partial<'a> {
    scores: &'a [f64],
    columns: usize,
    row_price: Vec<f64>,
    column_price: Vec<f64>,
    row_of: Vec<Option<usize>>,
}

impl Partial<'_> {
    fn reduced_cost(&self, row: usize, column: usize) -> f64 {
        -self.scores[row * self.columns + column] - self.row_price[row] - self.column_price[column]
    }

    /// Assigns one more row, by moving earlier ones along the cheapest path to a free column.
    fn add(&mut self, new: usize) {
        let mut distance = vec![f64::INFINITY; self.columns];
        // The column from whose row a column was reached; none from the new row.
        let mut from: Vec<Option<usize>> = vec![None; self.columns];
        let mut open: Vec<usize> = (0..self.columns).collect();
        let mut visited = Vec::new();
        let (mut row, mut reached, mut length) = (new, None, 0.0);
        let free = loop {
            for &column in &open {
                let candidate = length + self.reduced_cost(row, column);
                if candidate < distance[column] {
                    (distance[column], from[column]) = (candidate, reached);
                }
            }
            let nearest = (0..open.len()).min_by(|&a, &b| {
                let key = |place: usize| (distance[open[place]], open[place]);
                key(a).0.total_cmp(&key(b).0).then(key(a).1.cmp(&key(b).1))
            });
            let column = open.swap_remove(nearest.expect("there are at least as many columns as rows"));
            length = distance[column];
            match self.row_of[column] {
                None => break column,
                Some(next) => row = next,
            }
            visited.push(column);
            reached = Some(column);
        };
        self.row_price[new] += length;
        for column in visited {
            let slack = length - distance[column];
            self.column_price[column] -= slack;
            self.row_price[self.row_of[column].expect("only assigned columns were visited")] += slack;
        }
        let mut column = free;
        while let Some(previous) = from[column] {
            self.row_of[column] = self.row_of[previous];
            column = previous;
        }
        self.row_of[column] = Some(new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sum(scores: &[f64], columns: usize, chosen: &[usize]) -> f64 {
        chosen.iter().enumerate().map(|(row, column)| scores[row * columns + column]).sum()
    }

    /// The greatest sum over all assignments of the rows from `row` on.
    fn brute_force(scores: &[f64], columns: usize, row: usize, taken: &mut [bool]) -> f64 {
        if row * columns == scores.len() {
            return 0.0;
        }
        let mut best = f64::NEG_INFINITY;
        for column in 0..columns {
            if !std::mem::replace(&mut taken[column], true) {
                let rest = brute_force(scores, columns, row + 1, taken);
                best = best.max(scores[row * columns + column] + rest);
                taken[column] = false;
            }
        }
        best
    }

    /// Up to five rows of up to seven columns.
    fn problem(score: impl Strategy<Value = f64> + Clone) -> impl Strategy<Value = (usize, Vec<f64>)> {
        (0usize..6, 0usize..3).prop_flat_map(move |(rows, more)| {
            let columns = (rows + more).max(1);
            prop::collection::vec(score.clone(), rows * columns).prop_map(move |scores| (columns, scores))
        })
    }

    fn check((columns, scores): (usize, Vec<f64>)) -> Result<(), TestCaseError> {
        let chosen = best_columns(&scores, columns);
        prop_assert_eq!(chosen.len(), scores.len() / columns);
        let mut seen = vec![false; columns];
        prop_assert!(chosen.iter().all(|&column| !std::mem::replace(&mut seen[column], true)), "{chosen:?}");
        let best = brute_force(&scores, columns, 0, &mut vec![false; columns]);
        // Sums of at most five numbers below 100, in two orders.
        prop_assert!((sum(&scores, columns, &chosen) - best).abs() < 1e-11, "{chosen:?} is not {best}");
        Ok(())
    }

    proptest! {
        #[test]
        fn no_other_assignment_has_a_greater_sum(problem in problem(-100.0f64..100.0)) {
            check(problem)?;
        }

        #[test]
        fn equal_scores_leave_the_assignment_exact(problem in problem((-2i32..3).prop_map(f64::from))) {
            check(problem)?;
        }
    }

    #[test]
    fn a_permuted_diagonal_is_found_again() {
        let n = 60;
        let place = |row: usize| (7 * row + 3) % n;
        let score = |i: usize| if i % n == place(i / n) { 1.0 } else { ((i * 37) % 100) as f64 / 101.0 };
        let scores: Vec<f64> = (0..n * n).map(score).collect();
        assert_eq!(best_columns(&scores, n), (0..n).map(place).collect::<Vec<_>>());
    }

    #[test]
    fn the_greedy_choice_is_given_up_for_a_greater_sum() {
        // Greedily, row 0 takes column 0 (10) and leaves 0 to row 1: 10 instead of 9 + 8.
        assert_eq!(best_columns(&[10.0, 9.0, 8.0, 0.0], 2), [1, 0]);
        assert_eq!(best_columns(&[], 3), [0usize; 0]);
    }
}
