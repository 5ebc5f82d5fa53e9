//! A schema made from files, with comments for the people who will read and edit it.

use super::load::LoadError;
use super::table::open_table;
use crate::decode::table::Layout;
use crate::table::{Columns, Profiles, Schema, Wishes, infer};
use std::path::{Path, PathBuf};

/// A schema and its text.
#[derive(Clone, Debug)]
pub struct MadeSchema {
    /// The schema.
    pub schema: Schema,
    /// TOML with comments.
    pub text: String,
    /// Number of rows of all files.
    pub rows: u64,
}

impl MadeSchema {
    /// The schema of these files; with `fixed`, with the centres and scales of their rows.
    pub fn of(files: &[PathBuf], wishes: &Wishes, fixed: bool) -> Result<Self, LoadError> {
        let layout = Layout { separator: None, header: wishes.header.clone() };
        let open = |path: &PathBuf| open_table(path, &layout);
        let mut profiles = Vec::new();
        for path in files {
            profiles.push(Profiles::of(&open(path)?, &wishes.label, None)?);
        }
        let names: Vec<String> = files.iter().map(|path| name(path)).collect();
        let wrong = |reason: String| LoadError::Table { file: names.join(", "), reason };
        let (mut schema, comments) = infer(&profiles, wishes).map_err(wrong)?;
        if fixed {
            let mut parts = Vec::new();
            for path in files {
                parts.push(Columns::all(&open(path)?, &schema)?);
            }
            if let Some(columns) = Columns::joined(parts) {
                schema = schema.with_standards(&columns.pooled(&schema, columns.rows()));
            }
        }
        let rows = profiles.iter().map(|file| file.rows).sum();
        let mut top = vec![
            format!("Made from {} ({rows} rows) by fedtvd data schema. Rows are matched by the columns' names.", names.join(", ")),
            "docs/data.md explains every key. A column of numbers may have bounds = [LEAST, MOST], which clip, and a".to_owned(),
            "missing value of its own (missing = \"centre\", \"indicator\", \"refuse\" or a number). kind is \"number\",".to_owned(),
            "\"category\" or \"ignored\".".to_owned(),
        ];
        if !fixed {
            top.push("Without centre and scale, both come from the training rows of all clients.".to_owned());
        }
        let about = |column: &str| comments.get(column).cloned().unwrap_or_default();
        Ok(Self { text: schema.commented(&top, &about), schema, rows })
    }
}

fn name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(texts: &[&str]) -> (tempfile::TempDir, Vec<PathBuf>) {
        let folder = tempfile::tempdir().unwrap();
        let put = |(place, text): (usize, &&str)| {
            let path = folder.path().join(format!("{place}.csv"));
            std::fs::write(&path, text).unwrap();
            path
        };
        let paths = texts.iter().enumerate().map(put).collect();
        (folder, paths)
    }

    fn wishes() -> Wishes {
        Wishes { label: "sick".to_owned(), ..Wishes::default() }
    }

    #[test]
    fn a_schema_of_two_files_has_what_both_have_and_says_what_it_found() {
        let (_folder, paths) = files(&[
            "age,town,only,sick\n1,Ulm,1,no\n3,Rio,2,yes\n,Ulm,3,no\n",
            "sick,town,age\nno,Bern,9\nno,,7\n",
        ]);
        let made = MadeSchema::of(&paths, &wishes(), false).unwrap();
        assert_eq!(made.text.parse::<Schema>().unwrap(), made.schema);
        for line in [
            "# 1 of 5 are missing; numbers from 1 to 9; 1 (1), 3 (1), 7 (1), 9 (1)\n[[column]]\nname = \"age\"\nkind = \"number\"\nmissing = \"indicator\"",
            "# 1 of 5 are missing; Bern (1), Rio (1), Ulm (2)\n[[column]]\nname = \"town\"\nkind = \"category\"\ncategories = [\"Bern\", \"Rio\", \"Ulm\"]",
            "# left out: it is not in 1.csv\n[[column]]\nname = \"only\"\nkind = \"ignored\"",
            "[label]\ncolumn = \"sick\"\nclasses = [\"no\", \"yes\"]",
        ] {
            assert!(made.text.contains(line), "{line}\n{}", made.text);
        }
        let fixed = MadeSchema::of(&paths, &wishes(), true).unwrap();
        // 1, 3, 9, 7: mean 5, deviation sqrt(10).
        let end = format!("centre = 5.0\nscale = {:?}\n", 10f64.sqrt());
        assert!(fixed.text.contains(&end), "{}", fixed.text);
    }

    #[test]
    fn a_typo_is_named_with_its_row_and_wishes_are_followed() {
        let rows: String = (0..50)
            .map(|row| {
                format!("{},{},{}\n", if row == 7 { "4x".into() } else { row.to_string() }, row % 3, row % 2)
            })
            .collect();
        let (_folder, paths) = files(&[&format!("age,code,sick\n{rows}")]);
        let wishes = Wishes { categories: vec!["code".to_owned()], ..wishes() };
        let text = MadeSchema::of(&paths, &wishes, false).unwrap().text;
        assert!(
            text.contains("# 1 of 50 are not numbers, the first is \"4x\" in row 8; correct them"),
            "{text}"
        );
        assert!(
            text.contains("name = \"code\"\nkind = \"category\"\ncategories = [\"0\", \"1\", \"2\"]"),
            "{text}"
        );
        let wrong = Wishes { ignored: vec!["nothing".to_owned()], ..wishes };
        let error = MadeSchema::of(&paths, &wrong, false).unwrap_err().to_string();
        assert!(
            error.ends_with("--ignore \"nothing\" is not a column; the columns are age, code, sick"),
            "{error}"
        );
    }
}
