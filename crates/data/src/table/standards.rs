//! Centre and scale of a column whose rows are at the clients.
//!
//! ```text
//! n_k, m_k = Σ x / n_k, q_k = Σ (x - m_k)²         of client k's training rows
//! centre = Σ w_k m_k                               w_k = n_k / Σ n, in hardened mode capped as weights are
//! scale  = sqrt(Σ w_k (q_k / n_k + (m_k - centre)²))
//! ```
//!
//! In hardened mode m_k and q_k are limited by those of the other clients (`clipping.rs`), and at least three clients must
//! have values. Sums run in client order. No square of a large mean is subtracted from another, so nothing cancels.

use super::clipping::clipped;
use super::moments::{LEAST_VALUES, Moments};
use super::schema::{Number, Schema, Standard};
use fedtvd_core::round::{ClientId, Mode, hardened};
use std::collections::BTreeMap;
use std::fmt;
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
    /// Too few clients for hardened mode.
    #[error(
        "column {column:?}: only clients {clients:?} have {LEAST_VALUES} values, and in hardened mode at least {} must, so \
         that no client decides centre and scale alone; set both in the schema, or kind = \"ignored\"",
        hardened::LEAST
    )]
    FewClients {
        /// The column.
        column: String,
        /// The clients that have values.
        clients: Vec<ClientId>,
    },
    /// A scale by which nothing can be divided.
    #[error(
        "column {column:?}: the clients' statistics give the scale {scale:e}, {why}; set centre and scale in the schema, or \
         kind = \"ignored\""
    )]
    Scale {
        /// The column.
        column: String,
        /// The scale.
        scale: f64,
        /// What is wrong with it.
        why: String,
    },
}

/// What an operator should know about the centre and scale of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Remark {
    /// A client whose moments were limited.
    Limited {
        /// The column.
        column: String,
        /// The client.
        client: ClientId,
    },
    /// A column whose scale is 0, so that its input is 0 in every row.
    NoEffect {
        /// The column.
        column: String,
        /// The value of all clients; `None` if some have others, which do not count in hardened mode.
        constant: Option<f64>,
    },
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limited { column, client } => write!(
                f,
                "column {column:?}: the mean or deviation of client {client} is far from that of the others and is limited; \
                 check its file, or set bounds, or centre and scale, in the schema"
            ),
            Self::NoEffect { column, constant: Some(value) } => write!(
                f,
                "column {column:?} has no effect: all values are {value}; if others may come, set centre and scale in the \
                 schema"
            ),
            Self::NoEffect { column, constant: None } => write!(
                f,
                "column {column:?} has no effect: most clients have one and the same value, and hardened mode does not let \
                 the others decide centre and scale; set bounds, or centre and scale, in the schema, or kind = \"ignored\""
            ),
        }
    }
}

/// Centre and scale of a schema's open columns from the moments of each client, and remarks on them.
pub fn standards(
    schema: &Schema,
    clients: &BTreeMap<ClientId, Vec<Moments>>,
    mode: Mode,
) -> Result<(Vec<Standard>, Vec<Remark>), StandardsError> {
    let mut remarks = Vec::new();
    let standard = |(place, (name, number)): (usize, (&str, &Number))| {
        let sent = clients.iter().filter_map(|(client, columns)| Some((*client, *columns.get(place)?)));
        let known: Vec<(ClientId, Moments)> = sent.filter(|(_, moments)| moments.count > 0).collect();
        if known.is_empty() {
            return Err(StandardsError::NoValues(name.to_owned()));
        }
        if let Some((client, _)) = known.iter().find(|(_, moments)| !moments.combinable()) {
            return Err(StandardsError::TooLarge { column: name.to_owned(), client: *client });
        }
        if mode == Mode::Hardened && known.len() < hardened::LEAST {
            let clients = known.into_iter().map(|(client, _)| client).collect();
            return Err(StandardsError::FewClients { column: name.to_owned(), clients });
        }
        let (names, mut known): (Vec<ClientId>, Vec<Moments>) = known.into_iter().unzip();
        let unlimited = combined(&known, mode);
        if mode == Mode::Hardened {
            let beyond;
            (known, beyond) = clipped(&known, number.bounds.is_some());
            let beyond = names.iter().zip(beyond).filter(|(_, beyond)| *beyond);
            remarks.extend(
                beyond.map(|(client, _)| Remark::Limited { column: name.to_owned(), client: *client }),
            );
        }
        let found = combined(&known, mode);
        match flaw(found, &known, number.bounds) {
            Some(why) => Err(StandardsError::Scale { column: name.to_owned(), scale: found.scale, why }),
            None => Ok(found),
        }
        .inspect(|found| {
            if found.scale == 0.0 {
                let constant = (unlimited.scale == 0.0).then_some(found.centre);
                remarks.push(Remark::NoEffect { column: name.to_owned(), constant });
            }
        })
    };
    let found: Result<Vec<Standard>, _> = schema.open().enumerate().map(standard).collect();
    Ok((found?, remarks))
}

