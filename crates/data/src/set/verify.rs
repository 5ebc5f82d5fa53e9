//! Whether the files of a data set are the published ones.

use super::catalogue::{Entry, Part};
use super::load::by_name;
use super::places::{Missing, Place, Places, file};
use crate::decode::archive::each_member;
use crate::decode::{Flaw, READABLE, Source};
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
    /// SHA-256 that they have; `None` if the file is missing or cannot be read.
    pub found: Option<String>,
    /// Where and why it cannot be read.
    pub flaw: Option<String>,
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
    /// Training and test rows of each class; empty if they cannot be counted.
    pub counts: [Vec<u64>; 2],
    /// Those that it must have.
    pub expected_counts: [Vec<u64>; 2],
    /// Why the rows cannot be counted.
    pub flaw: Option<String>,
    /// Whether everything is as published.
    pub right: bool,
}

/// Hashes every file and counts every class; what cannot be read is part of the verdict.
pub fn verify(entry: &Entry, places: &Places) -> Result<Verdict, Missing> {
    let (path, files) = match entry.parts.is_empty() {
        true => ("inside the program".to_owned(), Vec::new()),
        false => {
            let place = places.find(entry)?;
            (place.path().display().to_string(), checks(entry.parts, &place))
        }
    };
    let (counts, flaw) = match by_name(entry, places) {
        Ok(loaded) => {
            let samples = loaded.samples;
            let mut counts = [vec![0; entry.train.len()], vec![0; entry.test.len()]];
            for (row, label) in samples.labels().iter().enumerate() {
                counts[usize::from(row >= samples.train_rows())][*label as usize] += 1;
            }
            (counts, None)
        }
        Err(error) => (Default::default(), Some(error.to_string())),
    };
    let expected_counts = [entry.train.to_vec(), entry.test.to_vec()];
    let right = files.iter().all(|check| check.right) && counts == expected_counts;
    Ok(Verdict { set: entry.name.to_owned(), path, files, counts, expected_counts, flaw, right })
}

/// The hashes of the parts, wherever they are.
pub(crate) fn checks(parts: &[Part], place: &Place) -> Vec<Check> {
    let mut found = BTreeMap::new();
    let broken = match place {
        Place::Folder(folder) => {
            found.extend(parts.iter().map(|part| (part.name, hash_of_file(&file(folder, part.name)))));
            None
        }
        Place::Archive(path) => {
            let member = |name: &str| format!("{name} in {}", path.display());
            let visited = Source::open(path).and_then(|source| {
                each_member(source, |name, reader| {
                    if let Some(part) = parts.iter().find(|part| part.name == name) {
                        found.insert(part.name, Ok(hash(&member(name), reader)?));
                    }
                    Ok(())
                })
            });
            visited.err()
        }
    };
    let check = |part: &Part| {
        let (found, flaw) = match found.remove(part.name) {
            Some(Ok(hash)) => (Some(hash), None),
            Some(Err(flaw)) => (None, Some(flaw)),
            None => (None, broken.clone()),
        };
        let right = found.as_deref() == Some(part.sha256);
        let flaw = flaw.map(|flaw| flaw.to_string());
        Check { file: part.name.to_owned(), expected: part.sha256.to_owned(), found, flaw, right }
    };
    parts.iter().map(check).collect()
}

/// SHA-256 of a file's bytes, uncompressed.
pub(crate) fn hash_of_file(path: &Path) -> Result<String, Flaw> {
    hash(&path.display().to_string(), &mut Source::open(path)?.into_reader())
}

fn hash(file: &str, reader: &mut dyn Read) -> Result<String, Flaw> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    let mut offset = 0;
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return Ok(hex(&hash.finalize())),
            Ok(read) => {
                hash.update(&buffer[..read]);
                offset += read as u64;
            }
            Err(error) => {
                let (file, expected) = (file.to_owned(), READABLE.to_owned());
                return Err(Flaw { file, offset, expected, found: error.to_string() });
            }
        }
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
    fn a_changed_byte_is_reported() {
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
        assert!(checks(&[part], &place)[0].right);
        std::fs::write(folder.path().join("abc"), "abd").unwrap();
        assert!(!checks(&[part], &place)[0].right);
    }

    #[test]
    fn a_truncated_file_is_reported_with_its_place_and_the_others_are_still_hashed() {
        let folder = tempfile::tempdir().unwrap();
        let part = |name| Part { name, address: None, length: 3, sha256: "" };
        let content: Vec<u8> = (0..100_000u32).flat_map(|x| x.wrapping_mul(x).to_le_bytes()).collect();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut gzip, &content).unwrap();
        let packed = gzip.finish().unwrap();
        std::fs::write(folder.path().join("cut.gz"), &packed[..packed.len() / 2]).unwrap();
        std::fs::write(folder.path().join("whole"), "abc").unwrap();
        let place = Place::Folder(folder.path().to_owned());
        let checks = checks(&[part("cut"), part("whole"), part("none")], &place);
        let flaw = checks[0].flaw.as_deref().unwrap();
        let offset: u64 = flaw.split("at byte ").nth(1).unwrap().split(':').next().unwrap().parse().unwrap();
        assert!(flaw.contains("cut.gz") && (1..400_000).contains(&offset), "{flaw}");
        assert!(checks[1].found.is_some() && checks[1].flaw.is_none());
        assert!(checks[2].flaw.as_deref().unwrap().contains("none.gz cannot be read: "));
    }
}
