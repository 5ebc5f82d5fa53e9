//! An attack with its settings: everything that one liar does differently from an honest client.

use crate::attack::{ALL, Claim, Honest, Place, Situation, Spec};
use fedtvd_core::labels::{Reference, size};
use fedtvd_core::round::{Job, Upload};
use fedtvd_core::train::{Evaluation, Samples};
use std::fmt;
use std::sync::Arc;

/// An attack with its settings.
#[derive(Clone, Copy, Debug)]
pub struct Attack {
    spec: &'static Spec,
    scale: f64,
    size: u64,
}

/// The largest size to claim: far below what enrolment refuses.
pub const LARGEST_SIZE: u64 = 50_000_000;

impl Attack {
    /// The attack of this name. A scale of 0 is the attack's own default; `size` is what a false profile claims.
    pub fn named(name: &str, scale: f64, size: u64) -> Option<Self> {
        let spec = ALL.iter().find(|spec| spec.name == name)?;
        let own = spec.scale.unwrap_or(1.0);
        Some(Self { spec, scale: if scale == 0.0 { own } else { scale }, size })
    }

    /// Its definition.
    pub fn spec(&self) -> &'static Spec {
        self.spec
    }

    /// Whether it acts there.
    pub fn acts_on(&self, place: Place) -> bool {
        self.spec.places().contains(&place)
    }

    /// The samples that a liar with these rows trains on; the other rows stay as they are.
    pub fn samples(&self, samples: &Arc<Samples>, rows: &[u32]) -> Arc<Samples> {
        match self.spec.label {
            None => Arc::clone(samples),
            Some(label) => {
                let classes = samples.classes();
                Arc::new(Samples::clone(samples).relabelled(rows, |own| label(own, classes)))
            }
        }
    }

    /// The label counts that a client with these counts claims; its size and its label statistic follow from them.
    pub fn counts(&self, counts: &[u64], reference: &Reference) -> Vec<u64> {
        match self.spec.counts {
            None => counts.to_vec(),
            Some(claimed) => claimed(&Claim { counts, reference, size: self.size }),
        }
    }

    /// The size that a client with these counts claims.
    pub fn size(&self, counts: &[u64], reference: &Reference) -> u64 {
        size(&self.counts(counts, reference))
    }

    /// Changes the update of a client with these counts, under a strategy with this proximal term. An attack of liars that
    /// collude changes nothing unless they know the round's honest updates.
    pub fn update(&self, upload: &mut Upload, job: &Job, mu: f64, counts: &[u64], honest: Option<&Honest>) {
        if let Some(update) = self.spec.update {
            let size = self.size(counts, &job.offer.reference);
            let branch = upload.report.branch;
            update(upload, &Situation { job, branch, mu, size, scale: self.scale, honest });
        }
    }

    /// The evaluation that it reports on a hold-out of this size; `None` for the true one.
    pub fn evaluation(&self, classes: usize, holdout: u64) -> Option<Evaluation> {
        self.spec.evaluation.map(|evaluation| evaluation(classes, holdout))
    }
}

impl fmt::Display for Attack {
    /// Its name and its settings, such as `scale, scale 100`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.spec.name)?;
        if self.spec.scale.is_some() && self.scale > 0.0 {
            write!(f, ", scale {}", self.scale)?;
        }
        if self.spec.sized() {
            write!(f, ", size {}", self.size)?;
        }
        Ok(())
    }
}
