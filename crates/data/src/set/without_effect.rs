//! Options that a data set does not use, because it is of another kind.

use super::catalogue::named;
use super::folder;
use super::load::DataOptions;
use super::npy::Site;
use std::path::Path;

impl DataOptions {
    /// Why the option behind a key such as `data.label` has no effect on this data set; `None` if it has one, or if there is
    /// no such data set here.
    pub fn no_effect(&self, key: &str) -> Option<String> {
        let (set, path) = (&self.set, Path::new(&self.set));
        let entry = named(set);
        let there = entry.is_some() || path.exists();
        let table = self.is_table_file();
        let rows = table || entry.is_some_and(|entry| entry.shape[1..] == [1, 1]);
        let tested = entry.is_some() || Site::at(path) || folder::is_divided(path);
        match key {
            "data.label" | "data.group" | "data.schema" if there && !table => {
                Some(format!("{set} is not a CSV file"))
            }
            "data.test" if tested => Some(format!("{set} has test samples of its own")),
            "data.flip" if rows => Some(format!("{set} is a table, not images")),
            _ => None,
        }
    }

    /// Notes on the options that differ from their defaults and have no effect.
    pub fn without_effect(&self) -> Vec<String> {
        let default = Self::default();
        let schema = self.schema.as_ref().map(|path| path.display().to_string());
        let changed = [
            ("data.label", Some(self.label.clone()).filter(|label| *label != default.label)),
            ("data.group", self.group.clone()),
            ("data.schema", schema),
            ("data.test", (self.test != default.test).then(|| self.test.to_string())),
            ("data.flip", self.flip.then(|| "true".to_owned())),
        ];
        let note = |(key, value): (&str, Option<String>)| {
            Some(format!("{key} = {} has no effect: {}", value?, self.no_effect(key)?))
        };
        changed.into_iter().filter_map(note).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::Places;

    #[test]
    fn options_for_another_kind_of_data_have_no_effect_and_get_a_note() {
        let other = |set: &str| DataOptions {
            set: set.to_owned(),
            label: "sick".to_owned(),
            group: Some("ward".to_owned()),
            schema: Some("schema.toml".into()),
            test: 0.5,
            flip: true,
            ..DataOptions::default()
        };
        let images = [
            "data.label = sick has no effect: fmnist-mini is not a CSV file",
            "data.group = ward has no effect: fmnist-mini is not a CSV file",
            "data.schema = schema.toml has no effect: fmnist-mini is not a CSV file",
            "data.test = 0.5 has no effect: fmnist-mini has test samples of its own",
        ];
        assert_eq!(other("fmnist-mini").load(&Places::new(None)).unwrap().notes, images);
        assert_eq!(DataOptions::default().load(&Places::new(None)).unwrap().notes, Vec::<String>::new());
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(place("few.csv"), "x,sick\n1,a\n").unwrap();
        let flip = format!("data.flip = true has no effect: {} is a table, not images", place("few.csv"));
        assert_eq!(other(&place("few.csv")).without_effect(), [flip]);
        assert!(other("heart").without_effect()[4].ends_with("heart is a table, not images"));
        // Without test images of its own, a folder of images has a part of them for testing.
        let tested = |set: &str| other(&place(set)).no_effect("data.test").is_some();
        std::fs::create_dir_all(folder.path().join("images/train")).unwrap();
        assert!(!tested("images"));
        std::fs::create_dir_all(folder.path().join("images/test")).unwrap();
        assert!(tested("images"));
        // A server may describe the sites' tables without having one.
        assert_eq!(other("").without_effect(), Vec::<String>::new());
        assert_eq!(other("nowhere.csv").without_effect(), Vec::<String>::new());
    }
}
