//! The end of a round in which the units of the clients' networks are matched, in place of combination and server step.

use crate::labels::Statistic;
use crate::matching::{Cycle, Sent};
use crate::memory::Memory;
use crate::model::Params;
use crate::round::{Accepted, Profile, ReadFailure, Run, State, UpdatePart};
use crate::stream::{Key, Purpose};

/// The next model and what the server remembers of the matching; `None` if the model would be too large.
pub(crate) fn model(
    run: &Run,
    state: &State,
    cycle: Cycle,
    profiles: &[&Profile],
    accepted: &mut Accepted<'_>,
    weights: &[f64],
) -> Result<Option<(Params, Memory)>, ReadFailure> {
    let Some(matching) = &run.strategy.matching else { return Ok(None) };
    let len = state.params.values.len();
    let mut values = vec![Vec::with_capacity(len); profiles.len()];
    accepted.blocks(UpdatePart::Model, 0..len, |_, blocks| {
        values.iter_mut().zip(blocks).for_each(|(values, block)| values.extend_from_slice(block));
    })?;
    let sent = values.into_iter().zip(profiles).zip(weights).map(|((values, profile), &weight)| {
        let counts = match &profile.statistic {
            Statistic::Histogram(counts) => Some(counts.as_slice()),
            _ => None,
        };
        Sent { client: profile.client, values, weight, counts }
    });
    let mut order = Key::of(run.seed).at(Purpose::Matching, state.round, 0).stream(0);
    Ok(cycle.close(matching, &state.params, &sent.collect::<Vec<_>>(), &mut order))
}
