//! Screening: an update that is far larger than the others is scaled down to a bound, or rejected.
//!
//! ```text
//! x_k  = a_k ‖change of client k‖      per part: the trainable tensors, the buffers, each carried vector;
//!                                      a_k: how far the combining rule scales it up (FedNova: 1 / r_k), else 1
//! m    = median of x                   over the clients of this round and of the rounds before it
//! B    = m + max(screen · median of |x - m|, m / 2)        where it rejects: 2 m instead of m / 2
//! f_k  = min(1, (B / x_k)²)            the least over the parts
//! w_k <- w_t + f_k (w_k - w_t)
//! ```
//!
//! So an update beyond the bound counts with a norm of B² / x_k, which is the bound at most: the farther it is beyond, the
//! less of it is left. A little beyond is an honest client with unusual data; far beyond, nothing in it can be believed.
//!
//! Where clients keep memory that belongs to their update (SCAFFOLD's c_k), an update beyond the bound is rejected
//! instead, model and carried change together: a scaled change would break c = mean of c_k for the rest of the run.
//!
//! The lower of two middle values is the median, so that one client of two or more never sets its own bound. Norms of
//! earlier rounds keep the bound where it was in a round whose clients are mostly liars.

use crate::memory::Memory;
use crate::round::Screened;

/// Earlier rounds whose norms count. Norms change slowly over rounds, but faster than over a whole run.
const HISTORY: usize = 4;

/// Least distance of the bound from the median, as a multiple of the median.
pub(crate) const MARGIN: f64 = 0.5;
/// The same where updates are rejected: an honest client that is often rejected is lost to the run.
const REJECTION_MARGIN: f64 = 2.0;

/// What becomes of an update.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Decision {
    /// It enters the sum as it is.
    Whole,
    /// It is scaled down.
    Scaled(Screened),
    /// It does not enter the sum: its factor is 0.
    Rejected(Screened),
}

impl Decision {
    /// The factor on the update.
    pub(crate) fn factor(&self) -> f64 {
        match self {
            Self::Whole => 1.0,
            Self::Scaled(screened) | Self::Rejected(screened) => screened.factor,
        }
    }
}

/// One part of an update and the norm of each client's change of it.
#[derive(Clone, Debug)]
pub(crate) struct Norms {
    /// The part's name.
    pub(crate) part: String,
    /// In client order.
    pub(crate) values: Vec<f64>,
}

/// Decides on the updates of a round, and remembers its norms. The bound is `width` median deviations above the median.
/// With `reject`, nothing is scaled.
pub(crate) fn screen(width: f64, reject: bool, parts: &[Norms], memory: &mut Memory) -> Vec<Decision> {
    let clients = parts.first().map_or(0, |part| part.values.len());
    let mut worst: Vec<Option<Screened>> = vec![None; clients];
    for Norms { part, values } in parts {
        let margin = if reject { REJECTION_MARGIN } else { MARGIN };
        let bound = bound(width, margin, &remembered(memory, part, values));
        for (&norm, worst) in values.iter().zip(&mut worst) {
            let factor = (bound / norm).powi(2);
            let worse = worst.as_ref().is_none_or(|worst| factor < worst.factor);
            // A norm that is not a number is beyond any bound.
            let within = norm <= bound;
            if !within && worse {
                let factor = if factor.is_finite() { factor } else { 0.0 };
                // JSON knows no infinity.
                let (norm, bound) = (norm.min(f64::MAX), bound.min(f64::MAX));
                *worst = Some(Screened { part: part.clone(), norm, bound, factor });
            }
        }
    }
    let decision = |screened: Option<Screened>| match screened {
        None => Decision::Whole,
        Some(screened) if reject => Decision::Rejected(Screened { factor: 0.0, ..screened }),
        Some(screened) => Decision::Scaled(screened),
    };
    worst.into_iter().map(decision).collect()
}

/// m + max(width · median of |x - m|, margin · m): norms that hardly differ must not make a little more too much.
pub(crate) fn bound(width: f64, margin: f64, norms: &[f64]) -> f64 {
    let median = lower_median(norms.to_vec());
    let deviation = lower_median(norms.iter().map(|norm| (norm - median).abs()).collect());
    median + (width * deviation).max(margin * median)
}

/// The norms of a part in this round and the rounds before it; the memory advances by one round.
fn remembered(memory: &mut Memory, part: &str, values: &[f64]) -> Vec<f64> {
    let (norms, rounds) = (format!("{part}/norms"), format!("{part}/rounds"));
    let mut pooled = memory.f64(&norms).unwrap_or_default().to_vec();
    let mut counts = memory.u64(&rounds).unwrap_or_default().to_vec();
    pooled.extend(values);
    counts.push(values.len() as u64);
    let old: u64 = counts.drain(..counts.len().saturating_sub(HISTORY)).sum();
    memory.put(&norms, pooled.get(old as usize..).unwrap_or_default().to_vec());
    memory.put(&rounds, counts);
    pooled
}

