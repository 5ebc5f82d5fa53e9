//! What a site would agree to by joining: what the server announces, beside what the site's policy allows. Whatever the
//! server announces, every job is checked again when it arrives.

use crate::client::JoinError;
use crate::client::outgoing::reference_key;
use crate::client::policy::{Disclosure, Policy, Violation};
use crate::client::sent_log::SentLog;
use crate::wire;
use fedtvd_core::labels::Ask;
use fedtvd_core::model::{Layout, ModelDefinition};
use fedtvd_core::rules::notation;
use fedtvd_core::train::Optimizer;
use fedtvd_run::backend::{BackendError, Device};

/// Checks what the server's welcome announces.
pub(crate) fn check_welcome(policy: &Policy, welcome: &wire::Welcome) -> Result<(), Violation> {
    policy.check_strategy(&welcome.strategy)?;
    // A strategy that this version does not know is refused with the first job.
    let strategy = notation::strategy(&welcome.strategy, []);
    policy.check_epochs(strategy.map_or(u64::from(welcome.epochs), |it| it.local.epochs(welcome.epochs)))?;
    // A statistic that cannot be read is refused when the survey asks for it.
    serde_json::from_str(&welcome.ask).map_or(Ok(()), |ask| policy.check_statistic(ask))
}

/// Checks the reference distribution that the server's welcome announces: a distance to it may be one too many. Another one is
/// checked when the survey names it.
pub(crate) fn check_announced_reference(sent: &SentLog, welcome: &wire::Welcome) -> Result<(), JoinError> {
    match serde_json::from_str(&welcome.ask) {
        Ok(ask) if !welcome.reference.is_empty() => {
            sent.check_survey(ask, &reference_key(ask == Ask::Released, &welcome.reference))
        }
        // A server of an earlier version announces none.
        _ => Ok(()),
    }
}

/// Checks a model's size and the memory that training it takes, before any of it is allocated.
pub(crate) fn check_memory(
    policy: &Policy,
    (device, definition, layout): (&Device, &ModelDefinition, &Layout),
    batch: usize,
    optimizer: &Optimizer,
) -> Result<Result<(), Violation>, BackendError> {
    let model = policy.check_model(4 * layout.len() as u128);
    let memory = device.training_memory(definition, batch, optimizer)?;
    Ok(model.and_then(|()| policy.check_memory(memory)))
}

/// How much larger than at the beginning a model of growing widths may become: four times the width in all layers.
pub(crate) const GROWTH: usize = 16;

/// The largest job for a model of this layout: this many models, two carried vectors as long as one, and a head.
pub(crate) fn largest_job(layout: &Layout, models: usize) -> u64 {
    (8 + 4 * models as u64) * layout.len() as u64 + (1 << 20)
}

/// What would leave the site, in plain words: with the statistics of this number of columns. Its data set was compared with this
/// number of references before.
pub(crate) fn disclosures(
    policy: &Policy,
    welcome: &wire::Welcome,
    columns: usize,
    references: usize,
) -> Vec<String> {
    let mut leaves = vec!["at enrolment: number of training samples, size of the hold-out".to_owned()];
    match serde_json::from_str(&welcome.ask) {
        Ok(Ask::Nothing) => {}
        Ok(ask @ (Ask::Distance | Ask::Released)) if welcome.reference.is_empty() && references > 0 && !policy.histogram() => leaves.push(format!(
            "at enrolment: {ask}, if the reference is one of the {references} that this data set was compared with for the same \
             authority, or if the policy allows another (references = {})",
            policy.references
        )),
        Ok(ask) => leaves.push(format!("at enrolment: {ask}")),
        Err(_) => leaves.push("at enrolment: a label statistic that this version does not know".to_owned()),
    }
    if columns > 0 {
        let plural = if columns == 1 { "" } else { "s" };
        leaves.push(format!(
            "before the first round: count, mean and sum of squared deviations of {columns} column{plural}"
        ));
    }
    leaves.push(
        "in each round: the trained model, vectors that the strategy sends with it, number of steps, reach, mean training loss \
         of the first and of the last epoch; or why there is no update"
            .to_owned(),
    );
    if welcome.clients_evaluate {
        leaves.push(match policy.evaluation {
            Disclosure::Nothing => "after each round: nothing about the hold-out".to_owned(),
            Disclosure::Counts => "after each round: correct, total and loss on the hold-out".to_owned(),
            Disclosure::Confusion => "after each round: confusion matrix and loss on the hold-out".to_owned(),
        });
    }
    leaves
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_count_with_all_that_a_strategy_trains_at_the_site() {
        let policy = Policy { epochs: 10, ..Policy::default() };
        let check = |strategy: &str, epochs| {
            let welcome = wire::Welcome { strategy: strategy.into(), epochs, ..Default::default() };
            check_welcome(&policy, &welcome).map_err(|violation| violation.to_string())
        };
        let refused = |epochs| Err(format!("the site's policy does not allow {epochs} epochs (epochs = 10)"));
        assert_eq!(check("fedavg", 10), Ok(()));
        assert_eq!(check("fedavg", 11), refused(11));
        assert_eq!((check("ditto", 5), check("ditto", 6)), (Ok(()), refused(12)));
        assert_eq!(check("ditto:own_epochs=9", 2), refused(11));
        assert_eq!(
            (check("fedrep:head_epochs=8", 2), check("fedrep:head_epochs=8", 3)),
            (Ok(()), refused(11))
        );
        assert_eq!(check("fedala:mixing_epochs=9", 2), refused(11));
    }
}
