//! Local training of a configuration: optimiser, clipping, label smoothing and schedule, and which keys go together.

use crate::configuration::config::Config;
use crate::configuration::effects::{USERS, overruled};
use crate::configuration::experiment::{flag, number, text, whole};
use fedtvd_core::rules::Strategy;
use fedtvd_core::settings::Range;
use fedtvd_core::train::{Adam, Decay, Local, Optimizer, Schedule, Sgd};
use thiserror::Error;

/// The values of `local.schedule`.
pub(crate) const SCHEDULES: &[&str] = &["constant", EXPONENTIAL, "step", "cosine"];
/// The default, which is constant unless `local.round_decay` is set.
pub(crate) const EXPONENTIAL: &str = "exponential";

/// Why the keys of local training do not go together.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum TrainingError {
    /// Nesterov's momentum without momentum.
    #[error("local.nesterov = true needs a momentum; local.momentum is 0")]
    Nesterov,
    /// A key that was changed and has no effect.
    #[error("{given} has no effect with {chosen}; leave it out, or use {}", users.join(" or "))]
    NoEffect {
        /// The key and its value.
        given: String,
        /// The key that decides, and its value.
        chosen: String,
        /// The values with which the key has an effect.
        users: &'static [&'static str],
    },
    /// A schedule without a key that it needs.
    #[error("local.schedule = {schedule} needs {path}: {what}")]
    Missing {
        /// The schedule.
        schedule: &'static str,
        /// The key.
        path: &'static str,
        /// What to set it to.
        what: &'static str,
    },
    /// More rounds than the schedule has.
    #[error(
        "rounds = {rounds} is beyond the end of the schedule, local.cosine_rounds = {horizon}; use fewer rounds, or start the run \
         with a local.cosine_rounds of as many rounds as it may ever have"
    )]
    Horizon {
        /// Rounds of the run.
        rounds: u64,
        /// Rounds of the schedule.
        horizon: u64,
    },
    /// Warm-up for all rounds of the schedule.
    #[error(
        "local.warmup = {warmup} leaves no rounds for the cosine; it must be below local.cosine_rounds = {horizon}"
    )]
    Warmup {
        /// Rounds of warm-up.
        warmup: u64,
        /// Rounds of the schedule.
        horizon: u64,
    },
    /// A learning rate that is 0 or infinite in some round.
    #[error(
        "the learning rate of round {round} is {lr}; with local.lr = {first}, use fewer rounds, or a schedule that changes it less"
    )]
    Vanishes {
        /// The round, counted from 1.
        round: u64,
        /// Its learning rate.
        lr: f64,
        /// The learning rate before any change.
        first: f64,
    },
    /// A strategy whose formulas need SGD.
    #[error("{strategy} cannot train with local.optimizer = {optimizer}: {why}; use sgd")]
    NeedsSgd {
        /// The strategy's label.
        strategy: String,
        /// The optimiser.
        optimizer: &'static str,
        /// The reason.
        why: &'static str,
    },
}

/// How clients train with this strategy.
pub(crate) fn local(config: &Config, strategy: &Strategy) -> Result<Local, TrainingError> {
    check_effects(config)?;
    let optimizer = optimizer(config)?;
    if let Some(why) = strategy.needs_sgd().filter(|_| !matches!(optimizer, Optimizer::Sgd(_))) {
        let (strategy, optimizer) = (strategy.label.clone(), optimizer.name());
        return Err(TrainingError::NeedsSgd { strategy, optimizer, why });
    }
    let schedule = schedule(config)?;
    check_learning_rate(&schedule, optimizer.lr(), whole(config, "rounds"))?;
    Ok(Local {
        epochs: whole(config, "local.epochs") as u32,
        batch: whole(config, "local.batch") as usize,
        optimizer,
        clip: Some(number(config, "local.clip")).filter(|clip| *clip > 0.0),
        smoothing: number(config, "local.label_smoothing"),
        schedule,
        epoch_decay: number(config, "local.epoch_decay"),
    })
}

/// Fails if clients could not train in some round. Every schedule rises in its warm-up and then goes one way, so the
/// first and the last round decide.
fn check_learning_rate(schedule: &Schedule, first: f64, rounds: u64) -> Result<(), TrainingError> {
    for round in [1, rounds.max(1)] {
        let lr = schedule.lr(first, (round - 1) as u32);
        if !Range::POSITIVE.contains(lr) {
            return Err(TrainingError::Vanishes { round, lr, first });
        }
    }
    Ok(())
}

/// A run directory lists every key, so a key counts as given if it differs from its default.
fn check_effects(config: &Config) -> Result<(), TrainingError> {
    for (path, by, users) in USERS.into_iter().filter(|(path, _, _)| path.starts_with("local.")) {
        if overruled(config, path).is_some() && config.changes_key(path) {
            let given = format!("{path} = {}", config.get(path).bare());
            let chosen = format!("{by} = {}", text(config, by));
            return Err(TrainingError::NoEffect { given, chosen, users });
        }
    }
    Ok(())
}

