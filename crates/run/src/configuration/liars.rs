//! The clients that lie in a simulation: `attack.*` and `cohort.liars` of a configuration.

use crate::attack::{Attack, NONE, Place};
use crate::configuration::{Config, Value};
use fedtvd_core::round::{ClientId, Run, Stratum, cohort_size};
use fedtvd_core::train::Samples;
use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// The liars of a simulation: its first clients, which all attack in the same way.
#[derive(Clone, Copy, Debug)]
pub struct Liars {
    /// What they do.
    pub attack: Attack,
    /// Number of liars: clients 0 to `clients - 1`.
    pub clients: usize,
    /// Number of liars in every round; `None` if they are selected like all others.
    pub per_round: Option<usize>,
}

/// Why the liars of a configuration are impossible.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum LiarsError {
    /// An attack that needs clients that evaluate the model.
    #[error(
        "attack.kind = {0} acts on evaluations by clients, and in a simulation the server evaluates; use fedtvd join \
         --attack {0} in a federation whose server has no test set"
    )]
    Evaluation(&'static str),
    /// More liars per round than liars.
    #[error("cohort.liars = {per_round} is more than attack.clients = {clients}")]
    TooFewLiars {
        /// Liars per round.
        per_round: usize,
        /// Liars.
        clients: usize,
    },
    /// More liars than clients.
    #[error("attack.clients = {clients} is more than the {all} clients of this split")]
    TooFewClients {
        /// Liars.
        clients: usize,
        /// Clients.
        all: usize,
    },
    /// An attack that imitates honest clients, and rounds without any.
    #[error(
        "attack.kind = {kind} is computed from a round's honest clients, and all {cohort} clients of a round lie; {kind} needs one that does not"
    )]
    NobodyHonest {
        /// The attack.
        kind: &'static str,
        /// Clients per round.
        cohort: usize,
    },
    /// More liars per round than clients per round.
    #[error("cohort.liars = {per_round} is more than the number of clients per round, {cohort}")]
    Cohort {
        /// Liars per round.
        per_round: usize,
        /// Clients per round.
        cohort: usize,
    },
    /// Too few honest clients to fill a round.
    #[error(
        "cohort.liars = {per_round} leaves {needed} places of a round to honest clients, but with attack.clients = \
         {clients} only {honest} clients are honest"
    )]
    TooFewHonest {
        /// Liars per round.
        per_round: usize,
        /// Honest clients needed per round.
        needed: usize,
        /// Liars.
        clients: usize,
        /// Honest clients.
        honest: usize,
    },
}

impl Liars {
    /// Reads the liars of a configuration; `None` if nobody lies.
    pub(crate) fn of(config: &Config) -> Result<Option<Self>, LiarsError> {
        let whole = |path| match config.get(path) {
            Value::Whole(whole) => whole,
            other => unreachable!("{path} keeps whole numbers, not {other}"),
        };
        let scale = config.get("attack.scale").number().unwrap_or_default();
        let kind = config.get("attack.kind").bare();
        let Some(attack) = Attack::named(&kind, scale, whole("attack.size")) else {
            debug_assert!(kind == NONE, "attack.kind keeps the words of its key, not {kind}");
            return Ok(None);
        };
        if attack.acts_on(Place::Evaluation) {
            return Err(LiarsError::Evaluation(attack.spec().name));
        }
        let clients = whole("attack.clients") as usize;
        let per_round = Some(whole("cohort.liars") as usize).filter(|per_round| *per_round > 0);
        match per_round {
            Some(per_round) if per_round > clients => Err(LiarsError::TooFewLiars { per_round, clients }),
            per_round => Ok(Some(Self { attack, clients, per_round })),
        }
    }

    /// The stratum that fixes their number per round, if it is fixed.
    pub(crate) fn stratum(&self) -> Option<Stratum> {
        self.per_round.map(|count| Stratum { below: self.clients as ClientId, count })
    }

