//! Every key of a configuration, defined once: name, default, range and one line of help.
//!
//! The parser, `--set`, `fedtvd init` and the documentation read this table and nothing else. Strategies'
//! own parameters are not here: their specs define them.

use fedtvd_core::param::{Param, ParamKind, Range};

/// One key.
#[derive(Debug)]
pub struct Key {
    /// Table and name, such as `split.alpha`, with kind, default, range and help.
    pub param: Param,
    /// Since when it exists.
    pub since: Since,
}

/// Since when a key exists. A sweep finds a finished run by the hash of its configuration, so a key that comes later
/// must not change the hash of runs that do not use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// Part of every hash. The set of these keys is closed: a test lists them.
    First,
    /// Part of a hash only where it differs from its default. Every new key is one of these.
    Later,
}

/// A share that is not nothing.
const SHARE: Range = Range::above(0.0, 1.0);
/// A factor that does not grow without bound.
const DECAY: Range = Range::above(0.0, 2.0);

const fn first(param: Param) -> Key {
    Key { param, since: Since::First }
}

/// All keys, in the order in which they are printed.
pub const ALL: &[Key] = &[
    first(Param::text("name", "", "what the run is called; the verb's name unless set")),
    first(Param::whole("seed", 1, (0, i64::MAX as u64), "where all randomness starts")),
    first(Param::whole("rounds", 50, (1, 1_000_000), "how many rounds; the paper has 300")),
    first(Param::text(
        "data.set",
        "fmnist-mini",
        "a name that fedtvd data list shows, a folder of PNG images by class, or a CSV file",
    )),
    first(Param::text("data.label", "label", "CSV: the column that holds the label")),
    first(Param::text(
        "data.group",
        "",
        "CSV: the column that says whose a row is, for split.kind = natural",
    )),
    first(Param::number(
        "data.test",
        0.2,
        Range::closed(0.0, 0.9),
        "CSV, and folders without test: the share of each class that is for testing",
    )),
    first(Param::whole("data.crop", 0, (0, 1000), "training images are shifted by up to this many pixels")),
    first(Param::flag("data.flip", false, "every second training image is mirrored")),
    first(Param::number(
        "data.imbalance",
        1.0,
        SHARE,
        "r keeps r^c of class c, at least one row, in training and test: a true prior that is not uniform",
    )),
    first(Param {
        name: "split.kind",
        kind: ParamKind::Choice { default: "dirichlet", choices: fedtvd_data::split::SplitKind::WORDS },
        about: "how samples are dealt to clients; dirichlet cuts each class in Dirichlet proportions",
    }),
    first(Param::whole("split.clients", 100, (1, 1_000_000), "how many clients")),
    first(Param::number(
        "split.alpha",
        0.1,
        Range::above(0.0, 1e6),
        "concentration, small is skewed: per class (dirichlet), in total (hsu), least (correlated)",
    )),
    first(Param::whole("split.min_size", 2, (1, 1_000_000), "least samples that a client trains on")),
    first(Param::flag(
        "split.self_balancing",
        true,
        "dirichlet: whether a client above the mean size gets nothing of further classes",
    )),
    first(Param::whole("split.tries", 1000, (1, 1_000_000), "how often to draw before giving up")),
    first(Param::whole("split.shards", 2, (1, 1_000_000), "shards: shards of a client")),
    first(Param::whole("split.labels", 2, (1, 1_000_000), "labels: labels of a client")),
    first(Param::number("split.beta", 0.5, Range::above(0.0, 1e6), "quantity: concentration of the sizes")),
    first(Param::number(
        "split.correlation",
        0.8,
        Range::closed(-1.0, 1.0),
        "correlated: rank correlation of size and TVD",
    )),
    first(Param::number(
        "split.spread",
        1.0,
        Range::closed(0.0, 5.0),
        "correlated: deviation of the logarithm of sizes",
    )),
    first(Param::number(
        "split.alpha_even",
        10.0,
        Range::above(0.0, 1e6),
        "correlated: concentration of the most even client",
    )),
    first(Param::text("split.file", "", "file: a saved partition.json")),
    first(Param::number(
        "split.holdout",
        0.0,
        Range::closed(0.0, 0.9),
        "share of its samples that each client keeps back from training",
    )),
    first(Param {
        name: "split.seed",
        kind: ParamKind::Seed,
        about: "seed of split and hold-out; follows seed unless set",
    }),
    first(Param::number("cohort.fraction", 0.1, SHARE, "share of the clients that a round asks")),
    first(Param::whole("cohort.quorum", 1, (1, 1_000_000), "updates below which a round changes nothing")),
    first(Param::number("cohort.absent", 0.0, Range::UNIT, "probability that an asked client vanishes")),
    first(Param::number(
        "cohort.partial",
        0.0,
        Range::UNIT,
        "probability that an asked client finishes fewer epochs, at least one",
    )),
    first(Param {
        name: "cohort.seed",
        kind: ParamKind::Seed,
        about: "seed of the cohorts; follows seed unless set",
    }),
    first(Param::whole("local.epochs", 4, (1, 10_000), "epochs of local training per round")),
    first(Param::whole("local.batch", 32, (1, 1_000_000), "samples per step")),
    first(Param::number("local.lr", 0.01, Range::POSITIVE, "clients' learning rate")),
    first(Param::number("local.momentum", 0.9, Range::BELOW_ONE, "clients' momentum, new in every round")),
    first(Param::flag("local.nesterov", false, "whether the momentum is Nesterov's")),
    first(Param::number(
        "local.weight_decay",
        0.0,
        Range::NOT_NEGATIVE,
        "added to the gradient as weight_decay w",
    )),
    first(Param::number("local.round_decay", 1.0, DECAY, "factor on lr from round to round")),
    first(Param::number("local.epoch_decay", 1.0, DECAY, "factor on lr from epoch to epoch inside a round")),
    first(Param::text("model.name", "lenet", "the model (fedtvd models lists all)")),
    first(Param {
        name: "model.layers",
        kind: ParamKind::Layers,
        about: "a model of your own in place of a named one, one line per layer",
    }),
    first(Param {
        name: "labels.reference",
        kind: ParamKind::Distribution,
        about: "Q of weights and loss alike: uniform, aggregated, or one number per class",
    }),
    first(Param::flag(
        "evaluation.details",
        false,
        "whether every round tells accuracy per class and on the clients' own distributions",
    )),
    first(Param::text(
        "strategy.name",
        "fedtvd",
        "one strategy or several joined by + (fedtvd strategies lists all); its parameters are keys beside it",
    )),
    first(Param {
        name: "strategy.mode",
        kind: ParamKind::Choice { default: "paper", choices: &["paper", "hardened"] },
        about: "paper: weights as published; hardened: sizes capped at the median, weights at 1.6/K",
    }),
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
    fn the_first_keys_stay_the_first_keys() {
        let first: Vec<&str> =
            ALL.iter().filter(|key| key.since == Since::First).map(|key| key.path()).collect();
        // With another list, sweeps would compute every finished run again: a new key is `Since::Later`.
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
