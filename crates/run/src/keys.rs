//! Every key of a configuration, defined once: name, default, range and one line of help.
//!
//! The parser, `--set`, `fedtvd init` and the documentation read this table and nothing else. Strategies'
//! own parameters are not here: their specs define them.

use fedtvd_core::spec::Range;

/// One key.
#[derive(Debug)]
pub struct Key {
    /// Table and name, such as `split.alpha`.
    pub path: &'static str,
    /// Since when it exists.
    pub since: Since,
    /// What it may be, and what it is when nothing is said.
    pub kind: Kind,
    /// One line of help.
    pub about: &'static str,
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

/// What a key may be.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Any text.
    Text {
        /// What it is unless set.
        default: &'static str,
    },
    /// One of some words.
    Word {
        /// What it is unless set.
        default: &'static str,
        /// All that are allowed.
        words: &'static [&'static str],
    },
    /// A whole number.
    Count {
        /// What it is unless set.
        default: u64,
        /// The least.
        low: u64,
        /// The greatest.
        high: u64,
    },
    /// A seed that follows `seed` unless set.
    Seed,
    /// A number.
    Number {
        /// What it is unless set.
        default: f64,
        /// Where it may lie.
        range: Range,
    },
    /// Yes or no.
    Flag {
        /// What it is unless set.
        default: bool,
    },
    /// One line per layer; empty unless set.
    Lines,
    /// A label distribution: uniform, aggregated, or one number per class.
    Reference,
}

const fn count(default: u64, low: u64, high: u64) -> Kind {
    Kind::Count { default, low, high }
}

const fn number(default: f64, range: Range) -> Kind {
    Kind::Number { default, range }
}

/// A share that is not nothing.
const SHARE: Range = Range { low: 0.0, high: 1.0, open: true };
/// A factor that does not grow without bound.
const DECAY: Range = Range { low: 0.0, high: 2.0, open: true };

