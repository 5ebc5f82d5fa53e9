//! A schema made from files, with comments for the people who will read and edit it.

use super::load::LoadError;
use super::table::open_table;
use crate::decode::table::Layout;
use crate::table::{Columns, Inferred, Profiles, Request, Schema, infer};
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
    /// Why commas may not be decimal ones, as the schema takes them to be.
    pub doubt: Option<String>,
}

impl MadeSchema {
    /// The schema of these files; with `fixed`, with the centres and scales of their rows.
    pub fn of(files: &[PathBuf], request: &Request, fixed: bool) -> Result<Self, LoadError> {
        let layout = Layout { separator: None, header: request.header.clone() };
        let open = |path: &PathBuf| open_table(path, &layout);
        let mut profiles = Vec::new();
        for path in files {
            profiles.push(Profiles::of(&open(path)?, &request.label, None)?);
        }
        let names: Vec<String> = files.iter().map(|path| name(path)).collect();
        let wrong = |reason: String| LoadError::Table { file: names.join(", "), reason };
        let Inferred { mut schema, comments, doubt, .. } = infer(&profiles, request).map_err(wrong)?;
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
        if let Some(doubt) = &doubt {
            top.push(format!("{doubt}; here it is the former"));
        }
        let about = |column: &str| comments.get(column).cloned().unwrap_or_default();
        Ok(Self { text: schema.commented(&top, &about), schema, rows, doubt })
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

    fn request() -> Request {
        Request { label: "sick".to_owned(), ..Request::default() }
    }

    #[test]
    fn a_schema_of_two_files_has_what_both_have_and_says_what_it_found() {
        let (_folder, paths) = files(&[
            "age,town,only,sick\n1,Ulm,1,no\n3,Rio,2,yes\n,Ulm,3,no\n",
            "sick,town,age\nno,Bern,9\nno,,7\n",
        ]);
        let made = MadeSchema::of(&paths, &request(), false).unwrap();
        assert_eq!(made.text.parse::<Schema>().unwrap(), made.schema);
        for line in [
            "# 1 of 5 are missing; numbers from 1 to 9; 1 (1), 3 (1), 7 (1), 9 (1)\n[[column]]\nname = \"age\"\nkind = \"number\"\nmissing = \"indicator\"",
            "# 1 of 5 are missing; Bern (1), Rio (1), Ulm (2)\n[[column]]\nname = \"town\"\nkind = \"category\"\ncategories = [\"Bern\", \"Rio\", \"Ulm\"]",
            "# left out: it is not in 1.csv\n[[column]]\nname = \"only\"\nkind = \"ignored\"",
            "[label]\ncolumn = \"sick\"\nclasses = [\"no\", \"yes\"]",
        ] {
            assert!(made.text.contains(line), "{line}\n{}", made.text);
        }
        let fixed = MadeSchema::of(&paths, &request(), true).unwrap();
        // 1, 3, 9, 7: mean 5, deviation sqrt(10).
        let end = format!("centre = 5.0\nscale = {:?}\n", 10f64.sqrt());
        assert!(fixed.text.contains(&end), "{}", fixed.text);
    }

    #[test]
    fn a_typo_in_one_of_several_files_is_named_with_its_file() {
        // Numbers with a decimal comma are not typos.
        let table = |typo: &str| {
            let age = |row: usize| if row == 7 { typo.to_owned() } else { format!("{},5", 2 * row) };
            let rows: String = (0..50).map(|row| format!("{};1,5;{}\n", age(row), row % 2)).collect();
            format!("age;w;sick\n{rows}")
        };
        let (_folder, paths) = files(&[&table("3"), &table("4x")]);
        let made = MadeSchema::of(&paths, &request(), false).unwrap().text;
        let line = "# 1 of 100 are not numbers, the first is \"4x\" in row 8 of 1.csv; correct them";
        assert!(made.contains(line), "{made}");
    }

    #[test]
    fn doubts_about_commas_and_identifiers_are_comments() {
        let rows: String = (0..40).map(|row| format!("{row};{},592;{}\n", 1 + row % 9, row % 2)).collect();
        let (_folder, paths) = files(&[&format!("id;price;sick\n{rows}")]);
        let made = MadeSchema::of(&paths, &request(), false).unwrap();
        let doubt = "column \"price\": \"1,592\" may be 1.592 with a decimal comma or 1592 with a thousands separator";
        assert!(
            made.text.contains(&format!("# {doubt}; here it is the former\ndecimal = \",\"")),
            "{}",
            made.text
        );
        let words = "# a different whole number in every row: if these identify rows, set kind = \"ignored\"\n[[column]]\nname = \"id\"";
        assert!(made.text.contains(words), "{}", made.text);
    }

    #[test]
    fn a_typo_is_named_with_its_row_and_requests_are_followed() {
        let rows: String = (0..50)
            .map(|row| {
                format!("{},{},{}\n", if row == 7 { "4x".into() } else { row.to_string() }, row % 3, row % 2)
            })
            .collect();
        let (_folder, paths) = files(&[&format!("age,code,sick\n{rows}")]);
        let request = Request { categories: vec!["code".to_owned()], ..request() };
        let text = MadeSchema::of(&paths, &request, false).unwrap().text;
        assert!(
            text.contains("# 1 of 50 are not numbers, the first is \"4x\" in row 8; correct them"),
            "{text}"
        );
        assert!(
            text.contains("name = \"code\"\nkind = \"category\"\ncategories = [\"0\", \"1\", \"2\"]"),
            "{text}"
        );
        let wrong = Request { ignored: vec!["nothing".to_owned()], ..request };
        let error = MadeSchema::of(&paths, &wrong, false).unwrap_err().to_string();
        assert!(
            error.ends_with("--ignore \"nothing\" is not a column; the columns are age, code, sick"),
            "{error}"
        );
    }
}
