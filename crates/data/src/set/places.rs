//! Where data sets are searched for.

use super::catalogue::Entry;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The folders in which data sets may be, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    folders: Vec<PathBuf>,
    fetched: PathBuf,
}

/// Where a data set was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A folder with its files.
    Folder(PathBuf),
    /// A tar.gz with its files.
    Archive(PathBuf),
}

/// A data set that was not found.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{name} is not on this machine: looked for {} in {}; \
     get it with \"fedtvd data fetch {name}\", or put the files there by hand",
    files.join(", "),
    looked.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
)]
pub struct Missing {
    /// Its name.
    pub name: String,
    /// The files that were searched for.
    pub files: Vec<String>,
    /// Where they were searched for.
    pub looked: Vec<PathBuf>,
}

const DEBIAN: &str = "/usr/share/datasets";

impl Places {
    /// The folder given by the user, then that of `FEDTVD_DATA`, then Debian's, then where `fetch` puts things.
    pub fn new(given: Option<PathBuf>) -> Self {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = || variable("HOME").map(|home| home.join(".local/share"));
        let own = variable("XDG_DATA_HOME").or_else(home).map(|folder| folder.join("fedtvd"));
        Self::among(given, variable("FEDTVD_DATA"), own.unwrap_or_else(|| PathBuf::from("fedtvd-data")))
    }

    fn among(given: Option<PathBuf>, environment: Option<PathBuf>, own: PathBuf) -> Self {
        let fetched = given.clone().or_else(|| environment.clone()).unwrap_or_else(|| own.clone());
        let folders = given.into_iter().chain(environment).chain([PathBuf::from(DEBIAN), own]).collect();
        Self { folders, fetched }
    }

    /// The folder into which `fetch` puts a data set.
    pub fn target(&self, entry: &Entry) -> PathBuf {
        let folder = entry.folders.first().copied().unwrap_or("");
        if entry.archive.is_some() { self.fetched.clone() } else { self.fetched.join(folder) }
    }

    /// The folder or archive in which a data set is.
    pub fn path(&self, entry: &Entry) -> Result<PathBuf, Missing> {
        self.find(entry).map(|place| place.path().to_owned())
    }

    /// The folder that holds every file of a data set, or its archive.
    pub(crate) fn find(&self, entry: &Entry) -> Result<Place, Missing> {
        let mut looked = Vec::new();
        for folder in &self.folders {
            for candidate in candidates(folder, entry) {
                if entry.parts.iter().all(|part| file(&candidate, part.name).is_file()) {
                    return Ok(Place::Folder(candidate));
                }
                looked.push(candidate);
            }
            if let Some(archive) = entry.archive.map(|archive| folder.join(archive.name)) {
                if archive.is_file() {
                    return Ok(Place::Archive(archive));
                }
                looked.push(archive);
            }
        }
        let files = entry.parts.iter().map(|part| part.name.to_owned()).collect();
        Err(Missing { name: entry.name.to_owned(), files, looked })
    }
}

impl Place {
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Folder(path) | Self::Archive(path) => path,
        }
    }
}

/// The set's folders below a folder, and the folder itself if it has such a name.
fn candidates(folder: &Path, entry: &Entry) -> Vec<PathBuf> {
    let own = entry.folders.iter().any(|name| folder.ends_with(name));
    let below = entry.folders.iter().map(|name| folder.join(name));
    own.then(|| folder.to_owned()).into_iter().chain(below).collect()
}

/// The path of a file that may be compressed.
pub(crate) fn file(folder: &Path, name: &str) -> PathBuf {
    let plain = folder.join(name);
    if plain.is_file() { plain } else { folder.join(format!("{name}.gz")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::named;
    use std::fs;

    #[test]
    fn a_given_folder_comes_before_the_environments() {
        let (given, environment) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let entry = named("fmnist").unwrap();
        let places = Places::among(
            Some(given.path().to_owned()),
            Some(environment.path().to_owned()),
            environment.path().join("own"),
        );
        let missing = places.find(entry).unwrap_err();
        assert_eq!(missing.looked[0], given.path().join("fashion-mnist"));
        assert!(missing.to_string().contains("fedtvd data fetch fmnist"), "{missing}");
        for folder in [environment.path(), given.path()] {
            let set = folder.join("fashion-mnist");
            fs::create_dir(&set).unwrap();
            for part in entry.parts {
                fs::write(set.join(format!("{}.gz", part.name)), "").unwrap();
            }
            assert_eq!(places.find(entry).unwrap(), Place::Folder(set));
        }
        assert_eq!(places.target(entry), given.path().join("fashion-mnist"));
    }

    #[test]
    fn the_sets_own_folder_and_its_archive_are_found_too() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("cifar-10-batches-bin");
        let entry = named("cifar10").unwrap();
        let places = |given: &Path| Places::among(Some(given.to_owned()), None, folder.path().join("own"));
        let archive = folder.path().join("cifar-10-binary.tar.gz");
        fs::write(&archive, "").unwrap();
        assert_eq!(places(folder.path()).find(entry).unwrap(), Place::Archive(archive));
        fs::create_dir(&own).unwrap();
        entry.parts.iter().for_each(|part| fs::write(own.join(part.name), "").unwrap());
        assert_eq!(places(&own).find(entry).unwrap(), Place::Folder(own));
    }
}