    /// Refuses liars that do not fit among this number of clients.
    pub(crate) fn check(&self, run: &Run, all: usize) -> Result<(), LiarsError> {
        let Self { clients, per_round, .. } = *self;
        if clients > all {
            return Err(LiarsError::TooFewClients { clients, all });
        }
        let cohort = cohort_size(run.fraction, all);
        if self.attack.spec().colludes && (clients == all || per_round == Some(cohort)) {
            return Err(LiarsError::NobodyHonest { kind: self.attack.spec().name, cohort });
        }
        let Some(per_round) = per_round else { return Ok(()) };
        if per_round > cohort {
            return Err(LiarsError::Cohort { per_round, cohort });
        }
        let (needed, honest) = (cohort - per_round, all - clients);
        if needed > honest {
            return Err(LiarsError::TooFewHonest { per_round, needed, clients, honest });
        }
        Ok(())
    }

    /// The samples that clients with these rows train on.
    pub(crate) fn samples(&self, samples: &Arc<Samples>, rows: &[&[u32]]) -> Arc<Samples> {
        self.attack.samples(samples, &rows[..self.clients].concat())
    }
}

impl fmt::Display for Liars {
    /// Such as `1 client lies (scale, scale 100)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.clients {
            1 => write!(f, "1 client lies")?,
            clients => write!(f, "{clients} clients lie")?,
        }
        if let Some(per_round) = self.per_round {
            write!(f, ", {per_round} per round")?;
        }
        write!(f, " ({})", self.attack)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::{Experiment, ExperimentError};

    fn liars(settings: &[&str]) -> Result<Option<String>, LiarsError> {
        let mut config = Config::default();
        settings.iter().for_each(|setting| config.set(setting).unwrap());
        match Experiment::of(&config) {
            Ok(experiment) => Ok(experiment.liars.map(|liars| liars.to_string())),
            Err(ExperimentError::Liars(error)) => Err(error),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn the_description_of_liars_resolves_the_scale() {
        let shown = |settings: &[&str]| liars(settings).unwrap().unwrap_or_default();
        assert_eq!(shown(&[]), "");
        assert_eq!(shown(&["attack.kind=scale"]), "1 client lies (scale, scale 100)");
        assert_eq!(shown(&["attack.kind=sign-flip"]), "1 client lies (sign-flip, scale 1)");
        assert_eq!(
            shown(&["attack.kind=sign-flip", "attack.scale=5", "attack.clients=3", "cohort.liars=2"]),
            "3 clients lie, 2 per round (sign-flip, scale 5)"
        );
        assert_eq!(shown(&["attack.kind=false-tvd"]), "1 client lies (false-tvd, size 1000000)");
    }

    #[test]
    fn impossible_liars_are_refused_with_the_numbers() {
        let refusal = |settings: &[&str]| liars(settings).unwrap_err().to_string();
        assert_eq!(
            refusal(&["attack.kind=nan", "cohort.liars=2"]),
            "cohort.liars = 2 is more than attack.clients = 1"
        );
        assert!(
            refusal(&["attack.kind=false-evaluation"]).starts_with("attack.kind = false-evaluation acts on")
        );
        let mut config = Config::default();
        for setting in ["attack.kind=nan", "attack.clients=8", "cohort.fraction=0.5", "cohort.liars=2"] {
            config.set(setting).unwrap();
        }
        let Experiment { run, liars, .. } = Experiment::of(&config).unwrap();
        let refusal = |all| liars.unwrap().check(&run, all).map_err(|error| error.to_string());
        assert_eq!(refusal(12), Ok(()));
        assert_eq!(refusal(7), Err("attack.clients = 8 is more than the 7 clients of this split".to_owned()));
        assert_eq!(
            refusal(8),
            Err("cohort.liars = 2 leaves 2 places of a round to honest clients, but with attack.clients = 8 only 0 \
                 clients are honest"
                .to_owned())
        );
        let one = Run { fraction: 0.1, ..run.clone() };
        let refused = liars.unwrap().check(&one, 12).unwrap_err().to_string();
        assert_eq!(refused, "cohort.liars = 2 is more than the number of clients per round, 1");
    }
}
