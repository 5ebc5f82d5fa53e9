//! MNIST and Fashion-MNIST: four IDX files, compressed or not; bytes worth 0 to 1.

use super::catalogue::Entry;
use super::load::{LoadError, Loaded};
use super::places::file;
use crate::decode::{Flaw, Source, idx};
use crate::split::Groups;
use fedtvd_core::train::{Samples, Values};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

pub(crate) fn load(entry: &Entry, folder: &Path) -> Result<Loaded, LoadError> {
    let rows = entry.train.iter().chain(entry.test).sum::<u64>() as usize;
    // One allocation for all, so that pixels are never copied.
    let mut pixels = Vec::with_capacity(rows * 28 * 28);
    let mut labels = Vec::new();
    for part in ["train", "t10k"] {
        let path = file(folder, &format!("{part}-images-idx3-ubyte"));
        let images = idx::images(&mut Source::open(&path)?, &mut pixels)?;
        if (images.height, images.width) != (28, 28) {
            let found = format!("{}x{}", images.height, images.width);
            return Err(flaw(&path, 8, "images of 28x28", found).into());
        }
        let path = file(folder, &format!("{part}-labels-idx1-ubyte"));
        let own = idx::labels(&mut Source::open(&path)?, 10)?;
        if own.len() != images.count {
            let expected = format!("{} labels, as many as images", images.count);
            return Err(flaw(&path, 4, &expected, own.len().to_string()).into());
        }
        labels.push(own);
    }
    let train = labels[0].len();
    let labels = labels.concat().into_iter().map(u32::from).collect();
    let samples = Samples::new([1, 28, 28], 10, Values::bytes(pixels, &[(0.0, 1.0)]), labels, train)?;
    let class_names = entry.class_names();
    Ok(Loaded {
        samples: Arc::new(samples),
        normal: vec![(0.0, 1.0)],
        groups: None,
        class_names,
        notes: Vec::new(),
        table: None,
    })
}

/// The writers of MNIST's training images, if the label file of QMNIST is in a folder beside.
pub(crate) fn writers(folder: &Path, train: usize) -> Result<Option<Groups>, LoadError> {
    let path = file(&folder.with_file_name("mnist-writers"), "qmnist-train-labels-idx2-int");
    if !path.exists() {
        return Ok(None);
    }
    // Column 2 is the writer's number at NIST.
    let writers = idx::column(&mut Source::open(&path)?, 2)?;
    if writers.len() != train {
        let expected = format!("{train} rows, as many as training images");
        return Err(flaw(&path, 4, &expected, writers.len().to_string()).into());
    }
    let mut places: BTreeMap<u32, u32> = writers.iter().map(|writer| (*writer, 0)).collect();
    for (place, number) in places.values_mut().zip(0..) {
        *place = number;
    }
    let names = places.keys().map(|writer| format!("writer {writer}")).collect();
    Ok(Some(Groups { names, of: writers.iter().map(|writer| places[writer]).collect() }))
}

fn flaw(path: &Path, offset: u64, expected: &str, found: String) -> Flaw {
    Flaw { file: path.display().to_string(), offset, expected: expected.to_owned(), found }
}
