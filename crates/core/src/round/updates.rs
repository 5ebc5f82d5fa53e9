//! The updates of a round as the server reads them: from memory, or from a spool file block by block.

use crate::memory::Memory;
use crate::model::Params;
use crate::round::drift::DriftSum;
use crate::round::{Checked, ClientFailure, ClientId, Drift, Job, Run, State, check};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use thiserror::Error;

/// A client's report on its work in one round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The round.
    pub round: u32,
    /// Optimiser steps made.
    pub steps: u64,
    /// lr ‖a‖₁ of those steps: how far a constant gradient of one would have moved a parameter.
    pub reach: f64,
    /// Mean loss per sample of the first and of the last local epoch.
    pub losses: [f64; 2],
    /// Whether the client had the memory named in its job; true if there is nothing to remember.
    pub remembers: bool,
}

/// What a client sends back.
#[derive(Clone, Debug, PartialEq)]
pub struct Upload {
    /// The client.
    pub client: ClientId,
    /// Its trained model w_k.
    pub params: Params,
    /// The change of each carried vector.
    pub carried: Memory,
    /// Its report.
    pub report: Report,
}

/// How one client's job ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The client.
    pub client: ClientId,
    /// An update that passed every check, or why there is none.
    pub answer: Result<Checked, ClientFailure>,
}

/// One of the vectors that an update consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UpdatePart<'a> {
    /// The change of a carried vector.
    Carried(&'a str),
    /// The model: all tensors.
    Model,
}

/// An update could not be read back. The round is not closed and nothing is lost.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("the update of client {client} cannot be read back: {why}")]
pub struct ReadFailure {
    /// The client.
    pub client: ClientId,
    /// The reason.
    pub why: String,
}

/// The updates of one round, in client order. All of them were checked on arrival.
pub trait Updates {
    /// How each client's job ended, in client order.
    fn outcomes(&self) -> &[Outcome];
    /// Reads a range of a part of outcome `index`.
    fn read(
        &self,
        index: usize,
        part: UpdatePart<'_>,
        range: Range<usize>,
        out: &mut [f32],
    ) -> Result<(), ReadFailure>;
}

/// Values read at once from each update: small enough for a core's cache.
pub const BLOCK: usize = 4096;

/// The accepted updates of a round, in client order. Each value is read once: the drift is computed while the rule
/// combines.
pub struct Accepted<'a> {
    updates: &'a dyn Updates,
    indices: Vec<usize>,
    reports: Vec<Report>,
    drift: DriftSum<'a>,
}

impl<'a> Accepted<'a> {
    pub(crate) fn new(
        updates: &'a dyn Updates,
        indices: Vec<usize>,
        reports: Vec<Report>,
        drift: DriftSum<'a>,
    ) -> Self {
        Self { updates, indices, reports, drift }
    }

    /// The reports of the accepted clients.
    pub fn reports(&self) -> &[Report] {
        &self.reports
    }

    /// How far the clients' models drifted, if the rule read all of them.
    pub(crate) fn drift(&self) -> Option<Drift> {
        self.drift.finish()
    }

    /// Visits a range of a part block by block, with the block's start in the range and each client's values.
    pub fn blocks(
        &mut self,
        part: UpdatePart<'_>,
        range: Range<usize>,
        mut visit: impl FnMut(usize, &[Vec<f32>]),
    ) -> Result<(), ReadFailure> {
        let mut blocks = vec![vec![0.0; BLOCK.min(range.len())]; self.indices.len()];
        for start in (0..range.len()).step_by(BLOCK) {
            let len = BLOCK.min(range.len() - start);
            let first = range.start + start;
            for (block, &index) in blocks.iter_mut().zip(&self.indices) {
                block.truncate(len);
                self.updates.read(index, part, first..first + len, block)?;
            }
            if part == UpdatePart::Model {
                self.drift.add(first, &blocks);
            }
            visit(start, &blocks);
        }
        Ok(())
    }

    /// Σ_k factor_k x_k over a range of a part, in f64 and in client order.
    pub fn weighted_sum(
        &mut self,
        part: UpdatePart<'_>,
        range: Range<usize>,
        factors: &[f64],
    ) -> Result<Vec<f64>, ReadFailure> {
        let mut sum = vec![0.0; range.len()];
        self.blocks(part, range, |start, blocks| {
            for (factor, block) in factors.iter().zip(blocks) {
                for (sum, &x) in sum[start..].iter_mut().zip(block) {
                    *sum += factor * f64::from(x);
                }
            }
        })?;
        Ok(sum)
    }
}

