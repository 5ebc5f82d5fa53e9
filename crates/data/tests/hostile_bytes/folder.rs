//! Data sets that are files in a folder of their own.

use fedtvd_data::decode::npy;
use fedtvd_data::set::{DataOptions, LoadError, Places};
use std::path::Path;
use std::sync::OnceLock;

pub(crate) const SITE: [&str; 5] = ["set.json", "x_train.npy", "y_train.npy", "x_test.npy", "y_test.npy"];

/// The files of a client's own folder, each behind its number.
pub(crate) fn site_files() -> Vec<Vec<u8>> {
    let array = |shape: &[usize], numbers| npy::npy(&npy::Array { shape: shape.to_vec(), numbers });
    let about = r#"{"set": "x", "classes": ["a", "b"], "normal": [[0.5, 0.25]]}"#;
    let files = [
        about.as_bytes().to_vec(),
        array(&[3, 1, 2, 2], npy::Numbers::Bytes((0..12).collect())),
        array(&[3], npy::Numbers::Counts(vec![0, 1, 0])),
        array(&[1, 1, 2, 2], npy::Numbers::Bytes(vec![7; 4])),
        array(&[1], npy::Numbers::Counts(vec![1])),
    ];
    files.into_iter().zip(0u8..).map(|(file, number)| [vec![number], file].concat()).collect()
}

pub(crate) fn own_folder() -> &'static Path {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let made = || {
        // In memory if there is such a folder.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let folder = folder.expect("a folder for temporary files");
        SITE.iter().zip(site_files()).for_each(|(name, file)| put(folder.path(), name, &file[1..]));
        folder
    };
    FOLDER.get_or_init(made).path()
}

pub(crate) fn put(folder: &Path, name: &str, content: &[u8]) {
    std::fs::write(folder.join(name), content).expect("a small file can be written");
}

/// Whether a data set loads, or fails behind its header.
pub(crate) fn got_past(path: &Path, header: u64) -> bool {
    let set = path.to_str().expect("the folder's name is text").to_owned();
    match (DataOptions { set, ..DataOptions::default() }).load(&Places::new(None)) {
        Ok(_) => true,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            !matches!(error, LoadError::Flaw(flaw) if flaw.offset < header)
        }
    }
}
