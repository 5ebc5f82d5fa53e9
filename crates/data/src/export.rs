//! Each client's data in a folder of its own, so that a folder can stand for a real site.

use crate::holdout::ClientRows;
use crate::set::{About, Loaded, Site};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use thiserror::Error;

const START: &str = "client-";

/// Why clients' folders are not written.
#[derive(Debug, Error)]
pub enum ExportError {
    /// The folder already contains clients.
    #[error(
        "{} already contains {first}, and clients of two splits must not mix: use another folder, or remove its \
         client-* folders first",
        folder.display()
    )]
    Taken {
        /// The folder for the clients.
        folder: PathBuf,
        /// The first client folder in it.
        first: String,
    },
    /// The disk.
    #[error("{}: {error}", path.display())]
    Disk {
        /// Which file or folder.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
}

/// Checks that no client's folder is below `folder`, which need not exist; nothing is ever deleted.
pub fn vacant(folder: &Path) -> Result<(), ExportError> {
    let disk = |error| ExportError::Disk { path: folder.to_owned(), error };
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(disk)?,
    };
    let mut clients = Vec::new();
    for entry in entries {
        let name = entry.map_err(disk)?.file_name().to_string_lossy().into_owned();
        if name.starts_with(START) {
            clients.push(name);
        }
    }
    match clients.into_iter().min() {
        None => Ok(()),
        Some(first) => Err(ExportError::Taken { folder: folder.to_owned(), first }),
    }
}

/// Writes `client-NUMBER` below `folder` for each client: its training rows, and its hold-out as test rows.
pub fn export(
    set: &str,
    data: &Loaded,
    clients: &[ClientRows],
    folder: &Path,
) -> Result<Vec<PathBuf>, ExportError> {
    vacant(folder)?;
    let about = About { set: set.to_owned(), classes: data.class_names.clone(), normal: data.normal.clone() };
    let digits = clients.len().saturating_sub(1).max(100).to_string().len();
    let mut folders = Vec::new();
    for (client, ClientRows { train, holdout }) in clients.iter().enumerate() {
        let folder = folder.join(format!("{START}{client:0digits$}"));
        Site { about: about.clone(), samples: &data.samples, train, test: holdout }
            .write(&folder)
            .map_err(|error| ExportError::Disk { path: folder.clone(), error })?;
        folders.push(folder);
    }
    Ok(folders)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::{DataOptions, Places};
    use crate::split::{Deck, SplitOptions, Terms};

    #[test]
    fn a_directory_holds_exactly_what_its_client_has() {
        let places = Places::new(None);
        let data = DataOptions::default().load(&places).unwrap();
        let split = SplitOptions { clients: 3, ..SplitOptions::default() };
        let terms = Terms { set: "fmnist-mini", seed: 1, holdout: 0.1, reference: None };
        let clients = split.deal(&Deck::new(&data.samples, None), &terms).unwrap().clients;
        let folder = tempfile::tempdir().unwrap();
        let folders = export("fmnist-mini", &data, &clients, folder.path()).unwrap();
        assert_eq!(folders[2], folder.path().join("client-002"));
        let (mut own, mut original) = ([0.0; 784], [0.0; 784]);
        for (folder, rows) in folders.iter().zip(&clients) {
            let set = folder.to_str().unwrap().to_owned();
            let site = DataOptions { set, ..DataOptions::default() }.load(&places).unwrap();
            assert_eq!(site.samples.train_rows(), rows.train.len());
            assert_eq!(site.samples.rows(), rows.train.len() + rows.holdout.len());
            for (place, row) in rows.train.iter().chain(&rows.holdout).enumerate() {
                site.samples.read(place as u32, &mut own);
                data.samples.read(*row, &mut original);
                assert_eq!(
                    (own, site.samples.labels()[place]),
                    (original, data.samples.labels()[*row as usize])
                );
            }
        }
    }

    #[test]
    fn clients_of_two_splits_do_not_mix() {
        let data = DataOptions::default().load(&Places::new(None)).unwrap();
        let clients: Vec<ClientRows> =
            (0..3).map(|row| ClientRows { train: vec![row], holdout: vec![] }).collect();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("README"), "mine").unwrap();
        export("x", &data, &clients, folder.path()).unwrap();
        let refused = export("x", &data, &clients[..2], folder.path()).unwrap_err().to_string();
        assert!(refused.contains("already contains client-000"), "{refused}");
        assert!(
            folder.path().join("client-002/set.json").is_file() && folder.path().join("README").is_file()
        );
        vacant(&folder.path().join("new")).unwrap();
    }
}