/// Updates held in memory.
#[derive(Debug)]
pub struct InMemory {
    outcomes: Vec<Outcome>,
    uploads: Vec<Option<(Params, Memory)>>,
}

impl InMemory {
    /// Checks answers that may have arrived in any order. A duplicate answer counts once; different answers of the same
    /// client, and answers of clients that were not asked, are not used.
    pub fn new(
        run: &Run,
        state: &State,
        jobs: &[Job],
        mut answers: Vec<(ClientId, Result<Upload, ClientFailure>)>,
    ) -> Self {
        // Floating-point sums depend on their order; arrival order is not reproducible.
        answers.sort_by_key(|(client, _)| *client);
        answers.dedup_by(|later, first| {
            let again = later.0 == first.0;
            if again && later.1 != first.1 {
                first.1 = Err(ClientFailure::Twice);
            }
            again
        });
        let needs = run.strategy.local.needs();
        let (mut outcomes, mut uploads) = (Vec::new(), Vec::new());
        for (client, answer) in answers {
            let Some(job) = jobs.iter().find(|job| job.client == client) else { continue };
            let size = state.profile(client).map_or(0, |profile| profile.size);
            let checked = answer.and_then(|upload| Ok((check(&needs, size, job, &upload)?, upload)));
            let (answer, upload) = match checked {
                Ok((checked, upload)) => (Ok(checked), Some((upload.params, upload.carried))),
                Err(failure) => (Err(failure), None),
            };
            outcomes.push(Outcome { client, answer });
            uploads.push(upload);
        }
        Self { outcomes, uploads }
    }

    fn part(&self, index: usize, part: UpdatePart<'_>) -> Option<&[f32]> {
        let (params, carried) = self.uploads[index].as_ref()?;
        match part {
            UpdatePart::Model => Some(&params.values),
            UpdatePart::Carried(name) => carried.f32(name),
        }
    }
}

impl Updates for InMemory {
    fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }

    fn read(
        &self,
        index: usize,
        part: UpdatePart<'_>,
        range: Range<usize>,
        out: &mut [f32],
    ) -> Result<(), ReadFailure> {
        let client = self.outcomes[index].client;
        let missing =
            || ReadFailure { client, why: format!("values {}..{} are missing", range.start, range.end) };
        let values =
            self.part(index, part).and_then(|values| values.get(range.clone())).ok_or_else(missing)?;
        out.copy_from_slice(values);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::{Reference, Statistic};
    use crate::model::Layout;
    use crate::round::{Mode, Profile, plan};
    use crate::rules::notation;
    use std::sync::Arc;

    #[test]
    fn a_duplicate_answer_counts_once_and_two_different_ones_do_not_count() {
        let run = Run {
            strategy: notation::strategy("fedavg", []).unwrap(),
            seed: 1,
            cohort_seed: 1,
            fraction: 1.0,
            local: crate::train::local::Local::default(),
            quorum: 1,
            mode: Mode::Paper,
            largest_size: 100,
            fixed_roster: false,
        };
        let start = Params::zeros(Arc::new(Layout::vector(1)));
        let mut state = State::new(&run, start.clone(), Reference::uniform(2));
        for client in [1, 2] {
            state.enrol(&run, Profile { client, size: 10, statistic: Statistic::Nothing }).unwrap();
        }
        let answer = |client: ClientId, value: f32| {
            let params = Params { values: vec![value], ..start.clone() };
            let report = Report { round: 0, steps: 1, reach: 0.01, losses: [1.0, 1.0], remembers: true };
            (client, Ok(Upload { client, params, carried: Memory::default(), report }))
        };
        for answers in [
            vec![answer(2, 1.0), answer(1, 5.0), answer(2, 1.0), answer(1, 6.0), answer(1, 5.0)],
            vec![answer(1, 5.0), answer(1, 5.0), answer(1, 6.0), answer(2, 1.0), answer(3, 1.0)],
        ] {
            let updates = InMemory::new(&run, &state, &plan(&run, &state), answers);
            let outcomes: Vec<_> = updates.outcomes().iter().map(|o| (o.client, o.answer.is_ok())).collect();
            assert_eq!(outcomes, [(1, false), (2, true)]);
            assert_eq!(updates.outcomes()[0].answer, Err(ClientFailure::Twice));
        }
    }
}