fn optimizer(config: &Config) -> Result<Optimizer, TrainingError> {
    let (lr, weight_decay) = (number(config, "local.lr"), number(config, "local.weight_decay"));
    let adam = || Adam {
        lr,
        beta1: number(config, "local.beta1"),
        beta2: number(config, "local.beta2"),
        eps: number(config, "local.eps"),
        weight_decay,
    };
    let (momentum, nesterov) = (number(config, "local.momentum"), flag(config, "local.nesterov"));
    match text(config, "local.optimizer").as_str() {
        "adam" => Ok(Optimizer::Adam(adam())),
        "adamw" => Ok(Optimizer::AdamW(adam())),
        _ if nesterov && momentum == 0.0 => Err(TrainingError::Nesterov),
        _ => Ok(Optimizer::Sgd(Sgd { lr, momentum, nesterov, weight_decay })),
    }
}

fn schedule(config: &Config) -> Result<Schedule, TrainingError> {
    let warmup = whole(config, "local.warmup");
    let decay = match text(config, "local.schedule").as_str() {
        "constant" => Decay::Constant,
        "step" => step(config)?,
        "cosine" => cosine(config, warmup)?,
        _ => Decay::Exponential { factor: number(config, "local.round_decay") },
    };
    Ok(Schedule { warmup: warmup as u32, decay })
}

fn step(config: &Config) -> Result<Decay, TrainingError> {
    let (every, factor) = (whole(config, "local.step_every") as u32, number(config, "local.step_factor"));
    if every == 0 {
        let what = "the number of rounds between two changes of the learning rate";
        return Err(TrainingError::Missing { schedule: "step", path: "local.step_every", what });
    }
    Ok(Decay::Step { every, factor })
}

