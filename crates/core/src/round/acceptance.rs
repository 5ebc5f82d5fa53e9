//! Checks an update completely, in a single pass over its values as they arrive. The result is a [`Checked`], and only
//! that can be aggregated.

use crate::memory::Array;
use crate::model::{Layout, Params, Role};
use crate::round::{ClientFailure, Job, Report, UpdatePart, Upload};
use crate::rules::Needs;
use std::ops::Range;
use std::sync::Arc;

/// An update that passed every check, without its values. Only an [`Inspection`] creates one.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    report: Report,
    norm: f64,
    buffer_norm: f64,
    carried_norms: Vec<f64>,
}

impl Checked {
    /// The client's report on the round.
    pub fn report(&self) -> Report {
        self.report
    }

    /// ‖w_k − w_t‖ over the trainable tensors.
    pub fn norm(&self) -> f64 {
        self.norm
    }

    /// Length of its change of the buffers.
    pub(crate) fn buffer_norm(&self) -> f64 {
        self.buffer_norm
    }

    /// Length of its change of each carried vector, in the order of [`Needs::carries`].
    pub(crate) fn carried_norms(&self) -> &[f64] {
        &self.carried_norms
    }
}

/// The check of one update while its values arrive: each part in order, in pieces of any length.
#[derive(Debug)]
pub struct Inspection {
    report: Report,
    base: Arc<Params>,
    parts: Vec<PartProgress>,
    /// Ranges in which no value may be negative, with the names of their tensors.
    variances: Vec<(Range<usize>, String)>,
    /// Sum of squared changes of the trainable tensors and of the buffers.
    squares: [f64; 2],
}

#[derive(Debug)]
struct PartProgress {
    part: UpdatePart<'static>,
    expected: usize,
    got: usize,
    /// Sum of the squares of a carried change.
    square: f64,
}

/// The name of a part in failure messages.
fn name(part: UpdatePart<'_>) -> &str {
    match part {
        UpdatePart::Model => "the model",
        UpdatePart::Carried(name) => name,
    }
}

impl Inspection {
    /// Checks the report of a client with `size` samples; its values follow.
    pub fn new(needs: &Needs, size: u64, job: &Job, report: Report) -> Result<Self, ClientFailure> {
        check_report(needs, size, job, &report)?;
        let (offer, got) = (&job.offer, report.branch);
        let (first, last) = (offer.branch, offer.branch + offer.others.len() as u32);
        let base = offer.model(got).ok_or(ClientFailure::WrongBranch { got, first, last })?;
        let base = Arc::clone(base);
        let layout = &base.layout;
        let carried = needs.carries.iter();
        let carried = carried.map(|carried| (UpdatePart::Carried(carried.name), carried.extent.len(layout)));
        let parts = carried.chain([(UpdatePart::Model, layout.len())]);
        let parts =
            parts.map(|(part, expected)| PartProgress { part, expected, got: 0, square: 0.0 }).collect();
        Ok(Self { report, parts, variances: variances(layout), squares: [0.0; 2], base })
    }

    /// Checks the next values of a part.
    pub fn values(&mut self, part: UpdatePart<'_>, values: &[f32]) -> Result<(), ClientFailure> {
        let name = name(part);
        let wrong = |got, expected| ClientFailure::WrongShape { part: name.to_owned(), got, expected };
        let Some(progress) = self.parts.iter_mut().find(|progress| progress.part == part) else {
            let why = format!("it holds {name:?}, which the strategy does not use");
            return Err(ClientFailure::Unreadable(why));
        };
        let start = progress.got;
        progress.got += values.len();
        if progress.got > progress.expected {
            return Err(wrong(progress.got, progress.expected));
        }
        if let Some(place) = values.iter().position(|value| !value.is_finite()) {
            return Err(not_finite(name, start + place, values[place]));
        }
        if part == UpdatePart::Model {
            self.check_variances(start, values)?;
            self.measure(start, values);
        } else {
            // One by one, so that the sum does not depend on the pieces in which values arrive.
            values.iter().for_each(|&x| progress.square += f64::from(x) * f64::from(x));
        }
        Ok(())
    }

