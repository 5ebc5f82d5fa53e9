//! The updates of a round as the server reads them: from memory, or from a spool file block by block.

use crate::memory::Memory;
use crate::model::Params;
use crate::round::drift::DriftSum;
use crate::round::{Checked, ClientFailure, ClientId, Drift};
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
    /// The branch whose model it trained; 0 if there is only one.
    #[serde(default, skip_serializing_if = "is_first")]
    pub branch: u32,
}

/// Whether a branch is the first: then it is left out, so that the bytes of strategies with one model stay as they were.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
pub(crate) fn is_first(branch: &u32) -> bool {
    *branch == 0
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

/// The accepted updates of a round, in client order. Each value is read once, the drift is computed while the rule
/// combines; twice if a server rule sums over clients.
pub struct Accepted<'a> {
    updates: &'a dyn Updates,
    clients: Vec<AcceptedClient>,
    reports: Vec<Report>,
    greatest_reach: f64,
    base: &'a Params,
    drift: DriftSum<'a>,
}

/// An update that counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AcceptedClient {
    /// Its place among the outcomes.
    pub(crate) index: usize,
    /// The factor of screening on its changes; 1 leaves its values as they are.
    pub(crate) factor: f64,
}

impl<'a> Accepted<'a> {
    pub(crate) fn new(
        updates: &'a dyn Updates,
        clients: Vec<AcceptedClient>,
        reports: Vec<Report>,
        greatest_reach: f64,
        base: &'a Params,
        weights: &'a [f64],
    ) -> Self {
        Self { updates, clients, reports, greatest_reach, base, drift: DriftSum::new(base, weights) }
    }

    /// The reports of the accepted clients.
    pub fn reports(&self) -> &[Report] {
        &self.reports
    }

    /// The greatest reach that counts in a mean of reaches; infinite unless claims are distrusted.
    pub fn greatest_reach(&self) -> f64 {
        self.greatest_reach
    }

    /// How far the clients' models drifted, if the rule read all of them.
    pub(crate) fn drift(&self) -> Option<Drift> {
        self.drift.finish()
    }

    /// How far each client's change was from those of the others, if the rule read all of them.
    pub(crate) fn distances(&self) -> Vec<Option<f64>> {
        self.drift.distances()
    }

    /// Visits a range of a part block by block, with the block's start in the range and each client's values.
    pub fn blocks(
        &mut self,
        part: UpdatePart<'_>,
        range: Range<usize>,
        mut visit: impl FnMut(usize, &[Vec<f32>]),
    ) -> Result<(), ReadFailure> {
        let mut blocks = vec![vec![0.0; BLOCK.min(range.len())]; self.clients.len()];
        for start in (0..range.len()).step_by(BLOCK) {
            let len = BLOCK.min(range.len() - start);
            let first = range.start + start;
            for (block, &AcceptedClient { index, factor }) in blocks.iter_mut().zip(&self.clients) {
                block.truncate(len);
                self.updates.read(index, part, first..first + len, block)?;
                if factor < 1.0 {
                    let base = match part {
                        UpdatePart::Model => self.base.values.get(first..first + len),
                        UpdatePart::Carried(_) => None,
                    };
                    scale(block, base, factor);
                }
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

/// base + factor (x - base), in place; the base of a change is 0.
fn scale(values: &mut [f32], base: Option<&[f32]>, factor: f64) {
    for (place, x) in values.iter_mut().enumerate() {
        let w = base.and_then(|base| base.get(place)).map_or(0.0, |&w| f64::from(w));
        *x = (w + factor * (f64::from(*x) - w)) as f32;
    }
}
