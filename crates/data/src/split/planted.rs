//! Planted groups: clients of different groups contradict each other in what labels mean. A method that finds groups of clients
//! can be judged by them.
//!
//! ```text
//! client k belongs to group g = k mod G;  a sample of class c has the label (c + g) mod C
//! ```
//!
//! Labels of training rows and hold-outs are changed, and who has which row is not. Rows that no client has, such as the server's test
//! rows, stay as they are: those of group 0.

use crate::holdout::ClientRows;
use fedtvd_core::train::Samples;
use sha2::{Digest, Sha256};
use thiserror::Error;

/// The number of groups of a split's clients; with one, nothing is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planted(pub usize);

impl Default for Planted {
    fn default() -> Self {
        Self(1)
    }
}

/// Why groups cannot be planted.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum PlantedError {
    /// More groups than clients.
    #[error("split.groups = {groups} is more than the {clients} clients of this split")]
    Clients {
        /// Number of groups.
        groups: usize,
        /// Number of clients.
        clients: usize,
    },
    /// Not images: what a table's values mean is settled after the split.
    #[error("split.groups = {0} is for images; leave it out for a table")]
    Table(usize),
    /// More groups than ways to shift labels.
    #[error(
        "split.groups = {groups} is more than the {classes} classes, whose labels are shifted by one from group to group"
    )]
    Classes {
        /// Number of groups.
        groups: usize,
        /// Number of classes.
        classes: usize,
    },
}

impl Planted {
    /// The samples with each client's labels as its group calls them; `None` with a single group.
    pub fn samples(self, samples: &Samples, clients: &[ClientRows]) -> Result<Option<Samples>, PlantedError> {
        let (Self(groups), classes) = (self, samples.classes());
        if groups <= 1 {
            return Ok(None);
        }
        if samples.shape()[1..] == [1, 1] {
            return Err(PlantedError::Table(groups));
        }
        if groups > clients.len() {
            return Err(PlantedError::Clients { groups, clients: clients.len() });
        }
        if groups > classes {
            return Err(PlantedError::Classes { groups, classes });
        }
        let mut shifted = samples.clone();
        for group in 1..groups {
            let own = clients.iter().skip(group).step_by(groups);
            let rows: Vec<u32> = own.flat_map(|own| own.train.iter().chain(&own.holdout).copied()).collect();
            shifted = shifted.relabelled(&rows, |label| (label + group as u32) % classes as u32);
        }
        Ok(Some(shifted))
    }

    /// The hash of a split with these groups; that of the split itself with a single one.
    pub fn hash(self, split: String) -> String {
        if self.0 <= 1 {
            return split;
        }
        let mut hash = Sha256::new();
        hash.update(b"fedtvd partition with planted groups 1\n");
        hash.update(split);
        hash.update((self.0 as u64).to_le_bytes());
        crate::hex(&hash.finalize())
    }

    /// What they do, for people; `None` with a single group.
    pub fn description(self) -> Option<String> {
        let Self(groups) = self;
        (groups > 1).then(|| {
            format!(
                "{groups} planted groups: client k belongs to group k mod {groups}, which has its labels shifted by its number; the \
                 test set is that of group 0"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedtvd_core::train::Values;

    /// Four clients of two rows, one of them held out, and a test row.
    fn samples() -> (Samples, Vec<ClientRows>) {
        let labels = vec![0, 1, 2, 0, 1, 2, 0, 1, 2];
        let samples = Samples::new([1, 1, 2], 3, Values::Floats(vec![0.0; 18]), labels, 8).unwrap();
        let client = |k: u32| ClientRows { train: vec![2 * k], holdout: vec![2 * k + 1] };
        (samples, (0..4).map(client).collect())
    }

    #[test]
    fn each_group_shifts_its_labels_by_its_number_in_training_rows_and_hold_outs_and_nobody_elses() {
        let (samples, clients) = samples();
        let planted = Planted(3).samples(&samples, &clients).unwrap().unwrap();
        // Clients in groups 0, 1, 2, 0; the test row stays.
        assert_eq!(planted.labels(), [0, 1, 0, 1, 0, 1, 0, 1, 2]);
    }

    #[test]
    fn groups_that_cannot_be_planted_are_refused_and_a_single_one_changes_nothing() {
        let (samples, clients) = samples();
        let refused = |groups| Planted(groups).samples(&samples, &clients).unwrap_err().to_string();
        assert_eq!(refused(5), "split.groups = 5 is more than the 4 clients of this split");
        assert!(refused(4).starts_with("split.groups = 4 is more than the 3 classes"));
        let one = Planted::default();
        assert!(one.samples(&samples, &clients).unwrap().is_none() && one.description().is_none());
        assert_eq!(one.hash("abc".to_owned()), "abc");
        assert_ne!(Planted(2).hash("abc".to_owned()), Planted(3).hash("abc".to_owned()));
    }
}
