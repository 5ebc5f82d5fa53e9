//! Each client's own data in its own folder, so that a directory can play a real site.

use crate::holdout::Rows;
use crate::set::{About, Loaded, Site};
use std::path::{Path, PathBuf};

/// Writes `client-NUMBER` below `folder` for each client: what it trains on, and for testing what it keeps back.
pub fn export(set: &str, data: &Loaded, clients: &[Rows], folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let about = About { set: set.to_owned(), classes: data.class_names.clone(), normal: data.normal.clone() };
    let digits = clients.len().saturating_sub(1).max(100).to_string().len();
    let mut folders = Vec::new();
    for (client, Rows { train, holdout }) in clients.iter().enumerate() {
        let folder = folder.join(format!("client-{client:0digits$}"));
        Site { about: about.clone(), samples: &data.samples, train, test: holdout }.write(&folder)?;
        folders.push(folder);
    }
    Ok(folders)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::holdout::keep_back;
    use crate::set::{DataOptions, Places};
    use crate::split::{Deck, SplitOptions};

    #[test]
    fn a_directory_holds_exactly_what_its_client_has() {
        let places = Places::new(None);
        let data = DataOptions::default().load(&places).unwrap();
        let split = SplitOptions { clients: 3, ..SplitOptions::default() };
        let partition = split.split(&Deck::new(&data.samples, None), 1).unwrap();
        let clients = keep_back(&partition, 0.1, 1);
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
}
