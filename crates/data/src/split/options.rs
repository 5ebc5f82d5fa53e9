//! A split by its name and parameters, as a configuration writes it.

use super::{
    Correlated, Deck, Dirichlet, Hsu, Labels, Partition, Planted, Quantity, Shards, Shift, SplitError, Terms,
    iid,
};
use std::path::PathBuf;

/// How rows are dealt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitKind {
    /// Equal parts of the shuffled rows.
    Iid,
    /// Per-class Dirichlet.
    Dirichlet,
    /// Hsu's per-client Dirichlet.
    Hsu,
    /// Shards of rows sorted by label.
    Shards,
    /// k labels per client.
    Labels,
    /// Unequal sizes, IID labels.
    Quantity,
    /// Sizes and skews with a chosen rank correlation.
    Correlated,
    /// Each natural owner a client.
    Natural,
    /// A saved partition.
    File,
}

impl SplitKind {
    /// The kinds' names, in the order of the kinds.
    pub const WORDS: &[&str] =
        &["iid", "dirichlet", "hsu", "shards", "labels", "quantity", "correlated", "natural", "file"];
    /// All kinds.
    pub const ALL: [Self; 9] = [
        Self::Iid,
        Self::Dirichlet,
        Self::Hsu,
        Self::Shards,
        Self::Labels,
        Self::Quantity,
        Self::Correlated,
        Self::Natural,
        Self::File,
    ];

    /// The kind's name.
    pub fn word(self) -> &'static str {
        let place = Self::ALL.iter().position(|kind| *kind == self);
        Self::WORDS[place.expect("every kind is in the list")]
    }

    /// The kind of that name.
    pub fn named(word: &str) -> Option<Self> {
        Self::WORDS.iter().position(|known| *known == word).map(|place| Self::ALL[place])
    }
}

/// Every parameter of every split; each kind reads its own.
#[derive(Clone, Debug, PartialEq)]
pub struct SplitOptions {
    /// How rows are dealt.
    pub kind: SplitKind,
    /// How many clients.
    pub clients: usize,
    /// Concentration of `dirichlet` (per class), `hsu` (total) and the most skewed client of `correlated`.
    pub alpha: f64,
    /// The minimum number of rows of a client.
    pub min_size: usize,
    /// `dirichlet`: whether a client above the mean size gets nothing of the classes that follow.
    pub self_balancing: bool,
    /// How often to draw before giving up.
    pub tries: u32,
    /// `shards`: shards of a client.
    pub shards: usize,
    /// `labels`: labels of a client.
    pub labels: usize,
    /// `quantity`: concentration of the sizes.
    pub beta: f64,
    /// `correlated`: rank correlation of size and TVD.
    pub correlation: f64,
    /// `correlated`: standard deviation of the logarithm of sizes.
    pub spread: f64,
    /// `correlated`: concentration of the most even client.
    pub alpha_even: f64,
    /// `file`: where the partition is.
    pub file: Option<PathBuf>,
    /// How the clients' images differ.
    pub shift: Shift,
    /// Groups of clients whose labels contradict each other.
    pub groups: Planted,
    /// Seed of the split; the run's seed if `None`.
    pub seed: Option<u64>,
}

impl Default for SplitOptions {
    fn default() -> Self {
        let Dirichlet { clients, alpha, min_size, self_balancing, tries } = Dirichlet::default();
        Self {
            kind: SplitKind::Dirichlet,
            clients,
            alpha,
            min_size,
            self_balancing,
            tries,
            shards: 2,
            labels: 2,
            beta: 0.5,
            correlation: 0.8,
            spread: 1.0,
            alpha_even: 10.0,
            file: None,
            shift: Shift::default(),
            groups: Planted::default(),
            seed: None,
        }
    }
}

impl SplitOptions {
    /// The requested rank correlation of size and TVD.
    pub fn asked_correlation(&self) -> Option<f64> {
        (self.kind == SplitKind::Correlated).then_some(self.correlation)
    }

    /// The split of a kind that draws.
    pub(crate) fn drawn(&self, deck: &Deck, terms: &Terms) -> Result<Partition, SplitError> {
        let seed = terms.seed;
        let Self { clients, alpha, min_size, self_balancing, tries, shards, labels, .. } = *self;
        let Self { correlation, spread, alpha_even, .. } = *self;
        match self.kind {
            SplitKind::Iid => iid::split(deck, clients, seed),
            SplitKind::Dirichlet => {
                Dirichlet { clients, alpha, min_size, self_balancing, tries }.split(deck, seed)
            }
            SplitKind::Hsu => Hsu { clients, alpha }.split(deck, seed),
            SplitKind::Shards => Shards { clients, shards }.split(deck, seed),
            SplitKind::Labels => Labels { clients, labels, min_size, tries }.split(deck, seed),
            SplitKind::Quantity => self.quantity().split(deck, seed),
            SplitKind::Correlated => {
                Correlated { clients, alpha, alpha_even, spread, correlation, min_size, tries }
                    .split(deck, terms)
            }
            SplitKind::Natural | SplitKind::File => unreachable!("these draw nothing"),
        }
    }

    pub(crate) fn quantity(&self) -> Quantity {
        let Self { clients, beta, min_size, tries, .. } = *self;
        Quantity { clients, beta, min_size, tries }
    }
}