fn cosine(config: &Config, warmup: u64) -> Result<Decay, TrainingError> {
    let (horizon, rounds) = (whole(config, "local.cosine_rounds"), whole(config, "rounds"));
    if horizon == 0 {
        let what = "the round at which the learning rate reaches its floor, at least rounds, so that a longer run begins \
                    like a shorter one";
        return Err(TrainingError::Missing { schedule: "cosine", path: "local.cosine_rounds", what });
    }
    if rounds > horizon {
        return Err(TrainingError::Horizon { rounds, horizon });
    }
    if warmup >= horizon {
        return Err(TrainingError::Warmup { warmup, horizon });
    }
    Ok(Decay::Cosine { rounds: horizon as u32, floor: number(config, "local.cosine_floor") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::Experiment;

    fn trained(settings: &[&str]) -> Result<Local, String> {
        let mut config = Config::default();
        settings.iter().for_each(|setting| config.set(setting).unwrap());
        let again = Config::parse(&config.resolved()).unwrap();
        let read = |config: &Config| Experiment::of(config).map(|experiment| experiment.run.local);
        assert_eq!(read(&config), read(&again), "a run directory must describe the same training");
        read(&config).map_err(|error| error.to_string())
    }

    #[test]
    fn a_configuration_without_options_trains_as_the_paper_does() {
        assert_eq!(trained(&[]), Ok(Local::default()));
        let decayed = Local { schedule: Schedule::exponential(0.9), ..Local::default() };
        assert_eq!(trained(&["local.round_decay=0.9"]), Ok(decayed));
    }

    #[test]
    fn every_option_reaches_local_training() {
        let adam = ["local.lr=0.003", "local.beta1=0.8", "local.beta2=0.95", "local.eps=1e-6"];
        let settings = Adam { lr: 0.003, beta1: 0.8, beta2: 0.95, eps: 1e-6, weight_decay: 0.1 };
        for (word, expected) in [("adam", Optimizer::Adam(settings)), ("adamw", Optimizer::AdamW(settings))] {
            let word = format!("local.optimizer={word}");
            let local = trained(&[&adam[..], &[&word, "local.weight_decay=0.1"]].concat()).unwrap();
            assert_eq!(local.optimizer, expected);
        }
        let local = trained(&["local.clip=2", "local.label_smoothing=0.1"]).unwrap();
        assert_eq!((local.clip, local.smoothing), (Some(2.0), 0.1));
        let schedule = |settings: &[&str]| trained(settings).unwrap().schedule;
        let warm = |decay| Schedule { warmup: 3, decay };
        let step = ["local.warmup=3", "local.schedule=step", "local.step_every=5", "local.step_factor=0.5"];
        assert_eq!(schedule(&step), warm(Decay::Step { every: 5, factor: 0.5 }));
        let cosine =
            ["local.warmup=3", "local.schedule=cosine", "local.cosine_rounds=60", "local.cosine_floor=0.1"];
        assert_eq!(schedule(&cosine), warm(Decay::Cosine { rounds: 60, floor: 0.1 }));
        assert_eq!(schedule(&["local.warmup=3", "local.schedule=constant"]), warm(Decay::Constant));
        let exponential = ["local.warmup=3", "local.schedule=exponential", "local.round_decay=0.9"];
        assert_eq!(schedule(&exponential), warm(Decay::Exponential { factor: 0.9 }));
    }

    #[test]
    fn keys_without_effect_are_refused_with_the_reason() {
        let refusal = |settings: &[&str]| trained(settings).unwrap_err();
        assert_eq!(
            refusal(&["local.optimizer=adam", "local.momentum=0.5"]),
            "local.momentum = 0.5 has no effect with local.optimizer = adam; leave it out, or use sgd"
        );
        assert_eq!(
            refusal(&["local.beta2=0.99"]),
            "local.beta2 = 0.99 has no effect with local.optimizer = sgd; leave it out, or use adam or adamw"
        );
        for (setting, by) in [
            ("local.nesterov=true", "local.optimizer=adamw"),
            ("local.eps=1e-6", "local.optimizer=sgd"),
            ("local.round_decay=0.9", "local.schedule=constant"),
            ("local.step_every=3", "local.schedule=exponential"),
            ("local.step_factor=0.3", "local.schedule=constant"),
            ("local.cosine_rounds=300", "local.schedule=constant"),
            ("local.cosine_floor=0.3", "local.schedule=exponential"),
        ] {
            let key = setting.split('=').next().unwrap();
            assert!(refusal(&[by, setting]).starts_with(&format!("{key} = ")), "{setting} {by}");
        }
    }

    #[test]
    fn a_schedule_must_have_its_keys_and_cover_all_rounds() {
        let refusal = |settings: &[&str]| trained(settings).unwrap_err();
        let step = refusal(&["local.schedule=step"]);
        assert!(
            step.starts_with("local.schedule = step needs local.step_every: the number of rounds"),
            "{step}"
        );
        let cosine = refusal(&["local.schedule=cosine"]);
        assert!(
            cosine.starts_with("local.schedule = cosine needs local.cosine_rounds: the round at"),
            "{cosine}"
        );
        let beyond = refusal(&["local.schedule=cosine", "local.cosine_rounds=40", "rounds=41"]);
        assert!(
            beyond.starts_with("rounds = 41 is beyond the end of the schedule, local.cosine_rounds = 40"),
            "{beyond}"
        );
        assert!(trained(&["local.schedule=cosine", "local.cosine_rounds=40", "rounds=40"]).is_ok());
        let warm = refusal(&["local.schedule=cosine", "local.cosine_rounds=50", "local.warmup=50"]);
        assert!(warm.starts_with("local.warmup = 50 leaves no rounds for the cosine"), "{warm}");
    }

    #[test]
    fn a_schedule_whose_learning_rate_vanishes_or_overflows_is_refused() {
        // 0.01 x 0.1^321 is the last above 0 in 64 bits, 2^1023 the last power below infinity.
        let step = ["local.schedule=step", "local.step_every=1", "local.step_factor=0.1"];
        let rounds = |settings: &[&str], rounds: &str| trained(&[settings, &[rounds]].concat()).map(|_| ());
        assert_eq!(rounds(&["local.round_decay=0.1"], "rounds=322"), Ok(()));
        let why = "the learning rate of round 400 is 0; with local.lr = 0.01, use fewer rounds, or a schedule that changes it less";
        assert_eq!(rounds(&["local.round_decay=0.1"], "rounds=400"), Err(why.to_owned()));
        assert_eq!(rounds(&step, "rounds=400"), Err(why.to_owned()));
        assert_eq!(rounds(&["local.round_decay=2"], "rounds=1024"), Ok(()));
        let why = rounds(&["local.round_decay=2"], "rounds=1040").unwrap_err();
        assert!(why.starts_with("the learning rate of round 1040 is inf"), "{why}");
    }

    #[test]
    fn strategies_that_divide_by_the_step_size_refuse_other_optimisers_than_sgd() {
        for spec in fedtvd_core::strategy::ALL {
            let recipe = (spec.build)(&fedtvd_core::rules::Settings::defaults(spec));
            for name in [spec.name.to_owned(), format!("fedtvd+{}", spec.name)] {
                let Ok(strategy) = fedtvd_core::rules::notation::strategy(&name, []) else { continue };
                let name = format!("strategy.name={name}");
                let answer = trained(&["local.optimizer=adamw", &name]);
                match recipe.needs_sgd() {
                    None => assert!(answer.is_ok(), "{answer:?}"),
                    Some(why) => assert_eq!(
                        answer.unwrap_err(),
                        format!(
                            "{} cannot train with local.optimizer = adamw: {why}; use sgd",
                            strategy.label
                        )
                    ),
                }
            }
        }
    }
}
