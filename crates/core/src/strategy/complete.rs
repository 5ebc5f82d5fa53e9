//! Complete cohorts: clients are asked whose labels together come near the reference.
//!
//! ```text
//! the first r places, r = max(1, ceil(random K)):  drawn at random
//! each later place:  of the next `candidates` clients of a random order, the one with the least
//!                    TVD((Σ_{k chosen} P_k + P) / (chosen + 1), Q)
//! ```
//!
//! Every client is asked with a chance of at least r / N in every round, whatever its labels, so that none is left out. A
//! client that is compared and not chosen goes to the end of the order. The server needs each client's label counts; a
//! client that claims false ones can be asked more often than others, though in a round it never counts for more than its weight.
//! In hardened mode at least half of the places are random, which limits what false counts can buy, but does not prevent it: a cohort
//! may hold more liars than the clients do, so a robust combination should expect more of them.
//! Honest clients with rare labels are asked more often, too: over many rounds the model minimises another mean of the clients'
//! losses than with random cohorts.
//!
//! This project's own.

use crate::labels::{Ask, Reference};
use crate::round::{ClientId, Mode, Profile};
use crate::rules::{Guide, Recipe, Selection, Settings, Spec};
use crate::settings::{Param, Range};
use crate::strategy::joint::distribution;
use std::collections::VecDeque;
use std::sync::Arc;

pub(super) const SPEC: Spec = Spec {
    guide: Guide {
        formula: "each place after the first: of `candidates` random clients, the one with which the mean label distribution of the cohort is nearest to Q",
        choose: "where few of many skewed clients take part per round and clients cannot train with `balanced`",
        avoid: "where label counts must not leave the clients; where clients lie about them, since rare labels are asked for more often; and beside `balanced`, with which it gains early rounds at most",
        cost: "as `fedavg`, and label counts once",
    },
    params: &[
        Param::whole(
            "candidates",
            10,
            (1, 1_000_000),
            "clients that are compared for each place; 1 is a random cohort",
        ),
        Param::number(
            "random",
            0.2,
            Range::UNIT,
            "share of the places that are drawn at random, at least one place, in hardened mode at least half; it bounds every client's chance from below",
        ),
    ],
    ..Spec::new(
        "complete",
        "the clients of a round are chosen so that their labels together come near the reference; sends label counts",
        "this project: greedy choice among random candidates, a selection beyond the FedTVD paper",
        |settings| Recipe { selection: Some(Arc::new(Complete::new(settings))), ..Recipe::default() },
    )
};

/// The least share of the places that is drawn at random in hardened mode.
const HARDENED: f64 = 0.5;

#[derive(Debug)]
struct Complete {
    candidates: usize,
    random: f64,
}

impl Complete {
    fn new(settings: &Settings) -> Self {
        Self { candidates: settings.whole("candidates") as usize, random: settings.number("random") }
    }
}

impl Selection for Complete {
    fn asks(&self) -> Ask {
        Ask::Histogram
    }

    fn cohort(
        &self,
        shuffled: &[&Profile],
        count: usize,
        reference: &Reference,
        mode: Mode,
    ) -> Vec<ClientId> {
        let mut order: VecDeque<&Profile> = shuffled.iter().copied().collect();
        let mut chosen = Vec::new();
        let mut labels = vec![0.0; reference.classes()];
        // A share such as 0.2 of 10 places must not be just above its integer.
        let share = if mode == Mode::Hardened { self.random.max(HARDENED) } else { self.random };
        let random = ((share * count as f64 - 1e-9).ceil() as usize).max(1);
        while chosen.len() < count.min(shuffled.len()) {
            let compared = if chosen.len() < random { 1 } else { self.candidates };
            let mut candidates: Vec<&Profile> = order.drain(..compared.min(order.len())).collect();
            let best = nearest(&candidates, &labels, chosen.len(), reference);
            let next = candidates.remove(best);
            order.extend(candidates);
            labels.iter_mut().zip(distribution(next)).for_each(|(sum, p)| *sum += p);
            chosen.push(next.client);
        }
        chosen
    }
}

/// The place of the candidate with which the cohort's mean label distribution is nearest to the reference, the first of equals.
fn nearest(candidates: &[&Profile], labels: &[f64], chosen: usize, reference: &Reference) -> usize {
    let distance = |profile: &Profile| -> f64 {
        let mean = labels.iter().zip(distribution(profile)).map(|(sum, p)| (sum + p) / (chosen + 1) as f64);
        0.5 * mean.zip(reference.shares()).map(|(mean, q)| (mean - q).abs()).sum::<f64>()
    };
    let distances: Vec<f64> = candidates.iter().map(|profile| distance(profile)).collect();
    let least = distances.iter().copied().fold(f64::INFINITY, f64::min);
    distances.iter().position(|distance| *distance <= least).unwrap_or(0)
}