    /// Adds the squared changes of the model's values from `start` on.
    fn measure(&mut self, start: usize, values: &[f32]) {
        let trainable = self.base.trainable().len();
        let (tensors, buffers) = values.split_at(trainable.saturating_sub(start).min(values.len()));
        let base = &self.base.values[start..start + values.len()];
        let (old_tensors, old_buffers) = base.split_at(tensors.len());
        for (square, (new, old)) in
            self.squares.iter_mut().zip([(tensors, old_tensors), (buffers, old_buffers)])
        {
            for (&x, &w) in new.iter().zip(old) {
                let change = f64::from(x) - f64::from(w);
                *square += change * change;
            }
        }
    }

    fn check_variances(&self, start: usize, values: &[f32]) -> Result<(), ClientFailure> {
        for (range, tensor) in &self.variances {
            let (from, to) = (range.start.max(start), range.end.min(start + values.len()));
            let here = values.get(from.saturating_sub(start)..to.saturating_sub(start)).unwrap_or_default();
            if let Some(&value) = here.iter().find(|value| **value < 0.0) {
                return Err(ClientFailure::NegativeVariance { tensor: tensor.clone(), value });
            }
        }
        Ok(())
    }

    /// The checked update, if all its values have arrived.
    pub fn finish(self) -> Result<Checked, ClientFailure> {
        if let Some(part) = self.parts.iter().find(|part| part.got != part.expected) {
            let &PartProgress { part, expected, got, .. } = part;
            return Err(ClientFailure::WrongShape { part: name(part).to_owned(), got, expected });
        }
        let [norm, buffer_norm] = self.squares.map(f64::sqrt);
        let carried = self.parts.iter().filter(|progress| progress.part != UpdatePart::Model);
        let carried = carried.map(|progress| progress.square.sqrt());
        Ok(Checked { report: self.report, norm, buffer_norm, carried_norms: carried.collect() })
    }
}

/// Checks an update that is in memory, in the order of its encoding: carried vectors by name, then the model.
pub fn check(needs: &Needs, size: u64, job: &Job, upload: &Upload) -> Result<Checked, ClientFailure> {
    let mut inspection = Inspection::new(needs, size, job, upload.report)?;
    for (name, array) in upload.carried.arrays() {
        let Array::F32(values) = array else { continue };
        inspection.values(UpdatePart::Carried(name), values)?;
    }
    inspection.values(UpdatePart::Model, &upload.params.values)?;
    inspection.finish()
}

fn variances(layout: &Layout) -> Vec<(Range<usize>, String)> {
    let variances = layout.tensors().iter().filter(|tensor| tensor.role == Role::RunningVariance);
    variances.map(|tensor| (tensor.range(), tensor.name.clone())).collect()
}

fn check_report(needs: &Needs, size: u64, job: &Job, report: &Report) -> Result<(), ClientFailure> {
    let expected = job.offer.round;
    if report.round != expected {
        return Err(ClientFailure::WrongRound { got: report.round, expected });
    }
    let local = &job.offer.local;
    let most = local.most_steps(size);
    if report.steps == 0 || report.steps > most {
        return Err(ClientFailure::Steps { steps: report.steps, most });
    }
    let [least, greatest] = local.reaches(needs.mu, size);
    let chosen = needs.least_lr.map(|lr| local.with_lr(lr.min(local.optimizer.lr())).reaches(needs.mu, size));
    let least = chosen.map_or(least, |[chosen, _]| chosen.min(least));
    // The client computed its reach with the same arithmetic; the slack covers rounding on another machine and over
    // very many steps.
    let slack = (most as f64 * f64::EPSILON).max(1e-9);
    if !(least * (1.0 - slack)..=greatest * (1.0 + slack)).contains(&report.reach) {
        return Err(ClientFailure::Reach { reach: report.reach.to_string(), least, greatest });
    }
    match report.losses.iter().position(|loss| !loss.is_finite()) {
        None => Ok(()),
        Some(place) => Err(not_finite("the loss", place, report.losses[place])),
    }
}

fn not_finite(part: &str, place: usize, value: impl ToString) -> ClientFailure {
    ClientFailure::NotFinite { part: part.to_owned(), place, value: value.to_string() }
}
