//! Images in a folder that are in no place from which they are read.

use super::folder::{is_divided, is_image, names};
use crate::decode::Flaw;
use std::path::{Path, PathBuf};

/// Notes on folders and images that are not read, in a folder of images of these classes.
pub(super) fn unread_images(folder: &Path, classes: &[String]) -> Result<Vec<String>, Flaw> {
    let mut unread = Unread::default();
    if is_divided(folder) {
        let why = "images are read from train and test only; clients hold out samples with split.holdout";
        unread.add(folder, |name| (!["train", "test"].contains(&name)).then(|| why.to_owned()))?;
        for part in ["train", "test"] {
            let why = |name: &str| format!("there is no class {name} in {}", folder.join("train").display());
            let missing = |name: &str| (!classes.iter().any(|class| class == name)).then(|| why(name));
            unread.add(&folder.join(part), missing)?;
            unread.inside(&folder.join(part), classes)?;
        }
    } else {
        unread.add(folder, |_| None)?;
        unread.inside(folder, classes)?;
    }
    Ok(unread.notes())
}

#[derive(Default)]
struct Unread {
    folders: Vec<String>,
    images: Vec<PathBuf>,
}

impl Unread {
    /// The images beside the folders in here, and the folders for which there is a reason.
    fn add(&mut self, folder: &Path, why: impl Fn(&str) -> Option<String>) -> Result<(), Flaw> {
        for (name, is_folder) in names(folder)? {
            let path = folder.join(&name);
            if !is_folder {
                self.images.extend(is_image(&name).then_some(path));
            } else if let Some(why) = why(&name) {
                self.folders.push(format!("{} is not read: {why}", path.display()));
            }
        }
        Ok(())
    }

    /// The folders inside of those of the classes.
    fn inside(&mut self, folder: &Path, classes: &[String]) -> Result<(), Flaw> {
        for class in classes {
            let class = folder.join(class);
            for (name, _) in names(&class)?.into_iter().filter(|(_, is_folder)| *is_folder) {
                let path = class.join(name);
                self.folders.push(format!("{} is not read: a class has no folders", path.display()));
            }
        }
        Ok(())
    }

    fn notes(self) -> Vec<String> {
        let count = self.images.len();
        let first = self.images.first().map(|first| {
            format!("{count} images are in no class and are not read, such as {}", first.display())
        });
        self.folders.into_iter().chain(first).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::set::folder::load;
    use crate::set::folder::tests::put;
    use std::fs;

    #[test]
    fn folders_and_images_that_are_not_read_are_noted() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["train/a/1.png", "train/b/1.png", "test/a/2.png", "test/b/2.png"] {
            put(folder.path(), name, [1, 1, 1], 5);
        }
        let notes = || load(folder.path(), 0.2).unwrap().notes;
        assert_eq!(notes(), Vec::<String>::new());
        for name in ["val/a/3.png", "test/bird/3.png", "train/a/more/3.png", "train/3.png", "4.png"] {
            put(folder.path(), name, [1, 1, 1], 5);
        }
        fs::write(folder.path().join("README.md"), "x").unwrap();
        let place = |name: &str| folder.path().join(name).display().to_string();
        let expected = [
            format!(
                "{} is not read: images are read from train and test only; clients hold out samples with split.holdout",
                place("val")
            ),
            format!("{} is not read: a class has no folders", place("train/a/more")),
            format!("{} is not read: there is no class bird in {}", place("test/bird"), place("train")),
            format!("2 images are in no class and are not read, such as {}", place("4.png")),
        ];
        assert_eq!(notes(), expected);
    }
}
