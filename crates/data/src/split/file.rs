//! `partition.json`: a saved split that another run, or another program, can use.

use super::{Deck, Partition};
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
    /// The partition's hash; checked when it is there.
    #[serde(default)]
    pub hash: Option<String>,
    /// The clients' names, where they have any.
    #[serde(default)]
    pub names: Option<Vec<String>>,
    /// Each client's training rows.
    pub clients: Vec<Vec<u32>>,
}

/// Why a partition file cannot be used.
#[derive(Debug, Error)]
pub enum FileError {
    /// It cannot be read or written.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: String,
        /// What the system says.
        error: std::io::Error,
    },
    /// It is no such JSON.
    #[error("{path}: expected a partition with set, rows and clients: {error}")]
    Json {
        /// The file.
        path: String,
        /// What the parser says.
        error: serde_json::Error,
    },
    /// It was made for other data.
    #[error("the partition is of {expected} training rows, but this data set has {found}")]
    OtherData {
        /// Rows that it was made for.
        expected: usize,
        /// Rows that there are.
        found: usize,
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
    #[error("the partition says that its hash is {expected}, but its lists have {found}")]
    Hash {
        /// What it says.
        expected: String,
        /// What it is.
        found: String,
    },
}

impl PartitionFile {
    /// The file of a partition.
    pub fn new(set: &str, deck: &Deck, partition: &Partition, names: Option<Vec<String>>) -> Self {
        Self {
            set: set.to_owned(),
            rows: deck.labels.len(),
            hash: Some(partition.hash()),
            names,
            clients: partition.clients.clone(),
        }
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let name = path.display().to_string();
        let text =
            std::fs::read_to_string(path).map_err(|error| FileError::Io { path: name.clone(), error })?;
        serde_json::from_str(&text).map_err(|error| FileError::Json { path: name, error })
    }

    /// Writes the file.
    pub fn write(&self, path: &Path) -> Result<(), FileError> {
        let name = path.display().to_string();
        let text =
            serde_json::to_string(self).map_err(|error| FileError::Json { path: name.clone(), error })?;
        std::fs::write(path, text + "\n").map_err(|error| FileError::Io { path: name, error })
    }

    /// The partition, checked against the data: no row twice, none beyond the end. Rows may be left out.
    pub fn partition(self, deck: &Deck) -> Result<Partition, FileError> {
        let rows = deck.labels.len();
        if self.rows != rows {
            return Err(FileError::OtherData { expected: self.rows, found: rows });
        }
        let mut owner = vec![None; rows];
        for (client, list) in self.clients.iter().enumerate() {
            if list.is_empty() {
                return Err(FileError::Empty { client });
            }
            for &row in list {
                let Some(place) = owner.get_mut(row as usize) else {
                    return Err(FileError::NoSuchRow { client, row, rows });
                };
                if let Some(other) = place.replace(client) {
                    return Err(FileError::Twice { row, client: other, other: client });
                }
            }
        }
        let partition = Partition::new(self.clients);
        match self.hash {
            Some(expected) if expected != partition.hash() => {
                Err(FileError::Hash { expected, found: partition.hash() })
            }
            _ => Ok(partition),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DECK: Deck = Deck { labels: &[0, 1, 0, 1], classes: 2, groups: None };

    fn complaint(json: &str) -> String {
        serde_json::from_str::<PartitionFile>(json).unwrap().partition(&DECK).unwrap_err().to_string()
    }

    #[test]
    fn a_saved_partition_comes_back() {
        let partition = Partition::new(vec![vec![3, 0], vec![1, 2]]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("partition.json");
        PartitionFile::new("x", &DECK, &partition, None).write(&path).unwrap();
        assert_eq!(PartitionFile::read(&path).unwrap().partition(&DECK).unwrap(), partition);
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
        assert!(
            complaint(r#"{"set": "x", "rows": 4, "hash": "00", "clients": [[0, 1]]}"#).contains("hash is 00")
        );
    }
}
