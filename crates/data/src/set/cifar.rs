//! CIFAR-10 and CIFAR-100: the official binary files, in their folder or in their tar.gz.

use super::catalogue::Entry;
use super::load::{LoadError, Loaded};
use super::places::{Place, file};
use crate::decode::archive::each_member;
use crate::decode::cifar::{IMAGE, Layout, records};
use crate::decode::{Flaw, Source};
use fedtvd_core::train::{Samples, Values};
use std::sync::Arc;

/// Mean and deviation of red, green and blue over CIFAR-10's training set, used for both sets, for training
/// and test alike.
pub(crate) const NORMAL: [(f32, f32); 3] =
    [(0.491_399_68, 0.247_032_33), (0.482_158_27, 0.243_485_05), (0.446_531_24, 0.261_587_68)];

pub(crate) fn load(entry: &Entry, layout: Layout, place: &Place) -> Result<Loaded, LoadError> {
    let rows = (entry.train.iter().sum::<u64>() + entry.test.iter().sum::<u64>()) as usize;
    let pixels_of = |length: u64| length as usize / layout.record() * IMAGE;
    let mut pixels = vec![0; rows * IMAGE];
    let mut labels = vec![Vec::new(); entry.parts.len()];
    // Where each file's pixels go: an archive may hold them in any order.
    let mut rest = pixels.as_mut_slice();
    let mut slots = Vec::new();
    for (part, labels) in entry.parts.iter().zip(&mut labels) {
        let (slot, after) = rest.split_at_mut(pixels_of(part.length));
        slots.push((part.name, slot, labels, false));
        rest = after;
    }
    match place {
        Place::Folder(folder) => {
            for (name, slot, labels, done) in &mut slots {
                records(&mut Source::open(&file(folder, name))?, layout, slot, labels)?;
                *done = true;
            }
        }
        Place::Archive(path) => {
            each_member(Source::open(path)?, |name, reader| {
                if let Some((_, slot, labels, done)) = slots.iter_mut().find(|slot| slot.0 == name) {
                    labels.clear();
                    let name = format!("{} in {}", name, path.display());
                    records(&mut Source::reader(&name, reader)?, layout, slot, labels)?;
                    *done = true;
                }
                Ok(())
            })?;
        }
    }
    if let Some((name, ..)) = slots.iter().find(|slot| !slot.3) {
        let file = place.path().display().to_string();
        let found = "an archive without it".to_owned();
        return Err(Flaw { file, offset: 0, expected: format!("a member {name}"), found }.into());
    }
    let train = entry.train.iter().sum::<u64>() as usize;
    let samples =
        Samples::new(entry.shape, layout.classes(), Values::bytes(pixels, &NORMAL), labels.concat(), train)?;
    let class_names = entry.class_names();
    Ok(Loaded {
        samples: Arc::new(samples),
        normal: NORMAL.to_vec(),
        groups: None,
        class_names,
        notes: Vec::new(),
        table: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::catalogue::Part;

    const SMALL: Entry = Entry {
        name: "small",
        about: "",
        licence: "",
        shape: [3, 32, 32],
        names: &[],
        train: &[1, 2],
        test: &[1, 0],
        folders: &[],
        parts: &[
            Part { name: "one.bin", address: None, length: 2 * 3073, sha256: "" },
            Part { name: "two.bin", address: None, length: 3073, sha256: "" },
            Part { name: "test.bin", address: None, length: 3073, sha256: "" },
        ],
        archive: None,
    };

    fn record(label: u8, pixel: u8) -> Vec<u8> {
        [vec![label], vec![pixel; IMAGE]].concat()
    }

    fn archive(members: &[(&str, Vec<u8>)]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        let gzip = flate2::write::GzEncoder::new(file.reopen().unwrap(), flate2::Compression::fast());
        let mut tar = tar::Builder::new(gzip);
        for (name, content) in members {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            tar.append_data(&mut header, format!("folder/{name}"), content.as_slice()).unwrap();
        }
        tar.into_inner().unwrap().finish().unwrap();
        file
    }

    #[test]
    fn an_archive_may_hold_its_files_in_any_order() {
        let file = archive(&[
            ("test.bin", record(0, 4)),
            ("readme.html", vec![1, 2, 3]),
            ("two.bin", record(1, 3)),
            ("one.bin", [record(1, 1), record(0, 2)].concat()),
        ]);
        let place = Place::Archive(file.path().to_owned());
        let samples = load(&SMALL, Layout::Cifar10, &place).unwrap().samples;
        assert_eq!(samples.labels(), [1, 0, 1, 0]);
        assert_eq!(samples.train_rows(), 3);
        let mut row = vec![0.0; IMAGE];
        samples.read(3, &mut row);
        // Pixel 4 of 255 in red, by the published mean and deviation.
        assert!((row[0] - (4.0 / 255.0 - 0.491_399_68) / 0.247_032_33).abs() < 1e-6);
    }

    #[test]
    fn the_fine_labels_of_cifar_100_are_read_from_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        for (name, labels) in [("one.bin", vec![99, 5]), ("two.bin", vec![50]), ("test.bin", vec![0])] {
            let records: Vec<u8> =
                labels.into_iter().flat_map(|label| [vec![3], record(label, label)].concat()).collect();
            std::fs::write(folder.path().join(name), records).unwrap();
        }
        let parts: Vec<Part> =
            SMALL.parts.iter().map(|part| Part { length: part.length / 3073 * 3074, ..*part }).collect();
        let entry = Entry { parts: parts.leak(), ..SMALL };
        let place = Place::Folder(folder.path().to_owned());
        let samples = load(&entry, Layout::Cifar100, &place).unwrap().samples;
        assert_eq!((samples.labels(), samples.classes()), ([99, 5, 50, 0].as_slice(), 100));
    }

    #[test]
    fn an_archive_without_a_file_says_which() {
        let file = archive(&[("one.bin", [record(1, 1), record(0, 2)].concat())]);
        let place = Place::Archive(file.path().to_owned());
        let complaint = load(&SMALL, Layout::Cifar10, &place).unwrap_err().to_string();
        assert!(complaint.ends_with("expected a member two.bin, found an archive without it"), "{complaint}");
    }
}
