//! A client's own data in a folder: `set.json` and four NPY files, which a site can also make with numpy.
//!
//! `x_train.npy` and `x_test.npy` are bytes or floats of shape (rows, channels, height, width); `y_train.npy` and
//! `y_test.npy` are the labels. `set.json` says how many classes there are and how bytes are normalised.

use super::load::{LoadError, Loaded};
use crate::decode::npy::{Array, Numbers, array, npy};
use crate::decode::{Flaw, Source, json};
use fedtvd_core::train::{Samples, Values};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;

/// What `set.json` says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// Where the data comes from.
    pub set: String,
    /// The classes' names.
    pub classes: Vec<String>,
    /// For bytes: mean and deviation of each channel, of values from 0 to 1.
    #[serde(default)]
    pub normal: Vec<(f32, f32)>,
}

/// A folder with a client's own data.
#[derive(Clone, Debug)]
pub struct Site<'a> {
    /// What it is.
    pub about: About,
    /// The data set that it is a part of.
    pub samples: &'a Samples,
    /// Its rows for training.
    pub train: &'a [u32],
    /// Its rows for testing.
    pub test: &'a [u32],
}

const ABOUT: &str = "set.json";
/// Values of one row: more than any image that a network reads.
const LARGEST: usize = 1 << 30;

impl Site<'_> {
    /// Whether a folder holds a client's own data.
    pub(crate) fn at(folder: &Path) -> bool {
        folder.join(ABOUT).is_file()
    }

    /// Writes the folder.
    pub fn write(&self, folder: &Path) -> std::io::Result<()> {
        std::fs::create_dir_all(folder)?;
        std::fs::write(folder.join(ABOUT), serde_json::to_string_pretty(&self.about)? + "\n")?;
        for (part, rows) in [("train", self.train), ("test", self.test)] {
            std::fs::write(folder.join(format!("x_{part}.npy")), npy(&self.values(rows)))?;
            let labels = rows.iter().map(|row| self.samples.labels()[*row as usize]).collect();
            let labels = Array { shape: vec![rows.len()], numbers: Numbers::Counts(labels) };
            std::fs::write(folder.join(format!("y_{part}.npy")), npy(&labels))?;
        }
        Ok(())
    }

    fn values(&self, rows: &[u32]) -> Array {
        let shape = self.samples.shape();
        let size: usize = shape.iter().product();
        let place = |row: &u32| *row as usize * size..(*row as usize + 1) * size;
        let numbers = match self.samples.values() {
            Values::Bytes(bytes, _) => {
                Numbers::Bytes(rows.iter().flat_map(|row| bytes[place(row)].iter().copied()).collect())
            }
            Values::Floats(floats) => {
                Numbers::Floats(rows.iter().flat_map(|row| floats[place(row)].iter().copied()).collect())
            }
        };
        Array { shape: std::iter::once(rows.len()).chain(shape).collect(), numbers }
    }

    /// Reads a folder.
    pub(crate) fn load(folder: &Path) -> Result<Loaded, LoadError> {
        let path = folder.join(ABOUT);
        let text = Source::open(&path)?.rest(1 << 20, "a description of the data")?;
        let wrong = |error: serde_json::Error| {
            let offset = json::offset(&text, &error);
            Flaw { offset, ..flaw(&path, "set, classes and normal", error.to_string()) }
        };
        let about: About = serde_json::from_slice(&text).map_err(wrong)?;
        if about.classes.len() < 2 {
            return Err(
                flaw(&path, "the names of at least two classes", about.classes.len().to_string()).into()
            );
        }
        let [train, test] = ["x_train.npy", "x_test.npy"].map(|name| read(folder, name));
        let (train, test) = (train?, test?);
        let shape = match train.shape[..] {
            [_, channels, height, width] if test.shape.get(1..) == train.shape.get(1..) => {
                let size = channels.checked_mul(height).and_then(|area| area.checked_mul(width));
                if size.is_none_or(|size| size == 0 || size > LARGEST) {
                    let expected = format!("rows of 1 to {LARGEST} values");
                    return Err(flaw(folder, &expected, format!("{channels}x{height}x{width}")).into());
                }
                [channels, height, width]
            }
            _ => {
                let expected = "two arrays of rows, channels, height and width that agree but for the rows";
                return Err(flaw(folder, expected, format!("{:?} and {:?}", train.shape, test.shape)).into());
            }
        };
        let (rows, test_rows) = (train.shape[0], test.shape[0]);
        let values = match (train.numbers, test.numbers) {
            (Numbers::Bytes(mut train), Numbers::Bytes(test)) => {
                let right = |(mean, deviation): &(f32, f32)| {
                    mean.is_finite() && deviation.is_normal() && *deviation > 0.0
                };
                if about.normal.len() != shape[0] || !about.normal.iter().all(right) {
                    let expected = format!("normal with {} pairs of mean and deviation above 0", shape[0]);
                    return Err(flaw(&path, &expected, format!("{:?}", about.normal)).into());
                }
                train.extend(test);
                Values::bytes(train, &about.normal)
            }
            (Numbers::Floats(mut train), Numbers::Floats(test)) => {
                train.extend(test);
                Values::Floats(train)
            }
            _ => {
                let found = "others, or one of each".to_owned();
                return Err(flaw(folder, "x_train and x_test of bytes, or both of floats", found).into());
            }
        };
        let mut labels = Vec::new();
        for (name, expected) in [("y_train.npy", rows), ("y_test.npy", test_rows)] {
            match read(folder, name)?.numbers {
                Numbers::Counts(own) if own.len() == expected => labels.extend(own),
                Numbers::Counts(own) => {
                    let expected = format!("{expected} labels, one for each row of its values");
                    return Err(flaw(&folder.join(name), &expected, own.len().to_string()).into());
                }
                _ => return Err(flaw(&folder.join(name), "labels as <i4 or <i8", "others".to_owned()).into()),
            }
        }
        let samples = Samples::new(shape, about.classes.len(), values, labels, rows)?;
        Ok(Loaded {
            samples: Arc::new(samples),
            normal: about.normal,
            groups: None,
            class_names: about.classes,
            notes: Vec::new(),
            table: None,
        })
    }
}

