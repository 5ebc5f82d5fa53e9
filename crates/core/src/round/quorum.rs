//! How many updates a round needs before it changes the model:
//!
//! ```text
//! max(cohort.quorum, what the combination needs)                            in paper mode
//! max(cohort.quorum, what the combination needs, 3, half of the cohort)     in hardened mode
//! ```
//!
//! A rule that leaves out the most extreme of its clients protects nobody where there are too few to leave one out.

use crate::labels::Ask;
use crate::round::hardened::LEAST;
use crate::round::{Mode, Run, cohort_size};
use thiserror::Error;

/// A run whose rounds have too few clients to ever change the model.
#[derive(Clone, Debug, PartialEq, Error)]
#[error(
    "{needs} needs at least {least} clients per round, and cohort.fraction = {fraction} of {clients} clients selects \
     {cohort}; {remedy}"
)]
pub struct SmallCohort {
    /// What needs more: the mode or the strategy.
    pub needs: String,
    /// The fewest clients that it needs.
    pub least: usize,
    /// Fraction of the clients selected per round.
    pub fraction: f64,
    /// Number of clients.
    pub clients: usize,
    /// Number of clients per round.
    pub cohort: usize,
    /// What to change.
    pub remedy: String,
}

/// Fails if the rounds of this run over this number of clients could never change the model.
pub fn check_cohort(run: &Run, clients: usize) -> Result<(), SmallCohort> {
    let otherwise = "or set strategy.mode = paper, in which one client can take over the model";
    if run.mode == Mode::Hardened {
        check("strategy.mode = hardened", LEAST, otherwise, run.fraction, clients)?;
    }
    let name = format!("strategy.name = {}", run.strategy.label);
    let cohort = cohort_size(run.fraction, clients);
    if run.strategy.matching.is_some() && cohort < clients {
        let remedy = "set cohort.fraction = 1, since the networks of all clients are matched with each other";
        let (least, fraction, remedy) = (clients, run.fraction, remedy.to_owned());
        return Err(SmallCohort { needs: name, least, fraction, clients, cohort, remedy });
    }
    let otherwise =
        "or change the parameters of the combination, which with fewer clients leaves out none of them";
    check(&name, run.strategy.combine.least_clients(), otherwise, run.fraction, clients)
}

/// A strategy that selects clients by their labels, in rounds that leave it nothing to select.
#[derive(Clone, Debug, PartialEq, Error)]
#[error(
    "strategy.name = {strategy} selects the clients of a round by their labels, and cohort.fraction = {fraction} takes {}; {}",
    if *.cohort == 1 { "one, at random".to_owned() } else { format!("all {cohort}") },
    "set cohort.fraction so that a round has some of the clients, or leave the selection out, so that no label counts are collected"
)]
pub struct IdleSelection {
    /// The strategy's label.
    pub strategy: String,
    /// Fraction of the clients selected per round.
    pub fraction: f64,
    /// Number of clients per round.
    pub cohort: usize,
}

/// Fails if the rounds of this run over this number of clients leave its selection nothing to choose.
pub fn check_selection(run: &Run, clients: usize) -> Result<(), IdleSelection> {
    let cohort = cohort_size(run.fraction, clients).saturating_add(run.extra).min(clients);
    let idle = cohort == 1 || cohort == clients;
    if run.strategy.selection.asks() == Ask::Nothing || !idle {
        return Ok(());
    }
    Err(IdleSelection { strategy: run.strategy.label.clone(), fraction: run.fraction, cohort })
}

/// The smallest number of clients of which a round of this run selects enough.
pub fn fewest_clients(run: &Run) -> usize {
    fewest(least(run), run.fraction)
}

/// Number of updates without which a round with this cohort changes nothing.
pub(crate) fn quorum(run: &Run, cohort: usize) -> usize {
    let half = if run.mode == Mode::Hardened { cohort.div_ceil(2) } else { 1 };
    run.quorum.max(least(run)).max(half)
}

/// The fewest clients that mode and combination need.
fn least(run: &Run) -> usize {
    let of_mode = if run.mode == Mode::Hardened { LEAST } else { 1 };
    of_mode.max(run.strategy.combine.least_clients())
}

fn fewest(least: usize, fraction: f64) -> usize {
    match least {
        1 => 1,
        // Less than the rounding error that `cohort_size` forgives.
        least => (least as f64 / fraction - 1e-9).ceil() as usize,
    }
}

fn check(
    needs: &str,
    least: usize,
    otherwise: &str,
    fraction: f64,
    clients: usize,
) -> Result<(), SmallCohort> {
    let cohort = cohort_size(fraction, clients);
    if cohort >= least && clients >= least {
        return Ok(());
    }
    let remedy = if clients < least {
        format!("start with at least {least} clients, {otherwise}")
    } else {
        // Rounded up to what a person would type.
        let enough = (100.0 * least as f64 / clients as f64).ceil() / 100.0;
        format!("set cohort.fraction to {enough} or more, {otherwise}")
    };
    Err(SmallCohort { needs: needs.to_owned(), least, fraction, clients, cohort, remedy })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cohort_that_is_too_small_is_refused_with_what_to_set() {
        let refusal = |fraction, clients| {
            check("strategy.mode = hardened", 3, "or wait", fraction, clients).unwrap_err()
        };
        assert_eq!(
            refusal(0.1, 20).to_string(),
            "strategy.mode = hardened needs at least 3 clients per round, and cohort.fraction = 0.1 of 20 clients \
             selects 2; set cohort.fraction to 0.15 or more, or wait"
        );
        assert!(refusal(1.0, 2).to_string().ends_with("; start with at least 3 clients, or wait"));
        for least in [3, 5, 20] {
            for fraction in [1.0, 0.75, 0.5, 0.3, 0.29, 0.1, 1.0 / 3.0, 0.003] {
                let fewest = fewest(least, fraction);
                assert!(check("", least, "", fraction, fewest).is_ok(), "{fewest} for {fraction}");
                assert!(check("", least, "", fraction, fewest - 1).is_err(), "{fewest} for {fraction}");
            }
        }
        for clients in 3..200 {
            let enough = refusal(0.5 / clients as f64, clients).remedy;
            let enough = enough.split(' ').nth(3).unwrap().parse().unwrap();
            assert!(check("", 3, "", enough, clients).is_ok(), "{enough} of {clients}");
        }
    }
}
