//! Centre and scale of a column whose rows are at the clients.
//!
//! ```text
//! n_k, m_k = Σ x / n_k, q_k = Σ (x - m_k)²         of client k's training rows
//! centre = Σ w_k m_k                               w_k = n_k / Σ n, in hardened mode capped as weights are
//! scale  = sqrt(Σ w_k (q_k / n_k + (m_k - centre)²))
//! ```
//!
//! Sums run in client order. No square of a large mean is subtracted from another, so nothing cancels.

use super::moments::{LEAST_VALUES, Moments};
use super::schema::{Number, Schema, Standard};
use fedtvd_core::round::{ClientId, Mode, hardened};
use std::collections::BTreeMap;
use thiserror::Error;

/// Why a column has no centre and scale.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum StandardsError {
    /// No client has enough values.
    #[error(
        "column {0:?}: no client has {LEAST_VALUES} values to compute centre and scale from; set both in the schema, or \
         kind = \"ignored\""
    )]
    NoValues(String),
    /// Values of this size cannot be squared and added.
    #[error(
        "column {column:?}: the mean or the deviations of client {client} are too large to be combined; set bounds, or \
         centre and scale, in the schema"
    )]
    TooLarge {
        /// The column.
        column: String,
        /// The client.
        client: ClientId,
    },
}

/// Centre and scale of a schema's open columns from the moments of each client.
pub fn standards(
    schema: &Schema,
    clients: &BTreeMap<ClientId, Vec<Moments>>,
    mode: Mode,
) -> Result<Vec<Standard>, StandardsError> {
    let standard = |(place, (name, _)): (usize, (&str, &Number))| {
        let told = clients.iter().filter_map(|(client, columns)| Some((*client, *columns.get(place)?)));
        let known: Vec<(ClientId, Moments)> = told.filter(|(_, moments)| moments.count > 0).collect();
        if known.is_empty() {
            return Err(StandardsError::NoValues(name.to_owned()));
        }
        if let Some((client, _)) = known.iter().find(|(_, moments)| !moments.combinable()) {
            return Err(StandardsError::TooLarge { column: name.to_owned(), client: *client });
        }
        Ok(combined(&known.into_iter().map(|(_, moments)| moments).collect::<Vec<_>>(), mode))
    };
    schema.open().enumerate().map(standard).collect()
}

/// Centre and scale from the moments of clients that have values, of which there is at least one.
fn combined(known: &[Moments], mode: Mode) -> Standard {
    let counts: Vec<u64> = known.iter().map(|moments| moments.count).collect();
    let first = known[0].mean;
    let weights = match mode {
        Mode::Paper => {
            let total: f64 = counts.iter().map(|&count| count as f64).sum();
            counts.iter().map(|&count| count as f64 / total).collect()
        }
        Mode::Hardened => hardened::size_weights(counts),
    };
    let weighted = || known.iter().zip(&weights);
    let centre = first + weighted().map(|(k, w)| w * (k.mean - first)).sum::<f64>();
    let variance = |k: &Moments| k.squares / k.count as f64 + (k.mean - centre).powi(2);
    let deviation = weighted().map(|(k, w)| w * variance(k)).sum::<f64>().sqrt();
    // A constant column carries no information; its input is 0 instead of a division by 0.
    let scale = if deviation > 1e-12 * centre.abs() { deviation } else { 0.0 };
    Standard { centre, scale }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::moments::pooled;
    use crate::table::{MissingNumber, NotNumbers};
    use proptest::prelude::*;

    fn close(a: f64, b: f64, unit: f64) -> bool {
        (a - b).abs() <= 1e-9 * unit.abs().max(a.abs()).max(b.abs())
    }

    proptest! {
        #[test]
        fn combined_moments_are_those_of_all_rows(
            sizes in proptest::collection::vec(10usize..60, 1..6),
            offset in -1e9..1e9,
            seed in any::<u64>(),
        ) {
            let mut state = seed | 1;
            let mut draw = || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                offset + (state % 10_000) as f64 / 100.0
            };
            let clients: Vec<Vec<f64>> = sizes.iter().map(|n| (0..*n).map(|_| draw()).collect()).collect();
            let moments: Vec<Moments> = clients.iter().map(|rows| Moments::of(rows.iter().copied())).collect();
            let all = clients.concat();
            let together = combined(&moments, Mode::Paper);
            let alone = pooled(&all, &all);
            prop_assert!(close(together.centre, alone.centre, 1.0), "{:?} {:?}", together, alone);
            // 1e9 + x has six digits of x left, so that the deviations differ in the last of them.
            prop_assert!((together.scale - alone.scale).abs() < 1e-5, "{:?} {:?}", together, alone);
            let number = Number { bounds: None, standard: None, missing: MissingNumber::Centre,
                missing_values: vec![], not_numbers: NotNumbers::Refuse };
            for (moments, rows) in moments.iter().zip(&clients) {
                prop_assert_eq!(moments.refusal(rows.len() as u64, &number), None);
            }
        }
    }

    #[test]
    fn one_client_in_hardened_mode_moves_the_centre_no_further_than_its_cap() {
        let honest = Moments { count: 100, mean: 0.0, squares: 100.0 };
        let liar = Moments { count: 1_000_000, mean: 1.0, squares: 0.0 };
        let clients = [honest, honest, honest, liar];
        let paper = combined(&clients, Mode::Paper);
        assert!(paper.centre > 0.999, "{paper:?}");
        // All four count as 100 values.
        let hardened = combined(&clients, Mode::Hardened);
        assert_eq!(hardened.centre, 0.25);
        assert!((hardened.scale - (0.75_f64 * (1.0 + 0.0625) + 0.25 * 0.5625).sqrt()).abs() < 1e-15);
    }

    fn schema() -> Schema {
        let text = "[label]\ncolumn = \"y\"\nclasses = [\"a\", \"b\"]\n[[column]]\nname = \"bp\"\nkind = \"number\"\n";
        text.parse().unwrap()
    }

    fn told(clients: &[(u64, f64, f64)]) -> BTreeMap<ClientId, Vec<Moments>> {
        let moments = |&(count, mean, squares): &(u64, f64, f64)| vec![Moments { count, mean, squares }];
        (0..).zip(clients.iter().map(moments)).collect()
    }

    #[test]
    fn a_column_without_values_and_one_that_overflows_are_told_apart() {
        let found = |clients: &[(u64, f64, f64)]| standards(&schema(), &told(clients), Mode::Paper);
        let none = (0, 0.0, 0.0);
        assert_eq!(found(&[none; 3]), Err(StandardsError::NoValues("bp".to_owned())));
        assert_eq!(found(&[none, (10, 4.5, 82.5)]).unwrap()[0].centre, 4.5);
        let error = found(&[none, (10, 4.5, 82.5), (100, 1e300, 0.0)]).unwrap_err();
        assert_eq!(error, StandardsError::TooLarge { column: "bp".to_owned(), client: 2 });
        // The largest that are accepted.
        let extreme = found(&[(10, 1e100, 1e201), (10, -1e100, 1e201)]).unwrap()[0];
        assert!(extreme.centre == 0.0 && extreme.scale < 2e100, "{extreme:?}");
    }
}