fn read(folder: &Path, name: &str) -> Result<Array, Flaw> {
    array(&mut Source::open(&folder.join(name))?)
}

fn flaw(path: &Path, expected: &str, found: String) -> Flaw {
    Flaw { file: path.display().to_string(), offset: 0, expected: expected.to_owned(), found }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_do_not_fit_their_rows_and_values_without_shape_are_named() {
        let samples = Samples::new([1, 1, 1], 2, Values::Floats(vec![1.0; 4]), vec![0, 1, 0, 1], 3).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let about = About { set: "x".to_owned(), classes: vec!["a".into(), "b".into()], normal: vec![] };
        let site = Site { about, samples: &samples, train: &[0, 1, 2], test: &[3] };
        site.write(folder.path()).unwrap();
        let place = |name: &str| folder.path().join(name);
        std::fs::rename(place("y_train.npy"), place("y")).unwrap();
        std::fs::rename(place("y_test.npy"), place("y_train.npy")).unwrap();
        std::fs::rename(place("y"), place("y_test.npy")).unwrap();
        let error = Site::load(folder.path()).unwrap_err().to_string();
        assert!(error.contains("y_train.npy") && error.contains("3 labels"), "{error}");
        site.write(folder.path()).unwrap();
        let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (), }";
        let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        bytes.extend(format!("{header:117}\n").as_bytes());
        bytes.extend(1f32.to_le_bytes());
        std::fs::write(place("x_test.npy"), bytes).unwrap();
        let error = Site::load(folder.path()).unwrap_err().to_string();
        assert!(error.contains("agree but for the rows"), "{error}");
    }

    #[test]
    fn a_written_site_comes_back_with_its_normalisation() {
        let normal = vec![(0.5, 0.25), (0.1, 0.2)];
        let values = Values::bytes((0..20).map(|x| x * 9).collect(), &normal);
        let samples = Samples::new([2, 1, 2], 3, values, vec![0, 1, 2, 1, 0], 3).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let classes = ["a", "b", "c"].map(str::to_owned).to_vec();
        let about = About { set: "x".to_owned(), classes, normal };
        Site { about, samples: &samples, train: &[2, 0], test: &[4] }.write(folder.path()).unwrap();
        let loaded = Site::load(folder.path()).unwrap().samples;
        assert_eq!((loaded.labels(), loaded.train_rows()), ([2, 0, 0].as_slice(), 2));
        let (mut own, mut original) = ([0.0; 4], [0.0; 4]);
        for (row, from) in [(0, 2), (1, 0), (2, 4)] {
            loaded.read(row, &mut own);
            samples.read(from, &mut original);
            assert_eq!(own, original);
        }
    }

    #[test]
    fn a_wrong_description_is_named_with_its_place() {
        let samples =
            Samples::new([1, 1, 1], 2, Values::bytes(vec![1; 4], &[(0.0, 1.0)]), vec![0, 1, 0, 1], 3);
        let samples = samples.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let about =
            About { set: "x".to_owned(), classes: vec!["a".into(), "b".into()], normal: vec![(0.0, 1.0)] };
        Site { about, samples: &samples, train: &[0, 1, 2], test: &[3] }.write(folder.path()).unwrap();
        let complaint = |text: &str| {
            std::fs::write(folder.path().join(ABOUT), text).unwrap();
            Site::load(folder.path()).unwrap_err().to_string()
        };
        let cut = complaint("{\n \"set\": 7}");
        assert!(cut.contains("set.json: at byte 10: expected set, classes and normal"), "{cut}");
        let none = complaint(r#"{"set": "x", "classes": [], "normal": [[0, 1]]}"#);
        assert!(none.ends_with("expected the names of at least two classes, found 0"), "{none}");
        for normal in ["[[0, 0]]", "[[0, -1]]", "[[0, 1e-45]]", "[]"] {
            let odd = complaint(&format!(r#"{{"set": "x", "classes": ["a", "b"], "normal": {normal}}}"#));
            assert!(odd.contains("expected normal with 1 pairs of mean and deviation above 0"), "{odd}");
        }
    }
}
