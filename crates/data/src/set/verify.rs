//! Whether the files of a data set are the published ones.

use super::catalogue::{Entry, Part};
use super::load::{LoadError, by_name};
use super::places::{Place, Places, file};
use crate::decode::archive::each_member;
use crate::decode::{Flaw, Source};
use crate::hex;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

/// What was found about one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// The file.
    pub file: String,
    /// SHA-256 that its uncompressed bytes must have.
    pub expected: String,
    /// SHA-256 that they have; none if the file is not there.
    pub found: Option<String>,
    /// Whether they agree.
    pub right: bool,
}

/// What was found about a data set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Its name.
    pub set: String,
    /// Where it is.
    pub path: String,
    /// Each file.
    pub files: Vec<Check>,
    /// Training and test rows of each class.
    pub counts: [Vec<u64>; 2],
    /// Those that it must have.
    pub expected_counts: [Vec<u64>; 2],
    /// Whether all is as published.
    pub right: bool,
}

/// Hashes every file and counts every class.
pub fn verify(entry: &Entry, places: &Places) -> Result<Verdict, LoadError> {
    let (path, files) = match entry.parts.is_empty() {
        true => ("inside the program".to_owned(), Vec::new()),
        false => {
            let place = places.find(entry)?;
            (place.path().display().to_string(), checks(entry.parts, &place)?)
        }
    };
    let samples = by_name(entry, places)?.samples;
    let mut counts = [vec![0; entry.train.len()], vec![0; entry.test.len()]];
    for (row, label) in samples.labels().iter().enumerate() {
        counts[usize::from(row >= samples.train_rows())][*label as usize] += 1;
    }
    let expected_counts = [entry.train.to_vec(), entry.test.to_vec()];
    let right = files.iter().all(|check| check.right) && counts == expected_counts;
    Ok(Verdict { set: entry.name.to_owned(), path, files, counts, expected_counts, right })
}

/// The hashes of the parts, wherever they are.
pub(crate) fn checks(parts: &[Part], place: &Place) -> Result<Vec<Check>, Flaw> {
    let mut found = BTreeMap::new();
    match place {
        Place::Folder(folder) => {
            for part in parts {
                found.insert(part.name, hash_of_file(&file(folder, part.name))?);
            }
        }
        Place::Archive(path) => each_member(Source::open(path)?, |name, reader| {
            if let Some(part) = parts.iter().find(|part| part.name == name) {
                found.insert(part.name, hash(reader).map_err(|error| unreadable(path, &error))?);
            }
            Ok(())
        })?,
    }
    let check = |part: &Part| {
        let found = found.get(part.name).cloned();
        let right = found.as_deref() == Some(part.sha256);
        Check { file: part.name.to_owned(), expected: part.sha256.to_owned(), found, right }
    };
    Ok(parts.iter().map(check).collect())
}

/// SHA-256 of a file's bytes, uncompressed.
pub(crate) fn hash_of_file(path: &Path) -> Result<String, Flaw> {
    hash(&mut Source::open(path)?.into_reader()).map_err(|error| unreadable(path, &error))
}

fn hash(reader: &mut dyn Read) -> std::io::Result<String> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match reader.read(&mut buffer)? {
            0 => return Ok(hex(&hash.finalize())),
            read => hash.update(&buffer[..read]),
        }
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> Flaw {
    Flaw {
        file: path.display().to_string(),
        offset: 0,
        expected: "a readable file".to_owned(),
        found: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::named;

    #[test]
    fn the_embedded_set_is_what_the_catalogue_says() {
        let verdict = verify(named("fmnist-mini").unwrap(), &Places::new(None)).unwrap();
        assert!(verdict.right, "{verdict:?}");
    }

    #[test]
    fn a_changed_byte_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let part = Part {
            name: "abc",
            address: None,
            length: 3,
            // printf abc | sha256sum
            sha256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        };
        let place = Place::Folder(folder.path().to_owned());
        std::fs::write(folder.path().join("abc"), "abc").unwrap();
        assert!(checks(&[part], &place).unwrap()[0].right);
        std::fs::write(folder.path().join("abc"), "abd").unwrap();
        assert!(!checks(&[part], &place).unwrap()[0].right);
    }
}
