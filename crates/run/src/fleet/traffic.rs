//! The exact number of bytes that a federation would have sent in a simulated round.

use crate::fleet::Traffic;
use fedtvd_core::memory::Memory;
use fedtvd_core::round::{Job, Updates, Upload};

impl Traffic {
    /// Counts the bytes of these jobs and of their uploads.
    pub fn of(jobs: &[Job], updates: &dyn Updates) -> Self {
        let Some(first) = jobs.first() else { return Self::default() };
        let offer = &first.offer;
        let numbers = |memory: &Memory| memory.arrays().map(|(_, array)| array.len()).sum::<usize>();
        let values = 4 * (offer.params.values.len() + numbers(&offer.carried)) as u64;
        let further = |job: &Job| {
            let others = job.offer.others.iter().map(|model| model.values.len()).sum::<usize>();
            4 * (numbers(&job.offer.own) + others) as u64
        };
        let down = jobs.iter().map(|job| job.head().len() as u64 + values + further(job)).sum();
        let answered = updates
            .outcomes()
            .iter()
            .filter_map(|outcome| Some((outcome.client, outcome.answer.as_ref().ok()?)));
        let up = answered.map(|(client, checked)| {
            Upload::head(client, checked.report(), &offer.params, &offer.carried).len() as u64 + values
        });
        Self { up: up.sum(), down }
    }
}
