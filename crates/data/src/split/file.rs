//! `partition.json`: a saved split that another run, or another program, can use.

use super::{Dealt, Deck, Partition};
use crate::decode::json;
use serde::{Deserialize, Serialize};
use std::path::Path;
use thiserror::Error;

/// What a partition file holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartitionFile {
    /// The data set's name.
    pub set: String,
    /// How many training rows it has.
    pub rows: usize,
    /// [`Deck::labels_hash`] of its training rows; absent in older files.
    #[serde(default)]
    pub labels: Option<String>,
    /// The partition's hash; checked if present.
    #[serde(default)]
    pub hash: Option<String>,
    /// The clients' names, if they have any.
    #[serde(default)]
    pub names: Option<Vec<String>>,
    /// Each client's training rows.
    pub clients: Vec<Vec<u32>>,
}

/// A partition file that cannot be used.
#[derive(Debug, Error)]
#[error("{path}: {flaw}")]
pub struct FileError {
    /// The file.
    pub path: String,
    /// What is wrong with it.
    pub flaw: FileFlaw,
}

/// What is wrong with a partition file.
#[derive(Debug, Error)]
pub enum FileFlaw {
    /// It cannot be read or written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// It is not JSON of this form.
    #[error("at byte {offset}: expected a partition with set, rows and clients, found {error}")]
    Json {
        /// Where.
        offset: u64,
        /// What the parser says.
        error: serde_json::Error,
    },
    /// It was made for other data.
    #[error("the partition is of {expected} training rows, but this data set has {found}")]
    OtherData {
        /// Rows that it was made for.
        expected: usize,
        /// Rows of the data set.
        found: usize,
    },
    /// It was made for data with other labels.
    #[error("the partition was made for {made_for}, whose training labels are not those of {set}")]
    OtherLabels {
        /// The set that it was made for.
        made_for: String,
        /// The set in use.
        set: String,
    },
    /// It was made for a set of another name, and nothing says that they are the same.
    #[error(
        "the partition was made for {made_for}, not for {set}, and has no hash of the labels to show \
         whether they are the same; save it again, or set its \"set\" to {set:?} if they are"
    )]
    OtherSet {
        /// The set that it was made for.
        made_for: String,
        /// The set in use.
        set: String,
    },
    /// Names that are not one for each client.
    #[error("the partition has {names} names for {clients} clients; each needs one")]
    Names {
        /// How many names.
        names: usize,
        /// How many clients.
        clients: usize,
    },
    /// A row that does not exist.
    #[error("client {client} of the partition has row {row}, but rows go from 0 to {}", rows - 1)]
    NoSuchRow {
        /// Whose.
        client: usize,
        /// Which.
        row: u32,
        /// How many there are.
        rows: usize,
    },
    /// A row in two places.
    #[error("row {row} of the partition is at client {client} and at client {other}; a row has one client")]
    Twice {
        /// Which.
        row: u32,
        /// Where.
        client: usize,
        /// And where else.
        other: usize,
    },
    /// A client without rows.
    #[error("client {client} of the partition has no rows; a client needs at least one")]
    Empty {
        /// Which.
        client: usize,
    },
    /// Lists that are not those that were saved.
    #[error("the partition states the hash {expected}, but its lists have the hash {found}")]
    Hash {
        /// The hash in the file.
        expected: String,
        /// The hash of its lists.
        found: String,
    },
}

impl PartitionFile {
    /// The file of a partition.
    pub fn new(set: &str, deck: &Deck, partition: &Partition, names: Option<Vec<String>>) -> Self {
        Self {
            set: set.to_owned(),
            rows: deck.labels.len(),
            labels: Some(deck.labels_hash()),
            hash: Some(partition.hash()),
            names,
            clients: partition.clients.clone(),
        }
    }

    /// Reads a file and checks it against the data set of this name.
    pub fn load(path: &Path, set: &str, deck: &Deck) -> Result<Dealt, FileError> {
        let read = || Self::parse(&std::fs::read_to_string(path)?)?.dealt(set, deck);
        read().map_err(|flaw| FileError { path: path.display().to_string(), flaw })
    }

    /// A file's content.
    pub fn parse(text: &str) -> Result<Self, FileFlaw> {
        let wrong = |error| FileFlaw::Json { offset: json::offset(text.as_bytes(), &error), error };
        serde_json::from_str(text).map_err(wrong)
    }

    /// Writes the file.
    pub fn write(&self, path: &Path) -> Result<(), FileError> {
        let text = serde_json::to_string(self).expect("a partition is plain data") + "\n";
        std::fs::write(path, text)
            .map_err(|error| FileError { path: path.display().to_string(), flaw: FileFlaw::Io(error) })
    }

    /// The partition, checked against the data: made for it, no row twice, none beyond the end. Rows may be
    /// left out; a note says how many.
    pub fn dealt(self, set: &str, deck: &Deck) -> Result<Dealt, FileFlaw> {
        let rows = deck.labels.len();
        if self.rows != rows {
            return Err(FileFlaw::OtherData { expected: self.rows, found: rows });
        }
        let mut notes = self.same_labels(set, deck)?;
        let mut owner = vec![None; rows];
        for (client, list) in self.clients.iter().enumerate() {
            if list.is_empty() {
                return Err(FileFlaw::Empty { client });
            }
            for &row in list {
                let Some(place) = owner.get_mut(row as usize) else {
                    return Err(FileFlaw::NoSuchRow { client, row, rows });
                };
                if let Some(other) = place.replace(client) {
                    return Err(FileFlaw::Twice { row, client: other, other: client });
                }
            }
        }
        let left = owner.iter().filter(|owner| owner.is_none()).count();
        if left > 0 {
            notes.push(format!("the saved partition leaves out {left} of {rows} training rows"));
        }
        if let Some(names) = self.names.as_ref().filter(|names| names.len() != self.clients.len()) {
            return Err(FileFlaw::Names { names: names.len(), clients: self.clients.len() });
        }
        let partition = Partition::new(self.clients);
        match self.hash {
            Some(expected) if expected != partition.hash() => {
                Err(FileFlaw::Hash { expected, found: partition.hash() })
            }
            _ => Ok(Dealt { names: self.names, notes, ..Dealt::from(partition) }),
        }
    }

