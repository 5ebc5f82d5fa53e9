//! Every check of an update, complete before any of its numbers can touch the sum.

use crate::failure::ClientFailure;
use crate::job::Job;
use crate::layout::{Layout, Role};
use crate::profile::Profile;
use crate::run::Run;
use crate::updates::{BLOCK, Outcome, Part, ReadFailure, Report, Updates};

/// The report of an update that may count, or why it may not.
pub(crate) fn check(
    run: &Run,
    job: &Job,
    profile: &Profile,
    updates: &dyn Updates,
    index: usize,
) -> Result<Result<Report, ClientFailure>, ReadFailure> {
    let Outcome { answer, .. } = &updates.outcomes()[index];
    let report = match answer {
        Ok(report) => *report,
        Err(failure) => return Ok(Err(failure.clone())),
    };
    if let Err(failure) = check_report(run, job, profile, &report) {
        return Ok(Err(failure));
    }
    let layout = &job.offer.params.layout;
    let carried = run.strategy.local.needs().carries.iter();
    let carried = carried.map(|carried| (Part::Carried(carried.name), carried.extent.len(layout)));
    for (part, expected) in std::iter::once((Part::Model, layout.len())).chain(carried) {
        if let Err(failure) = check_part(updates, index, part, expected)? {
            return Ok(Err(failure));
        }
    }
    Ok(check_variances(layout, updates, index)?.map(|()| report))
}

fn check_report(run: &Run, job: &Job, profile: &Profile, report: &Report) -> Result<(), ClientFailure> {
    let expected = job.offer.round;
    if report.round != expected {
        return Err(ClientFailure::WrongRound { got: report.round, expected });
    }
    let local = &job.offer.local;
    let most = local.most_steps(profile.size);
    if report.steps == 0 || report.steps > most {
        return Err(ClientFailure::Steps { steps: report.steps, most });
    }
    let [least, greatest] = local.reaches(run.strategy.local.needs().mu, profile.size);
    // The client computed its reach with the same arithmetic; the slack is for another machine's rounding, and for
    // that of very many steps.
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

fn check_part(
    updates: &dyn Updates,
    index: usize,
    part: Part<'_>,
    expected: usize,
) -> Result<Result<(), ClientFailure>, ReadFailure> {
    let name = match part {
        Part::Model => "the model",
        Part::Carried(name) => name,
    };
    let got = updates.len(index, part);
    if got != expected {
        return Ok(Err(ClientFailure::WrongShape { part: name.to_owned(), got, expected }));
    }
    let mut block = vec![0.0; BLOCK.min(expected)];
    for start in (0..expected).step_by(BLOCK) {
        let block = &mut block[..BLOCK.min(expected - start)];
        updates.read(index, part, start..start + block.len(), block)?;
        if let Some(place) = block.iter().position(|value| !value.is_finite()) {
            return Ok(Err(not_finite(name, start + place, block[place])));
        }
    }
    Ok(Ok(()))
}

fn check_variances(
    layout: &Layout,
    updates: &dyn Updates,
    index: usize,
) -> Result<Result<(), ClientFailure>, ReadFailure> {
    for tensor in layout.tensors().iter().filter(|tensor| tensor.role == Role::RunningVariance) {
        let mut values = vec![0.0; tensor.len()];
        updates.read(index, Part::Model, tensor.range(), &mut values)?;
        if let Some(&value) = values.iter().find(|value| **value < 0.0) {
            let failure = ClientFailure::NegativeVariance { tensor: tensor.name.clone(), value };
            return Ok(Err(failure));
        }
    }
    Ok(Ok(()))
}
