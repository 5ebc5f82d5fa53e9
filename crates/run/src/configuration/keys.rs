//! Every key of a configuration, defined once: name, default, range and one line of help.
//!
//! The parser, `--set`, `fedtvd init` and the documentation use this table and nothing else. The parameters of
//! strategies are not here: their specs define them.

use crate::attack;
use crate::configuration::evaluation::METRICS;
use crate::configuration::training;
use fedtvd_core::settings::{Param, ParamKind, Range};
use fedtvd_core::train::{Adam, Local, Optimizer};

/// One key.
#[derive(Debug)]
pub struct Key {
    /// Table and name, such as `split.alpha`, with kind, default, range and help.
    pub param: Param,
    /// When it was introduced.
    pub since: Since,
}

/// When a key was introduced. A sweep finds a finished run by the hash of its configuration, so a later key must not
/// change the hash of runs that do not use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// Part of every hash. No key may be added to this set: a test lists them.
    First,
    /// Part of a hash only if it differs from its default. Every new key is one of these.
    Later,
}

/// A fraction above 0.
const SHARE: Range = Range::above(0.0, 1.0);
/// Default of `strategy.screen`, chosen by measurement: `bench/README.md`, "Hardened mode".
const SCREEN: f64 = 6.0;

const fn first(param: Param) -> Key {
    Key { param, since: Since::First }
}

const fn later(param: Param) -> Key {
    Key { param, since: Since::Later }
}