/// All keys, in the order in which they are printed.
pub const ALL: &[Key] = &[
    Key {
        path: "name",
        since: Since::First,
        kind: Kind::Text { default: "" },
        about: "what the run is called; the verb's name unless set",
    },
    Key {
        path: "seed",
        since: Since::First,
        kind: count(1, 0, i64::MAX as u64),
        about: "where all randomness starts",
    },
    Key {
        path: "rounds",
        since: Since::First,
        kind: count(50, 1, 1_000_000),
        about: "how many rounds; the paper has 300",
    },
    Key {
        path: "data.set",
        since: Since::First,
        kind: Kind::Text { default: "fmnist-mini" },
        about: "a name that fedtvd data list shows, a folder of PNG images by class, or a CSV file",
    },
    Key {
        path: "data.label",
        since: Since::First,
        kind: Kind::Text { default: "label" },
        about: "CSV: the column that holds the label",
    },
    Key {
        path: "data.group",
        since: Since::First,
        kind: Kind::Text { default: "" },
        about: "CSV: the column that says whose a row is, for split.kind = natural",
    },
    Key {
        path: "data.test",
        since: Since::First,
        kind: number(0.2, Range { low: 0.0, high: 0.9, open: false }),
        about: "CSV, and folders without test: the share of each class that is for testing",
    },
    Key {
        path: "data.crop",
        since: Since::First,
        kind: count(0, 0, 1000),
        about: "training images are shifted by up to this many pixels",
    },
    Key {
        path: "data.flip",
        since: Since::First,
        kind: Kind::Flag { default: false },
        about: "every second training image is mirrored",
    },
    Key {
        path: "data.imbalance",
        since: Since::First,
        kind: number(1.0, SHARE),
        about: "r keeps r^c of class c, at least one row, in training and test: a true prior that is not uniform",
    },
    Key {
        path: "split.kind",
        since: Since::First,
        kind: Kind::Word { default: "dirichlet", words: fedtvd_data::split::Kind::WORDS },
        about: "how samples are dealt to clients; dirichlet cuts each class in Dirichlet proportions",
    },
    Key {
        path: "split.clients",
        since: Since::First,
        kind: count(100, 1, 1_000_000),
        about: "how many clients",
    },
    Key {
        path: "split.alpha",
        since: Since::First,
        kind: number(0.1, Range { low: 0.0, high: 1e6, open: true }),
        about: "concentration, small is skewed: per class (dirichlet), in total (hsu), least (correlated)",
    },
    Key {
        path: "split.min_size",
        since: Since::First,
        kind: count(2, 1, 1_000_000),
        about: "least samples that a client trains on",
    },
    Key {
        path: "split.self_balancing",
        since: Since::First,
        kind: Kind::Flag { default: true },
        about: "dirichlet: whether a client above the mean size gets nothing of further classes",
    },
    Key {
        path: "split.tries",
        since: Since::First,
        kind: count(1000, 1, 1_000_000),
        about: "how often to draw before giving up",
    },
    Key {
        path: "split.shards",
        since: Since::First,
        kind: count(2, 1, 1_000_000),
        about: "shards: shards of a client",
    },
    Key {
        path: "split.labels",
        since: Since::First,
        kind: count(2, 1, 1_000_000),
        about: "labels: labels of a client",
    },
    Key {
        path: "split.beta",
        since: Since::First,
        kind: number(0.5, Range { low: 0.0, high: 1e6, open: true }),
        about: "quantity: concentration of the sizes",
    },
    Key {
        path: "split.correlation",
        since: Since::First,
        kind: number(0.8, Range { low: -1.0, high: 1.0, open: false }),
        about: "correlated: rank correlation of size and TVD",
    },
    Key {
        path: "split.spread",
        since: Since::First,
        kind: number(1.0, Range { low: 0.0, high: 5.0, open: false }),
        about: "correlated: deviation of the logarithm of sizes",
    },
    Key {
        path: "split.alpha_even",
        since: Since::First,
        kind: number(10.0, Range { low: 0.0, high: 1e6, open: true }),
        about: "correlated: concentration of the most even client",
    },
    Key {
        path: "split.file",
        since: Since::First,
        kind: Kind::Text { default: "" },
        about: "file: a saved partition.json",
    },
    Key {
        path: "split.holdout",
        since: Since::First,
        kind: number(0.0, Range { low: 0.0, high: 0.9, open: false }),
        about: "share of its samples that each client keeps back from training",
    },
    Key {
        path: "split.seed",
        since: Since::First,
        kind: Kind::Seed,
        about: "seed of split and hold-out; follows seed unless set",
    },
    Key {
        path: "cohort.fraction",
        since: Since::First,
        kind: number(0.1, SHARE),
        about: "share of the clients that a round asks",
    },
    Key {
        path: "cohort.quorum",
        since: Since::First,
        kind: count(1, 1, 1_000_000),
        about: "updates below which a round changes nothing",
    },
    Key {
        path: "cohort.absent",
        since: Since::First,
        kind: number(0.0, Range::UNIT),
        about: "probability that an asked client vanishes",
    },
    Key {
        path: "cohort.partial",
        since: Since::First,
        kind: number(0.0, Range::UNIT),
        about: "probability that an asked client finishes fewer epochs, at least one",
    },
    Key {
        path: "cohort.seed",
        since: Since::First,
        kind: Kind::Seed,
        about: "seed of the cohorts; follows seed unless set",
    },
    Key {
        path: "local.epochs",
        since: Since::First,
        kind: count(4, 1, 10_000),
        about: "epochs of local training per round",
    },
    Key {
        path: "local.batch",
        since: Since::First,
        kind: count(32, 1, 1_000_000),
        about: "samples per step",
    },
    Key {
        path: "local.lr",
        since: Since::First,
        kind: number(0.01, Range::POSITIVE),
        about: "clients' learning rate",
    },
    Key {
        path: "local.momentum",
        since: Since::First,
        kind: number(0.9, Range::BELOW_ONE),
        about: "clients' momentum, new in every round",
    },
    Key {
        path: "local.nesterov",
        since: Since::First,
        kind: Kind::Flag { default: false },
        about: "whether the momentum is Nesterov's",
    },
    Key {
        path: "local.weight_decay",
        since: Since::First,
        kind: number(0.0, Range::NOT_NEGATIVE),
        about: "added to the gradient as weight_decay w",
    },
    Key {
        path: "local.round_decay",
        since: Since::First,
        kind: number(1.0, DECAY),
        about: "factor on lr from round to round",
    },
    Key {
        path: "local.epoch_decay",
        since: Since::First,
        kind: number(1.0, DECAY),
        about: "factor on lr from epoch to epoch inside a round",
    },
    Key {
        path: "model.name",
        since: Since::First,
        kind: Kind::Text { default: "lenet" },
        about: "the model (fedtvd models lists all)",
    },
    Key {
        path: "model.layers",
        since: Since::First,
        kind: Kind::Lines,
        about: "a model of your own in place of a named one, one line per layer",
    },
    Key {
        path: "labels.reference",
        since: Since::First,
        kind: Kind::Reference,
        about: "Q of weights and loss alike: uniform, aggregated, or one number per class",
    },
    Key {
        path: "evaluation.details",
        since: Since::First,
        kind: Kind::Flag { default: false },
        about: "whether every round tells accuracy per class and on the clients' own distributions",
    },
    Key {
        path: "strategy.name",
        since: Since::First,
        kind: Kind::Text { default: "fedtvd" },
        about: "one strategy or several joined by + (fedtvd strategies lists all); its parameters are keys beside it",
    },
    Key {
        path: "strategy.mode",
        since: Since::First,
        kind: Kind::Word { default: "paper", words: &["paper", "hardened"] },
        about: "paper: weights as published; hardened: sizes capped at the median, weights at 1.6/K",
    },
];

/// The key at a path.
pub fn find(path: &str) -> Option<&'static Key> {
    ALL.iter().find(|key| key.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_keys_stay_the_first_keys() {
        let first: Vec<&str> =
            ALL.iter().filter(|key| key.since == Since::First).map(|key| key.path).collect();
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