/// The smallest scale of a column with bounds, as a part of their distance.
const SMALLEST: f64 = 1e-9;

/// Why nothing can be divided by a scale.
fn flaw(found: Standard, known: &[Moments], bounds: Option<[f64; 2]>) -> Option<String> {
    let Standard { centre, scale } = found;
    if scale == 0.0 {
        return None;
    }
    if let Some([least, most]) = bounds
        && scale < SMALLEST * (most - least)
    {
        return Some(format!("less than {SMALLEST:e} of the distance between the bounds {least} and {most}"));
    }
    // No value of a client is farther from its mean than the root of all squares.
    let farthest = |k: &Moments| (k.mean - centre).abs() + k.squares.sqrt();
    let reach = match bounds {
        Some([least, most]) => (centre - least).max(most - centre),
        None => known.iter().map(farthest).fold(0.0, f64::max),
    };
    let input = reach * (1.0 / scale);
    let usable = scale.is_normal() && input <= f64::from(f32::MAX);
    (!usable).then(|| format!("so small that the input of a value {reach} from the centre overflows"))
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
    use crate::table::{Kind, MissingNumber, NotNumbers};
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

    proptest! {
        #[test]
        fn one_liar_moves_centre_and_scale_no_further_than_the_bounds_of_the_clipping(
            honest in proptest::collection::vec((10u64..1000, -100.0..100.0f64, 0.1..50.0f64), 2..8),
            (mean, deviation, count) in (-99.0..99.0f64, -99.0..99.0f64, 10u64..1_000_000_000),
            place in 0usize..8,
        ) {
            // Lies of every magnitude, from 1e-99 to 1e99.
            let lie = (count, mean.signum() * 10f64.powf(mean.abs()), count as f64 * 10f64.powf(2.0 * deviation));
            let (least, most) = honest.iter().fold((f64::MAX, f64::MIN), |(l, h), k| (k.1.min(l), k.1.max(h)));
            let (narrow, wide) = honest.iter().fold((f64::MAX, 0f64), |(s, d), k| (k.2.min(s), k.2.max(d)));
            let unit = wide + most - least;
            let mut clients: Vec<_> = honest.iter().map(|&(n, m, d)| (n, m, n as f64 * d * d)).collect();
            clients.insert(place.min(clients.len()), lie);
            let (found, _) = standards(&schema(), &sent(&clients), Mode::Hardened).unwrap();
            let Standard { centre, scale } = found[0];
            prop_assert!((least - 2.4 * unit..=most + 2.4 * unit).contains(&centre), "{centre}");
            prop_assert!((0.77 * narrow..=9.0 * unit).contains(&scale), "{scale} {narrow} {unit}");
        }
    }

    #[test]
    fn a_client_whose_mean_is_limited_is_named_with_the_column() {
        let clients = sent(&[(100, 1.0, 100.0), (100, 2.0, 100.0), (100, 1e30, 0.0), (100, 3.0, 100.0)]);
        let (found, limited) = standards(&schema(), &clients, Mode::Hardened).unwrap();
        assert!(found[0].centre < 10.0, "{found:?}");
        assert_eq!(limited, [Remark::Limited { column: "bp".to_owned(), client: 2 }]);
        let (found, limited) = standards(&schema(), &clients, Mode::Paper).unwrap();
        assert!(found[0].centre > 1e29 && limited.is_empty(), "paper mode trusts every client: {found:?}");
    }

    #[test]
    fn a_column_that_has_no_effect_is_named_with_what_to_set() {
        let remarks = |clients: &[(u64, f64, f64)], mode| {
            let (found, remarks) = standards(&schema(), &sent(clients), mode).unwrap();
            (found[0].scale, remarks.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        let constant = (100, 0.0, 0.0);
        let varied = [constant, constant, constant, (100, 1.0, 100.0)];
        let (scale, said) = remarks(&varied, Mode::Hardened);
        assert_eq!((scale, said.len()), (0.0, 2));
        assert_eq!(
            said[1],
            "column \"bp\" has no effect: most clients have one and the same value, and hardened mode does not let the \
             others decide centre and scale; set bounds, or centre and scale, in the schema, or kind = \"ignored\""
        );
        for mode in [Mode::Paper, Mode::Hardened] {
            let (_, said) = remarks(&[constant; 4], mode);
            assert_eq!(
                said,
                [
                    "column \"bp\" has no effect: all values are 0; if others may come, set centre and scale in the schema"
                ]
            );
        }
        assert!(remarks(&varied, Mode::Paper).1.is_empty());
    }

    fn schema() -> Schema {
        let text = "[label]\ncolumn = \"y\"\nclasses = [\"a\", \"b\"]\n[[column]]\nname = \"bp\"\nkind = \"number\"\n";
        text.parse().unwrap()
    }

    fn sent(clients: &[(u64, f64, f64)]) -> BTreeMap<ClientId, Vec<Moments>> {
        let moments = |&(count, mean, squares): &(u64, f64, f64)| vec![Moments { count, mean, squares }];
        (0..).zip(clients.iter().map(moments)).collect()
    }

    #[test]
    fn a_column_without_values_and_one_that_overflows_are_different_errors() {
        let found = |clients: &[(u64, f64, f64)]| {
            standards(&schema(), &sent(clients), Mode::Paper).map(|(found, _)| found)
        };
        let none = (0, 0.0, 0.0);
        assert_eq!(found(&[none; 3]), Err(StandardsError::NoValues("bp".to_owned())));
        assert_eq!(found(&[none, (10, 4.5, 82.5)]).unwrap()[0].centre, 4.5);
        let error = found(&[none, (10, 4.5, 82.5), (100, 1e300, 0.0)]).unwrap_err();
        assert_eq!(error, StandardsError::TooLarge { column: "bp".to_owned(), client: 2 });
        let error = standards(&schema(), &sent(&[none, (10, 4.5, 82.5), (10, 4.5, 82.5)]), Mode::Hardened);
        let why = error.unwrap_err().to_string();
        assert!(why.starts_with("column \"bp\": only clients [1, 2] have 10 values"), "{why}");
        assert!(why.ends_with("set both in the schema, or kind = \"ignored\""), "{why}");
        // The largest that are accepted.
        let extreme = found(&[(10, 1e100, 1e201), (10, -1e100, 1e201)]).unwrap()[0];
        assert!(extreme.centre == 0.0 && extreme.scale < 2e100, "{extreme:?}");
    }

    #[test]
    fn a_scale_that_makes_inputs_overflow_is_refused_with_the_columns_name() {
        let mut bounded = schema();
        let Kind::Number(number) = &mut bounded.columns[0].kind else { panic!("a number") };
        number.bounds = Some([0.0, 100.0]);
        let alike = |squares| sent(&[(100, 40.0, squares); 3]);
        for mode in [Mode::Paper, Mode::Hardened] {
            let error = standards(&bounded, &alike(1e-14), mode).unwrap_err().to_string();
            assert!(error.starts_with("column \"bp\": the clients' statistics give the scale "), "{error}");
            assert!(error.contains("less than 1e-9 of the distance between the bounds 0 and 100"), "{error}");
            assert_eq!(standards(&bounded, &alike(1e-10), mode).map(|(found, _)| found.len()), Ok(1));
            // The input of a constant column is always 0.
            assert_eq!(standards(&bounded, &alike(0.0), mode).map(|(found, _)| found[0].scale), Ok(0.0));
        }
        let near = sent(&[(100, 0.0, 1e-300), (100, 0.0, 0.0), (100, 1e-320, 0.0)]);
        assert!(standards(&schema(), &near, Mode::Paper).is_ok());
        let least = Standard { centre: 0.0, scale: 1e-310 };
        assert!(flaw(least, &[], None).is_some());
        let far = [Moments { count: 10, mean: 1.0, squares: 0.0 }];
        assert!(flaw(Standard { centre: 0.0, scale: 1e-39 }, &far, None).is_some());
        assert_eq!(flaw(Standard { centre: 0.0, scale: 1e-38 }, &far, None), None);
    }
}
