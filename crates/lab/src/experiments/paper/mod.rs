//! The paper's results: test accuracy in per cent, mean of the last 10 of 300 rounds, over five runs.
//!
//! `tables.csv` holds Tables 2, 3 and 4 of Selo, Kundroo, Kim: "FedTVD: Balancing Data Quality and Quantity for Robust
//! Federated Learning", Future Generation Computer Systems, 2025. What it calls "a standard CNN" for Fashion-MNIST is
//! taken as `lenet`.

const TABLES: &str = include_str!("tables.csv");

/// One result of the paper's tables.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The table that has it: 2, 3 or 4.
    pub table: u32,
    /// The data set.
    pub dataset: String,
    /// Dirichlet's alpha, or `None` for IID.
    pub alpha: Option<f64>,
    /// Number of clients.
    pub clients: u64,
    /// Fraction of clients per round.
    pub participation: f64,
    /// The strategy's label.
    pub strategy: String,
    /// Accuracy in per cent.
    pub mean: f64,
    /// Its standard deviation over runs.
    pub std: f64,
}

/// All results, in the order of the tables.
pub fn figures() -> Vec<Figure> {
    TABLES.lines().skip(1).filter_map(figure).collect()
}

fn figure(line: &str) -> Option<Figure> {
    let fields: Vec<&str> = line.split(',').collect();
    let [table, dataset, _, alpha, clients, participation, lambda, strategy, mean, std] = fields[..] else {
        return None;
    };
    let lambda: Option<f64> = lambda.parse().ok();
    Some(Figure {
        table: table.parse().ok()?,
        dataset: dataset.to_owned(),
        alpha: alpha.parse().ok(),
        clients: clients.parse().ok()?,
        participation: participation.parse().ok()?,
        // A label leaves out parameters that have their default.
        strategy: match lambda {
            Some(lambda) if lambda != 0.5 => format!("{strategy}:lambda={lambda}"),
            _ => strategy.to_owned(),
        },
        mean: mean.parse().ok()?,
        std: std.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedtvd_core::rules::notation;

    #[test]
    fn every_line_of_the_tables_is_read() {
        let figures = figures();
        let of = |table| figures.iter().filter(|figure| figure.table == table).count();
        // Three data sets, four skews, five methods; two rosters, three shares, five methods; two skews, five lambdas.
        assert_eq!((of(2), of(3), of(4)), (60, 30, 10));
    }

    #[test]
    fn strategies_have_the_labels_of_this_program() {
        for figure in figures() {
            assert_eq!(notation::strategy(&figure.strategy, []).expect("a strategy").label, figure.strategy);
        }
    }
}
