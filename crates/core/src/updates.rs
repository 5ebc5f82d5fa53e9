//! The updates of a round as the server reads them: from memory, or from a spool file block by block.

use crate::failure::ClientFailure;
use crate::memory::Memory;
use crate::params::Params;
use crate::profile::ClientId;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use thiserror::Error;

/// What a client says of its work in one round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The round that the work belongs to.
    pub round: u32,
    /// Optimiser steps made.
    pub steps: u64,
    /// lr ‖a‖₁ of those steps: how far a constant gradient of one would have carried.
    pub reach: f64,
    /// Mean loss per sample of the first and of the last local epoch.
    pub losses: [f64; 2],
    /// Whether the client had the memory that its job names; true where there is nothing to remember.
    pub remembers: bool,
}

/// What a client sends back.
#[derive(Clone, Debug, PartialEq)]
pub struct Upload {
    /// Who.
    pub client: ClientId,
    /// Its trained model w_k.
    pub params: Params,
    /// By how much each carried vector changed.
    pub carried: Memory,
    /// What it says of its work.
    pub report: Report,
}

/// How one client's job ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Who.
    pub client: ClientId,
    /// A report, or why there is none.
    pub answer: Result<Report, ClientFailure>,
}

/// A part of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// The model: all tensors.
    Model,
    /// The change of a carried vector.
    Carried(&'a str),
}

/// An update could not be read back. The round is not closed and nothing is lost.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("the update of client {client} cannot be read back: {why}")]
pub struct ReadFailure {
    /// Whose.
    pub client: ClientId,
    /// What the store said.
    pub why: String,
}

/// The updates of one round, in client order.
pub trait Updates {
    /// How each client's job ended, in client order.
    fn outcomes(&self) -> &[Outcome];
    /// How many numbers a part of outcome `index` has; 0 where it has no such part.
    fn len(&self, index: usize, part: Part<'_>) -> usize;
    /// Reads a range of a part of outcome `index`.
    fn read(
        &self,
        index: usize,
        part: Part<'_>,
        range: Range<usize>,
        out: &mut [f32],
    ) -> Result<(), ReadFailure>;
}

/// Numbers read at once from each update: small enough for a core's cache.
pub const BLOCK: usize = 4096;

/// The updates that passed every check, in client order.
pub struct Accepted<'a> {
    updates: &'a dyn Updates,
    indices: Vec<usize>,
    reports: Vec<Report>,
}

impl<'a> Accepted<'a> {
    pub(crate) fn new(updates: &'a dyn Updates, indices: Vec<usize>, reports: Vec<Report>) -> Self {
        Self { updates, indices, reports }
    }

    /// What each accepted client says of its work.
    pub fn reports(&self) -> &[Report] {
        &self.reports
    }

    /// Reads a range of a part of the k-th accepted update.
    pub fn read(
        &self,
        k: usize,
        part: Part<'_>,
        range: Range<usize>,
        out: &mut [f32],
    ) -> Result<(), ReadFailure> {
        self.updates.read(self.indices[k], part, range, out)
    }

    /// Σ_k factor_k x_k over a range of a part, in f64 and in client order.
    pub fn weighted_sum(
        &self,
        part: Part<'_>,
        range: Range<usize>,
        factors: &[f64],
    ) -> Result<Vec<f64>, ReadFailure> {
        let mut sum = vec![0.0; range.len()];
        let mut block = vec![0.0; BLOCK.min(range.len())];
        for (place, sums) in sum.chunks_mut(BLOCK).enumerate() {
            let start = range.start + place * BLOCK;
            let block = &mut block[..sums.len()];
            for (k, factor) in factors.iter().enumerate() {
                self.read(k, part, start..start + sums.len(), block)?;
                for (sum, &x) in sums.iter_mut().zip(&*block) {
                    *sum += factor * f64::from(x);
                }
            }
        }
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
    /// Collects answers that may have arrived in any order. The same answer twice counts once; a client that
    /// gave two different ones does not count.
    pub fn new(mut answers: Vec<(ClientId, Result<Upload, ClientFailure>)>) -> Self {
        // Floating-point sums depend on their order; arrival order is not reproducible.
        answers.sort_by_key(|(client, _)| *client);
        answers.dedup_by(|later, first| {
            let again = later.0 == first.0;
            if again && later.1 != first.1 {
                first.1 = Err(ClientFailure::Twice);
            }
            again
        });
        let (mut outcomes, mut uploads) = (Vec::new(), Vec::new());
        for (client, answer) in answers {
            let (answer, upload) = match answer {
                Ok(upload) => (Ok(upload.report), Some((upload.params, upload.carried))),
                Err(failure) => (Err(failure), None),
            };
            outcomes.push(Outcome { client, answer });
            uploads.push(upload);
        }
        Self { outcomes, uploads }
    }

    fn part(&self, index: usize, part: Part<'_>) -> Option<&[f32]> {
        let (params, carried) = self.uploads[index].as_ref()?;
        match part {
            Part::Model => Some(&params.values),
            Part::Carried(name) => carried.f32(name),
        }
    }
}

impl Updates for InMemory {
    fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }

    fn len(&self, index: usize, part: Part<'_>) -> usize {
        self.part(index, part).map_or(0, <[f32]>::len)
    }

    fn read(
        &self,
        index: usize,
        part: Part<'_>,
        range: Range<usize>,
        out: &mut [f32],
    ) -> Result<(), ReadFailure> {
        let client = self.outcomes[index].client;
        let missing = || ReadFailure { client, why: format!("it has no {}..{}", range.start, range.end) };
        let values =
            self.part(index, part).and_then(|values| values.get(range.clone())).ok_or_else(missing)?;
        out.copy_from_slice(values);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use std::sync::Arc;

    fn answer(client: ClientId, value: f32) -> (ClientId, Result<Upload, ClientFailure>) {
        let params = Params { layout: Arc::new(Layout::vector(1)), values: vec![value] };
        let report = Report { round: 0, steps: 1, reach: 0.1, losses: [1.0, 1.0], remembers: true };
        (client, Ok(Upload { client, params, carried: Memory::default(), report }))
    }

    #[test]
    fn an_answer_that_comes_twice_counts_once_and_two_different_ones_do_not_count() {
        for answers in [
            vec![answer(2, 1.0), answer(1, 5.0), answer(2, 1.0), answer(1, 6.0), answer(1, 5.0)],
            vec![answer(1, 5.0), answer(1, 5.0), answer(1, 6.0), answer(2, 1.0)],
        ] {
            let updates = InMemory::new(answers);
            let outcomes: Vec<_> = updates.outcomes().iter().map(|o| (o.client, o.answer.is_ok())).collect();
            assert_eq!(outcomes, [(1, false), (2, true)]);
            assert_eq!(updates.outcomes()[0].answer, Err(ClientFailure::Twice));
        }
    }
}
