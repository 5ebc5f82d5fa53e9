//! Any folder of PNG images by class: `CLASS/*.png`, or `train/CLASS/*.png` and `test/CLASS/*.png`.

use super::load::{LoadError, Loaded};
use super::test_rows::{test_rows, train_first};
use super::unread_images::unread_images;
use crate::decode::picture::picture;
use crate::decode::{Flaw, Source};
use fedtvd_core::train::{Samples, Values};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Whether a folder has training and test images apart.
pub(crate) fn is_divided(folder: &Path) -> bool {
    ["train", "test"].iter().all(|part| folder.join(part).is_dir())
}

pub(crate) fn load(folder: &Path, test: f64) -> Result<Loaded, LoadError> {
    let (train, apart) = (folder.join("train"), folder.join("test"));
    let divided = is_divided(folder);
    let class_names: Vec<String> = names(if divided { &train } else { folder })?
        .into_iter()
        .filter(|(_, dir)| *dir)
        .map(|(n, _)| n)
        .collect();
    if class_names.len() < 2 {
        let expected = "at least two folders of images, one per class";
        return Err(flaw(folder, expected, class_names.len().to_string()).into());
    }
    let mut passed_over = PassedOver::default();
    let files = if divided {
        let train = listed(&train, &class_names, &mut passed_over)?;
        let count = train.len();
        ([train, listed(&apart, &class_names, &mut passed_over)?].concat(), count)
    } else {
        let all = listed(folder, &class_names, &mut passed_over)?;
        let strata: Vec<usize> = all.iter().map(|(_, class)| *class).collect();
        let (order, train) = train_first(&test_rows(&strata, test));
        (order.into_iter().map(|row| all[row].clone()).collect(), train)
    };
    let (files, train) = files;
    let mut shape = None;
    let mut pixels = Vec::new();
    for (path, _) in &files {
        let picture = picture(&mut Source::open(path)?)?;
        let [channels, height, width] = *shape.get_or_insert(picture.shape);
        if picture.shape != [channels, height, width] {
            let expected = format!("{channels} channels of {height}x{width} as in {}", files[0].0.display());
            let [channels, height, width] = picture.shape;
            return Err(flaw(path, &expected, format!("{channels} of {height}x{width}")).into());
        }
        pixels.extend(picture.pixels);
    }
    let shape = shape.ok_or_else(|| flaw(folder, ONLY_PNG, passed_over.first_of(0)))?;
    let labels = files.iter().map(|(_, class)| *class as u32).collect();
    let normal = vec![(0.0, 1.0); shape[0]];
    let values = Values::bytes(pixels, &normal);
    let samples = Samples::new(shape, class_names.len(), values, labels, train)?;
    let notes = passed_over.note().into_iter().chain(unread_images(folder, &class_names)?).collect();
    Ok(Loaded { samples: Arc::new(samples), normal, groups: None, class_names, notes, table: None })
}

const ONLY_PNG: &str = "PNG images, the only kind that is read (convert others first)";

/// Files that are not PNG images.
#[derive(Default)]
struct PassedOver {
    count: usize,
    first: Option<PathBuf>,
}

impl PassedOver {
    fn add(&mut self, path: PathBuf) {
        self.count += 1;
        self.first.get_or_insert(path);
    }

    fn first_of(&self, images: usize) -> String {
        match &self.first {
            None => format!("{images}"),
            Some(first) => format!("{images}, but {} other files such as {}", self.count, first.display()),
        }
    }

    fn note(&self) -> Option<String> {
        let first = self.first.as_ref()?.display();
        Some(format!("{} files that are not PNG images are skipped, such as {first}", self.count))
    }
}

/// The PNG files of each class with the class's number, in the order of their names.
fn listed(
    folder: &Path,
    classes: &[String],
    passed_over: &mut PassedOver,
) -> Result<Vec<(PathBuf, usize)>, Flaw> {
    let mut files = Vec::new();
    for (class, name) in classes.iter().enumerate() {
        let folder = folder.join(name);
        for (name, _) in names(&folder)?.into_iter().filter(|(_, dir)| !dir) {
            let path = folder.join(&name);
            if is_image(&name) {
                files.push((path, class));
            } else {
                passed_over.add(path);
            }
        }
    }
    Ok(files)
}

