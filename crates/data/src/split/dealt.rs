//! A split as a run uses it: who has which rows, and what a user should know about it.

use super::{Deck, Kind, Partition, PartitionFile, SplitError, SplitOptions};

/// What a split is made for.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// The data set's name.
    pub set: &'a str,
    /// The run's seed, for splits without one of their own.
    pub seed: u64,
}

/// Rows that have been dealt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dealt {
    /// Who has which training rows.
    pub partition: Partition,
    /// The clients' names, where they have any.
    pub names: Option<Vec<String>>,
    /// What a user should know about the split.
    pub notes: Vec<String>,
}

impl From<Partition> for Dealt {
    fn from(partition: Partition) -> Self {
        Self { partition, names: None, notes: Vec::new() }
    }
}

impl SplitOptions {
    /// The training rows dealt to the clients.
    pub fn deal(&self, deck: &Deck, terms: &Terms) -> Result<Dealt, SplitError> {
        match self.kind {
            Kind::Natural => {
                let names = deck.groups.map(|groups| groups.names.clone());
                Ok(Dealt { names, ..Dealt::from(deck.natural()?) })
            }
            Kind::File => {
                let path = self.file.as_ref().ok_or(SplitError::NoFile)?;
                Ok(PartitionFile::load(path, terms.set, deck)?)
            }
            _ => Ok(Dealt::from(self.drawn(deck, self.seed.unwrap_or(terms.seed))?)),
        }
    }
}
