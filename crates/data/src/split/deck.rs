//! What is dealt: the training rows with their labels and, if known, their natural owner.

use super::SplitError;
use super::partition::Partition;
use crate::hex;
use fedtvd_core::train::Samples;
use sha2::{Digest, Sha256};

/// The natural owner of each training row: a hospital, a writer, a column of a table.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Groups {
    /// The owners' names.
    pub names: Vec<String>,
    /// For each training row the index of its owner in `names`.
    pub of: Vec<u32>,
}

/// Training rows to deal.
#[derive(Clone, Copy, Debug)]
pub struct Deck<'a> {
    /// The label of each row.
    pub labels: &'a [u32],
    /// How many classes there are.
    pub classes: usize,
    /// Who owns which row, if that is known.
    pub groups: Option<&'a Groups>,
}

impl<'a> Deck<'a> {
    /// The training rows of a data set.
    pub fn new(samples: &'a Samples, groups: Option<&'a Groups>) -> Self {
        let labels = &samples.labels()[..samples.train_rows()];
        Self { labels, classes: samples.classes(), groups }
    }

    /// SHA-256 of the labels, by which a saved partition identifies its data.
    pub fn labels_hash(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(b"fedtvd labels 1\n");
        hash.update((self.classes as u64).to_le_bytes());
        hash.update((self.labels.len() as u64).to_le_bytes());
        self.labels.iter().for_each(|label| hash.update(label.to_le_bytes()));
        hex(&hash.finalize())
    }

    /// The rows of each class, ascending.
    pub(crate) fn by_class(&self) -> Vec<Vec<u32>> {
        let mut rows = vec![Vec::new(); self.classes];
        for (row, &label) in self.labels.iter().enumerate() {
            rows[label as usize].push(row as u32);
        }
        rows
    }

    /// All rows, ascending.
    pub(crate) fn rows(&self) -> Vec<u32> {
        (0..self.labels.len() as u32).collect()
    }

    /// Each owner as a client.
    pub(crate) fn natural(&self) -> Result<Partition, SplitError> {
        let groups = self.groups.ok_or(SplitError::NoGroups)?;
        let mut clients = vec![Vec::new(); groups.names.len()];
        for (row, &group) in groups.of.iter().enumerate() {
            clients[group as usize].push(row as u32);
        }
        if let Some(empty) = clients.iter().position(Vec::is_empty) {
            return Err(SplitError::EmptyGroup { name: groups.names[empty].clone() });
        }
        Ok(Partition::new(clients))
    }

    /// Checks that there are enough rows for this many clients of this size.
    pub(crate) fn check(&self, clients: usize, min_size: usize) -> Result<(), SplitError> {
        if clients == 0 {
            return Err(SplitError::range("clients", 0.0, "the numbers from 1"));
        }
        let rows = self.labels.len();
        if clients.saturating_mul(min_size.max(1)) > rows {
            return Err(SplitError::Rows { clients, min_size: min_size.max(1), rows });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_become_clients() {
        let groups = Groups { names: vec!["north".into(), "south".into()], of: vec![1, 0, 1] };
        let deck = Deck { labels: &[0, 0, 0], classes: 1, groups: Some(&groups) };
        assert_eq!(deck.natural().unwrap().clients, [vec![1], vec![0, 2]]);
        assert_eq!(
            Deck { groups: None, ..deck }.natural().unwrap_err().to_string(),
            "this data set has no natural owners: choose another kind, or name a column with data.group"
        );
    }
}