/// The median, the lower of two middle values; 0 without values.
fn lower_median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::round::ClientFailure;

    fn part(values: &[f64]) -> Norms {
        Norms { part: "the model".to_owned(), values: values.to_vec() }
    }

    fn factors(values: &[f64], memory: &mut Memory) -> Vec<f64> {
        screen(2.0, false, &[part(values)], memory).iter().map(Decision::factor).collect()
    }

    #[test]
    fn the_bound_is_a_number_of_median_deviations_above_the_median_and_at_least_half_the_median() {
        // The median of 2, 4, 5, 6, 40 is 5, of their deviations 3, 1, 0, 1, 35 it is 1.
        assert_eq!(bound(6.0, MARGIN, &[2.0, 40.0, 4.0, 6.0, 5.0]), 11.0);
        assert_eq!(bound(2.0, MARGIN, &[2.0, 40.0, 4.0, 6.0, 5.0]), 7.5);
        assert_eq!(bound(6.0, MARGIN, &[4.0, 4.0, 4.0, 1e300]), 6.0);
        assert_eq!(bound(6.0, MARGIN, &[]), 0.0);
    }

    #[test]
    fn an_update_beyond_the_bound_counts_with_less_than_it() {
        // Median 2, median deviation 1: the bound is 4, and 8 counts as 2.
        assert_eq!(factors(&[1.0, 8.0, 3.0, 2.0], &mut Memory::default()), [1.0, 0.25, 1.0, 1.0]);
        assert_eq!(factors(&[1.0, 1e300], &mut Memory::default()), [1.0, 0.0]);
        assert_eq!(factors(&[0.0, 0.0, 1.0], &mut Memory::default()), [1.0, 1.0, 0.0]);
    }

    #[test]
    fn norms_of_earlier_rounds_outvote_a_round_of_liars_and_are_forgotten_in_time() {
        let mut memory = Memory::default();
        for _ in 0..9 {
            assert_eq!(factors(&[1.0, 1.0, 1.0], &mut memory), [1.0; 3]);
        }
        assert_eq!(memory.f64("the model/norms").map(<[f64]>::len), Some(3 * HISTORY));
        // Twelve ones and three hundreds: the bound stays 1.5.
        assert_eq!(factors(&[100.0, 100.0, 100.0], &mut memory), [0.015 * 0.015; 3]);
        for _ in 0..HISTORY {
            factors(&[100.0, 100.0, 100.0], &mut memory);
        }
        assert_eq!(factors(&[100.0, 100.0, 100.0], &mut memory), [1.0; 3]);
    }

    #[test]
    fn the_part_that_exceeds_its_bound_the_most_decides() {
        let buffers = Norms { part: "the buffers".to_owned(), values: vec![5.0, 5.0, 30.0] };
        let decisions = screen(2.0, false, &[part(&[1.0, 1.0, 4.0]), buffers], &mut Memory::default());
        let expected = Screened { part: "the buffers".to_owned(), norm: 30.0, bound: 7.5, factor: 0.0625 };
        assert_eq!(decisions, [Decision::Whole, Decision::Whole, Decision::Scaled(expected)]);
    }

    #[test]
    fn an_update_with_memory_is_rejected_with_the_reason() {
        let decisions = screen(2.0, true, &[part(&[1.0, 1.0, 7.0])], &mut Memory::default());
        let Decision::Rejected(screened) = decisions[2].clone() else { panic!("{decisions:?}") };
        assert_eq!(screened.factor, 0.0);
        assert_eq!(
            ClientFailure::from(screened).to_string(),
            "the change of the model has norm 7, above this round's bound of 3"
        );
        assert_eq!(decisions[..2], [Decision::Whole, Decision::Whole]);
    }

    #[test]
    fn norms_that_are_not_numbers_are_beyond_any_bound_and_are_recorded_as_numbers() {
        for decision in screen(2.0, false, &[part(&[f64::NAN; 3])], &mut Memory::default()) {
            let Decision::Scaled(screened) = decision else { panic!("{decision:?}") };
            assert!(screened.norm.is_finite() && screened.bound.is_finite() && screened.factor == 0.0);
        }
        assert_eq!(factors(&[1.0, f64::NAN, 1.0], &mut Memory::default()), [1.0, 0.0, 1.0]);
        assert_eq!(factors(&[1.0, f64::INFINITY, 1.0], &mut Memory::default()), [1.0, 0.0, 1.0]);
    }
}