    /// Whether the file was made for this data, with a note if that is not certain.
    fn same_labels(&self, set: &str, deck: &Deck) -> Result<Vec<String>, FileFlaw> {
        let others = || (self.set.clone(), set.to_owned());
        match &self.labels {
            Some(labels) if *labels != deck.labels_hash() => {
                let (made_for, set) = others();
                Err(FileFlaw::OtherLabels { made_for, set })
            }
            Some(_) if self.set != set => Ok(vec![format!(
                "the saved partition was made for {}, whose training labels are those of {set}",
                self.set
            )]),
            Some(_) => Ok(Vec::new()),
            None if self.set != set => {
                let (made_for, set) = others();
                Err(FileFlaw::OtherSet { made_for, set })
            }
            None => Ok(vec![format!(
                "the saved partition has no hash of the labels: only its name and its {} rows show that it was made \
                 for this {set}",
                self.rows
            )]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DECK: Deck = Deck { labels: &[0, 1, 0, 1], classes: 2, groups: None };

    fn complaint(json: &str) -> String {
        PartitionFile::parse(json).and_then(|file| file.dealt("x", &DECK)).unwrap_err().to_string()
    }

    #[test]
    fn a_saved_partition_comes_back() {
        let partition = Partition::new(vec![vec![3, 0], vec![1, 2]]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("partition.json");
        PartitionFile::new("x", &DECK, &partition, None).write(&path).unwrap();
        let dealt = PartitionFile::load(&path, "x", &DECK).unwrap();
        assert_eq!((dealt.partition, dealt.notes), (partition, vec![]));
    }

    #[test]
    fn a_partition_of_other_data_is_refused_even_if_it_has_as_many_rows() {
        let partition = Partition::new(vec![vec![3, 0], vec![1, 2]]);
        let file = PartitionFile::new("mnist", &DECK, &partition, None);
        let other = Deck { labels: &[1, 1, 0, 0], ..DECK };
        let refused =
            |file: &PartitionFile, deck| file.clone().dealt("fmnist", deck).unwrap_err().to_string();
        assert_eq!(
            refused(&file, &other),
            "the partition was made for mnist, whose training labels are not those of fmnist"
        );
        assert_eq!(
            file.clone().dealt("fmnist", &DECK).unwrap().notes,
            ["the saved partition was made for mnist, whose training labels are those of fmnist"]
        );
        let old = PartitionFile { labels: None, ..file };
        assert!(refused(&old, &DECK).starts_with("the partition was made for mnist, not for fmnist"));
        let notes = old.dealt("mnist", &DECK).unwrap().notes;
        assert!(notes.len() == 1 && notes[0].contains("has no hash of the labels"), "{notes:?}");
    }

    #[test]
    fn a_note_counts_the_rows_that_are_left_out() {
        let partition = Partition::new(vec![vec![0], vec![2]]);
        let dealt = PartitionFile::new("x", &DECK, &partition, None).dealt("x", &DECK).unwrap();
        assert_eq!(dealt.notes, ["the saved partition leaves out 2 of 4 training rows"]);
    }

    #[test]
    fn a_file_that_is_not_a_partition_is_named_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("partition.json");
        std::fs::write(&path, "{\"set\": \"x\",\n \"rows\": -4}").unwrap();
        let error = PartitionFile::load(&path, "x", &DECK).unwrap_err().to_string();
        assert!(error.contains("partition.json: at byte 23: expected a partition"), "{error}");
        let missing = PartitionFile::load(&folder.path().join("no"), "x", &DECK).unwrap_err().to_string();
        assert!(missing.contains("/no: No such file"), "{missing}");
    }

    #[test]
    fn a_wrong_partition_is_refused_with_the_row_and_the_client() {
        assert_eq!(
            complaint(r#"{"set": "x", "rows": 5, "clients": [[0]]}"#),
            "the partition is of 5 training rows, but this data set has 4"
        );
        assert_eq!(
            complaint(r#"{"set": "x", "rows": 4, "clients": [[0], [4]]}"#),
            "client 1 of the partition has row 4, but rows go from 0 to 3"
        );
        assert_eq!(
            complaint(r#"{"set": "x", "rows": 4, "clients": [[0, 1], [1]]}"#),
            "row 1 of the partition is at client 0 and at client 1; a row has one client"
        );
        assert_eq!(
            complaint(r#"{"set": "x", "rows": 4, "clients": [[0, 1], []]}"#),
            "client 1 of the partition has no rows; a client needs at least one"
        );
        assert_eq!(
            complaint(r#"{"set": "x", "rows": 4, "names": ["a"], "clients": [[0], [1]]}"#),
            "the partition has 1 names for 2 clients; each needs one"
        );
        assert!(
            complaint(r#"{"set": "x", "rows": 4, "hash": "00", "clients": [[0, 1]]}"#)
                .contains("states the hash 00")
        );
    }
}