/// All PNG images in a folder and its subfolders, in the order of their names; at least one.
pub fn images(folder: &Path) -> Result<Vec<PathBuf>, Flaw> {
    let mut found = Vec::new();
    for (name, is_folder) in names(folder)? {
        let path = folder.join(&name);
        if is_folder {
            found.extend(images(&path).unwrap_or_default());
        } else if is_image(&name) {
            found.push(path);
        }
    }
    if found.is_empty() {
        return Err(flaw(folder, ONLY_PNG, "none".to_owned()));
    }
    Ok(found)
}

/// Whether a file is read, by its name.
pub(super) fn is_image(name: &str) -> bool {
    name.to_lowercase().ends_with(".png")
}

/// What is in a folder, by name, and whether it is a folder itself.
pub(super) fn names(folder: &Path) -> Result<Vec<(String, bool)>, Flaw> {
    let unreadable = |error: std::io::Error| flaw(folder, "a readable folder", error.to_string());
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') {
            names.push((name, entry.path().is_dir()));
        }
    }
    // A folder's own order is the file system's affair.
    names.sort();
    Ok(names)
}

fn flaw(path: &Path, expected: &str, found: String) -> Flaw {
    Flaw { file: path.display().to_string(), offset: 0, expected: expected.to_owned(), found }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::decode::picture::png;
    use std::fs;

    pub(crate) fn put(folder: &Path, name: &str, shape: [usize; 3], pixel: u8) {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, png(shape, &vec![pixel; shape.iter().product()]).unwrap()).unwrap();
    }

    #[test]
    fn classes_are_folders_and_a_share_of_each_is_for_testing() {
        let folder = tempfile::tempdir().unwrap();
        for row in 0..4 {
            put(folder.path(), &format!("cat/{row}.png"), [3, 2, 2], row);
            put(folder.path(), &format!("dog/{row}.PNG"), [3, 2, 2], 10 + row);
        }
        fs::write(folder.path().join("cat/notes.txt"), "x").unwrap();
        let loaded = load(folder.path(), 0.25).unwrap();
        assert_eq!(loaded.class_names, ["cat", "dog"]);
        assert_eq!(loaded.notes.len(), 1);
        assert!(loaded.notes[0].starts_with("1 files that are not PNG images are skipped, such as "));
        assert_eq!(loaded.samples.labels(), [0, 0, 0, 1, 1, 1, 0, 1]);
        let mut row = [0.0; 12];
        loaded.samples.read(7, &mut row);
        assert_eq!((loaded.samples.train_rows(), row), (6, [13.0 / 255.0; 12]));
    }

    #[test]
    fn folders_for_training_and_testing_are_kept_apart() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["train/a/1.png", "train/b/1.png", "train/b/2.png", "test/b/3.png"] {
            put(folder.path(), name, [1, 1, 1], 5);
        }
        fs::create_dir(folder.path().join("test/a")).unwrap();
        let samples = load(folder.path(), 0.2).unwrap().samples;
        assert_eq!((samples.labels(), samples.train_rows()), ([0, 1, 1, 1].as_slice(), 3));
    }

    #[test]
    fn an_image_of_another_size_is_named() {
        let folder = tempfile::tempdir().unwrap();
        put(folder.path(), "a/1.png", [1, 2, 2], 5);
        put(folder.path(), "b/odd.png", [1, 2, 3], 5);
        let complaint = load(folder.path(), 0.0).unwrap_err().to_string();
        assert!(complaint.contains("b/odd.png") && complaint.ends_with("found 1 of 2x3"), "{complaint}");
    }

    #[test]
    fn a_folder_of_other_images_says_that_png_is_read() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a/1.jpg", "a/2.jpg", "b/3.jpg"] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "JFIF").unwrap();
        }
        let complaint = load(folder.path(), 0.2).unwrap_err().to_string();
        assert!(complaint.contains("expected PNG images, the only kind that is read"), "{complaint}");
        assert!(complaint.contains("found 0, but 3 other files such as") && complaint.ends_with("a/1.jpg"));
    }
}