/// All keys, in the order in which they are printed.
pub const ALL: &[Key] = &[
    first(Param::text("name", "", "name of the run; the subcommand's name unless set")),
    first(Param::whole("seed", 1, (0, i64::MAX as u64), "seed of all random numbers")),
    first(Param::whole("rounds", 50, (1, 1_000_000), "number of rounds; the paper uses 300")),
    first(Param::text(
        "data.set",
        "fmnist-mini",
        "a data set listed by fedtvd data list, a folder of PNG images by class, or a CSV file",
    )),
    first(Param::text("data.label", "label", "CSV: the column with the labels")),
    first(Param::text(
        "data.group",
        "",
        "CSV: the column that names each row's owner, for split.kind = natural",
    )),
    later(Param::text(
        "data.schema",
        "",
        "CSV: the schema of its columns, as written by fedtvd data schema; made from the file unless set",
    )),
    first(Param::number(
        "data.test",
        0.2,
        Range::closed(0.0, 0.9),
        "CSV, and folders without test: the fraction of each class that becomes the test set",
    )),
    first(Param::whole("data.crop", 0, (0, 1000), "training images are shifted by up to this many pixels")),
    first(Param::flag("data.flip", false, "training images are mirrored with probability 1/2")),
    first(Param::number(
        "data.imbalance",
        1.0,
        SHARE,
        "class c keeps a fraction data.imbalance^c of its rows, at least one, in training and test sets",
    )),
    first(Param {
        name: "split.kind",
        kind: ParamKind::Choice { default: "dirichlet", choices: fedtvd_data::split::SplitKind::WORDS },
        about: "how samples are split over clients; dirichlet: each class in Dirichlet proportions",
    }),
    first(Param::whole("split.clients", 100, (1, 1_000_000), "number of clients")),
    first(Param::number(
        "split.alpha",
        0.1,
        Range::above(0.0, 1e6),
        "concentration, the smaller the more skewed: per class (dirichlet), total (hsu), lowest (correlated)",
    )),
    first(Param::whole("split.min_size", 2, (1, 1_000_000), "minimum number of training samples per client")),
    first(Param::flag(
        "split.self_balancing",
        true,
        "dirichlet: clients above the mean size get no samples of further classes",
    )),
    first(Param::whole("split.tries", 1000, (1, 1_000_000), "number of draws before giving up")),
    first(Param::whole("split.shards", 2, (1, 1_000_000), "shards: number of shards per client")),
    first(Param::whole("split.labels", 2, (1, 1_000_000), "labels: number of labels per client")),
    first(Param::number(
        "split.beta",
        0.5,
        Range::above(0.0, 1e6),
        "quantity: concentration of the clients' sizes",
    )),
    first(Param::number(
        "split.correlation",
        0.8,
        Range::closed(-1.0, 1.0),
        "correlated: rank correlation of size and total variation distance (TVD) of the labels",
    )),
    first(Param::number(
        "split.spread",
        1.0,
        Range::closed(0.0, 5.0),
        "correlated: standard deviation of the logarithm of the clients' sizes",
    )),
    first(Param::number(
        "split.alpha_even",
        10.0,
        Range::above(0.0, 1e6),
        "correlated: concentration of the most balanced client",
    )),
    first(Param::text("split.file", "", "file: path of a saved partition.json")),
    first(Param::number(
        "split.holdout",
        0.0,
        Range::closed(0.0, 0.9),
        "fraction of its samples that each client holds out from training",
    )),
    later(Param {
        name: "split.shift",
        kind: ParamKind::Choice { default: "none", choices: fedtvd_data::split::ShiftKind::WORDS },
        about: "how the clients' images differ: each client's have a rotation, contrast or noise of their own; not for tables",
    }),
    later(Param::number(
        "split.shift_strength",
        0.5,
        SHARE,
        "greatest shift: fraction of 180° (rotation), loss of contrast, or noise as a fraction of the range of values",
    )),
    later(Param::whole(
        "split.groups",
        1,
        (1, 100),
        "number of planted groups: client k is in group k mod groups, which has its labels shifted by its number; 1: none",
    )),
    first(Param {
        name: "split.seed",
        kind: ParamKind::Seed,
        about: "seed of split and hold-out; follows seed unless set",
    }),
    first(Param::number(
        "cohort.fraction",
        0.1,
        SHARE,
        "fraction of the clients that take part in a round; fedtvd serve: 1 unless set",
    )),
    first(Param::whole(
        "cohort.quorum",
        1,
        (1, 1_000_000),
        "minimum number of updates, with fewer a round changes nothing; hardened: at least 3, and half of the cohort",
    )),
    first(Param::number(
        "cohort.absent",
        0.0,
        Range::UNIT,
        "probability that a selected client drops out of a round",
    )),
    first(Param::number(
        "cohort.partial",
        0.0,
        Range::UNIT,
        "probability that a selected client finishes fewer epochs (at least one)",
    )),
    first(Param {
        name: "cohort.seed",
        kind: ParamKind::Seed,
        about: "seed of client selection and dropout; follows seed unless set",
    }),
    later(Param::whole(
        "cohort.liars",
        0,
        (0, 1_000_000),
        "number of liars in every round (attack.kind); 0: they are selected like all other clients",
    )),
    later(Param::whole(
        "cohort.extra",
        0,
        (0, 1_000_000),
        "fedtvd serve: clients asked beyond the cohort; a round closes with as many updates as the cohort has clients",
    )),
    first(Param::whole("local.epochs", 4, (1, 10_000), "local epochs per round")),
    first(Param::whole("local.batch", 32, (1, 1_000_000), "batch size")),
    first(Param::number("local.lr", 0.01, Range::POSITIVE, "learning rate of the clients")),
    first(Param::number(
        "local.momentum",
        0.9,
        Range::BELOW_ONE,
        "sgd: momentum of the clients, reset in every round",
    )),
    first(Param::flag("local.nesterov", false, "sgd: whether to use Nesterov momentum")),
    first(Param::number(
        "local.weight_decay",
        0.0,
        Range::NOT_NEGATIVE,
        "weight decay: weight_decay * w is added to the gradient; adamw: w shrinks by lr * weight_decay * w",
    )),
    first(Param::number(
        "local.round_decay",
        1.0,
        Local::DECAY,
        "exponential: factor on the learning rate after every round",
    )),
    first(Param::number(
        "local.epoch_decay",
        1.0,
        Local::DECAY,
        "factor on the learning rate after every epoch of a round",
    )),
    later(Param {
        name: "local.optimizer",
        kind: ParamKind::Choice { default: "sgd", choices: Optimizer::WORDS },
        about: "optimiser of the clients, as in PyTorch; its state is reset in every round",
    }),
    later(Param::number("local.beta1", 0.9, Range::BELOW_ONE, "adam, adamw: decay of the mean gradient")),
    later(Param::number("local.beta2", 0.999, Range::BELOW_ONE, "adam, adamw: decay of its mean square")),
    later(Param::number("local.eps", 1e-8, Adam::EPS, "adam, adamw: added to the root of the mean square")),
    later(Param::number(
        "local.clip",
        0.0,
        Range::NOT_NEGATIVE,
        "greatest norm of a gradient, with a proximal term, before weight decay; longer ones are scaled down; 0: any",
    )),
    later(Param::number(
        "local.label_smoothing",
        0.0,
        Range::BELOW_ONE,
        "share of the target that is spread evenly over all classes in the training loss",
    )),
    later(Param {
        name: "local.schedule",
        kind: ParamKind::Choice { default: training::EXPONENTIAL, choices: training::SCHEDULES },
        about: "learning rate over rounds, after the warm-up; exponential is constant unless local.round_decay is set",
    }),
    later(Param::whole(
        "local.warmup",
        0,
        (0, 1_000_000),
        "rounds of linear warm-up: round r = 1, 2, … has r / (warmup + 1) of the learning rate",
    )),
    later(Param::whole(
        "local.step_every",
        0,
        (0, 1_000_000),
        "step: rounds after which local.step_factor is applied again",
    )),
    later(Param::number("local.step_factor", 0.1, Local::DECAY, "step: factor on the learning rate")),
    later(Param::whole(
        "local.cosine_rounds",
        0,
        (0, 1_000_000),
        "cosine: number of rounds over which the learning rate falls to its floor, warm-up included; at least rounds",
    )),
    later(Param::number(
        "local.cosine_floor",
        0.0,
        Range::UNIT,
        "cosine: what the learning rate falls towards, as a fraction of local.lr",
    )),
    later(Param {
        name: "local.class_weights",
        kind: ParamKind::PerClass { default: "equal", words: &["equal", "inverse"] },
        about: "weights of the classes in the training loss: equal, inverse to each client's label counts, or one number per class",
    }),
    first(Param::text(
        "model.name",
        "lenet",
        "the model (fedtvd models lists all); a table has a perceptron with sizes from the data unless set",
    )),
    first(Param {
        name: "model.layers",
        kind: ParamKind::Layers,
        about: "a model of your own instead of a named one, one line per layer",
    }),
    later(Param::text(
        "model.start",
        "",
        "safetensors file that training starts from; a head of another width starts at random",
    )),
    first(Param {
        name: "labels.reference",
        kind: ParamKind::PerClass { default: "uniform", words: &["uniform", "aggregated"] },
        about: "reference label distribution Q, for weights and losses: uniform, aggregated, or one number per class",
    }),
    first(Param::flag(
        "evaluation.details",
        false,
        "whether every round records accuracy per class and per-client accuracy",
    )),
    later(Param::whole(
        "evaluation.every",
        1,
        (1, 1_000_000),
        "the model is evaluated after every n-th round, and after the last one",
    )),
    later(Param::flag(
        "evaluation.test",
        true,
        "whether the model is evaluated on the test set; false: on the clients' hold-outs only (split.holdout)",
    )),
    later(Param {
        name: "evaluation.metric",
        kind: ParamKind::Choice { default: METRICS[0], choices: METRICS },
        about: "by what the hold-outs choose: the best model, stop.target, stop.patience, fedtvd tune",
    }),
    later(Param::number(
        "stop.target",
        0.0,
        Range::NOT_NEGATIVE,
        "stop once evaluation.metric reaches this value on the hold-outs, or without them on the test set; 0: never",
    )),
    later(Param::whole(
        "stop.patience",
        0,
        (0, 1_000_000),
        "stop after this many rounds without a better evaluation.metric on the hold-outs; 0: never",
    )),
    later(Param {
        name: "attack.kind",
        kind: ParamKind::Choice { default: attack::NONE, choices: attack::WORDS },
        about: "how some clients of a simulation lie (docs/attacks.md describes each attack)",
    }),
    later(Param::whole(
        "attack.clients",
        1,
        (1, 1_000_000),
        "number of liars: the first clients, from client 0 on",
    )),
    later(Param::number(
        "attack.scale",
        0.0,
        Range::NOT_NEGATIVE,
        "strength of scale, sign-flip, gaussian, alie and inner-product (docs/attacks.md); 0: the attack's default",
    )),
    later(Param::whole(
        "attack.size",
        1_000_000,
        (1, attack::LARGEST_SIZE),
        "false-tvd, false-histogram, vast-reach: number of samples that a liar claims",
    )),
    first(Param::text(
        "strategy.name",
        "fedtvd",
        "one strategy, or several joined by + (fedtvd strategies lists all); its parameters are keys of the same table",
    )),
    first(Param {
        name: "strategy.mode",
        kind: ParamKind::Choice { default: "paper", choices: &["paper", "hardened"] },
        about: "paper: as published; hardened: limits what one client can do (docs/federation.md); fedtvd serve: hardened unless set",
    }),
    later(Param::number(
        "strategy.screen",
        SCREEN,
        Range::above(0.0, 1e6),
        "hardened: updates are scaled down if their norm is this many median absolute deviations above the median",
    )),
];

impl Key {
    /// Table and name, such as `split.alpha`.
    pub const fn path(&self) -> &'static str {
        self.param.name
    }
}

/// The key at a path.
pub fn find(path: &str) -> Option<&'static Key> {
    ALL.iter().find(|key| key.path() == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_set_of_first_keys_never_changes() {
        let first: Vec<&str> =
            ALL.iter().filter(|key| key.since == Since::First).map(|key| key.path()).collect();
        // With another list, sweeps would recompute every finished run: a new key must be `Since::Later`.
        let expected = "name seed rounds data.set data.label data.group data.test data.crop data.flip data.imbalance \
             split.kind split.clients split.alpha split.min_size split.self_balancing split.tries split.shards \
             split.labels split.beta split.correlation split.spread split.alpha_even split.file split.holdout \
             split.seed cohort.fraction cohort.quorum cohort.absent cohort.partial cohort.seed local.epochs \
             local.batch local.lr local.momentum local.nesterov local.weight_decay local.round_decay \
             local.epoch_decay model.name model.layers labels.reference evaluation.details strategy.name \
             strategy.mode";
        assert_eq!(first.join(" "), expected);
    }
}
