//! Reads a schema from TOML.

use super::schema::{
    Categories, Category, Column, Decimal, Kind, Label, MISSING, MissingCategory, MissingNumber, NotNumbers,
    Number, Schema, SchemaError, Standard, Unknown,
};
use serde::Deserialize;
use std::str::FromStr;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    separator: Option<String>,
    decimal: Option<String>,
    header: Option<Vec<String>>,
    missing_values: Option<Vec<String>>,
    label: LabelFile,
    #[serde(default)]
    column: Vec<ColumnFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LabelFile {
    column: String,
    classes: Vec<CategoryFile>,
}

/// All keys of a column; which of them it may have depends on its kind.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ColumnFile {
    name: String,
    kind: String,
    bounds: Option<[f64; 2]>,
    centre: Option<f64>,
    scale: Option<f64>,
    missing: Option<MissingFile>,
    missing_values: Option<Vec<String>>,
    not_numbers: Option<String>,
    categories: Option<Vec<CategoryFile>>,
    unknown: Option<String>,
}

/// A category's name if that is its only text, or its name and texts.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a text, or { name = \"…\", values = [\"…\"] }")]
enum CategoryFile {
    Name(String),
    Full(FullCategory),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FullCategory {
    name: String,
    values: Vec<String>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a word or a number")]
enum MissingFile {
    Word(String),
    Number(f64),
}

impl FromStr for Schema {
    type Err = SchemaError;

    fn from_str(text: &str) -> Result<Self, SchemaError> {
        let file: File = toml::from_str(text)
            .map_err(|error| SchemaError::Syntax(error.to_string().trim_end().replace('\n', "\n  ")))?;
        let separator = match file.separator.as_deref() {
            None => None,
            Some(text) if text.len() == 1 => Some(text.as_bytes()[0]),
            Some(text) => {
                let why =
                    format!("separator = {text:?}; it must be one ASCII character, such as \";\" or \"\\t\"");
                return Err(SchemaError::Whole(why));
            }
        };
        let decimal =
            word(file.decimal.as_deref(), "decimal", &[(".", Decimal::Point), (",", Decimal::Comma)]);
        let columns: Result<_, _> = file.column.into_iter().map(column).collect();
        let missing_values =
            file.missing_values.unwrap_or_else(|| MISSING.iter().map(|&text| text.to_owned()).collect());
        let schema = Self {
            separator,
            decimal: decimal.map_err(SchemaError::Whole)?,
            header: file.header,
            missing_values,
            label: Label { column: file.label.column, classes: categories(file.label.classes) },
            columns: columns?,
        };
        schema.checked()
    }
}

fn column(file: ColumnFile) -> Result<Column, SchemaError> {
    let name = file.name.clone();
    match kind(file) {
        Ok(kind) => Ok(Column { name, kind }),
        Err(why) => Err(SchemaError::Column { column: name, why }),
    }
}

fn kind(file: ColumnFile) -> Result<Kind, String> {
    let kind = file.kind.as_str();
    let is = |key, given: bool, kinds: &[&str]| match given && !kinds.contains(&kind) {
        true => Err(format!("{key} has no meaning for kind = {kind:?}")),
        false => Ok(()),
    };
    let (number, category) = (&["number"][..], &["category"][..]);
    is("bounds", file.bounds.is_some(), number)?;
    is("centre", file.centre.is_some(), number)?;
    is("scale", file.scale.is_some(), number)?;
    is("not_numbers", file.not_numbers.is_some(), number)?;
    is("categories", file.categories.is_some(), category)?;
    is("unknown", file.unknown.is_some(), category)?;
    is("missing", file.missing.is_some(), &["number", "category"])?;
    is("missing_values", file.missing_values.is_some(), &["number", "category"])?;
    let missing_values = file.missing_values.unwrap_or_default();
    match kind {
        "number" => Ok(Kind::Number(Number {
            bounds: file.bounds,
            standard: standard(file.centre, file.scale)?,
            missing: missing_number(file.missing)?,
            missing_values,
            not_numbers: word(
                file.not_numbers.as_deref(),
                "not_numbers",
                &[("refuse", NotNumbers::Refuse), ("missing", NotNumbers::Missing)],
            )?,
        })),
        "category" => Ok(Kind::Category(Categories {
            categories: categories(file.categories.unwrap_or_default()),
            unknown: word(
                file.unknown.as_deref(),
                "unknown",
                &[("zeros", Unknown::Zeros), ("input", Unknown::Input), ("refuse", Unknown::Refuse)],
            )?,
            missing: missing_category(file.missing)?,
            missing_values,
        })),
        "ignored" => Ok(Kind::Ignored),
        other => Err(format!("kind = {other:?}; it must be number, category or ignored")),
    }
}

fn standard(centre: Option<f64>, scale: Option<f64>) -> Result<Option<Standard>, String> {
    match (centre, scale) {
        (None, None) => Ok(None),
        (Some(centre), Some(scale)) => Ok(Some(Standard { centre, scale })),
        _ => Err("centre and scale belong together; set both or neither".to_owned()),
    }
}

fn missing_number(given: Option<MissingFile>) -> Result<MissingNumber, String> {
    let words = [
        ("centre", MissingNumber::Centre),
        ("indicator", MissingNumber::Indicator),
        ("refuse", MissingNumber::Refuse),
    ];
    match given {
        Some(MissingFile::Number(value)) => Ok(MissingNumber::Value(value)),
        Some(MissingFile::Word(given)) => {
            word(Some(&given), "missing", &words).map_err(|why| format!("{why}, or a number"))
        }
        None => Ok(MissingNumber::Centre),
    }
}

fn missing_category(given: Option<MissingFile>) -> Result<MissingCategory, String> {
    let words = [("zeros", MissingCategory::Zeros), ("refuse", MissingCategory::Refuse)];
    match given {
        Some(MissingFile::Number(value)) => {
            Err(format!("missing = {value}; it must be one of zeros, refuse"))
        }
        Some(MissingFile::Word(given)) => word(Some(&given), "missing", &words),
        None => Ok(MissingCategory::Zeros),
    }
}

/// What a word stands for; the first meaning if there is no word.
fn word<T: Copy>(given: Option<&str>, key: &str, words: &[(&str, T)]) -> Result<T, String> {
    let Some(given) = given else { return Ok(words[0].1) };
    let found = words.iter().find(|(word, _)| *word == given).map(|(_, meaning)| *meaning);
    found.ok_or_else(|| {
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        format!("{key} = {given:?}; it must be one of {}", words.join(", "))
    })
}

fn categories(files: Vec<CategoryFile>) -> Vec<Category> {
    let category = |file| match file {
        CategoryFile::Name(name) => Category { values: vec![name.clone()], name },
        CategoryFile::Full(FullCategory { name, values }) => Category { name, values },
    };
    files.into_iter().map(category).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::example::SCHEMA;

    #[test]
    fn what_is_written_in_a_schema_is_what_it_says() {
        let schema: Schema = SCHEMA.parse().unwrap();
        assert_eq!(schema.inputs(), 2 + 3);
        assert_eq!(schema.class_names(), ["no", "yes"]);
        assert_eq!(schema.label.classes[1].values, ["yes", "1"]);
        assert_eq!(schema.missing_values, ["", "?"]);
        let used: Vec<&str> = schema.used().map(|column| column.name.as_str()).collect();
        assert_eq!((used, schema.open().count()), (vec!["age", "town"], 0));
    }

    #[test]
    fn a_wrong_schema_is_refused_with_its_column_and_what_would_have_been_right() {
        let wrong = |from: &str, to: &str| {
            assert!(SCHEMA.contains(from), "{from}");
            SCHEMA.replacen(from, to, 1).parse::<Schema>().unwrap_err().to_string()
        };
        for (from, to, sentence) in [
            ("centre = 50.0", "", "column \"age\": centre and scale belong together; set both or neither"),
            ("120.0]", "-1]", "column \"age\": bounds = [0, -1]; the first must be below the second"),
            (
                "scale = 10.0",
                "scale = -1",
                "column \"age\": centre = 50, scale = -1; both must be finite, and scale at least 0",
            ),
            (
                "scale = 10.0",
                "scale = nan",
                "column \"age\": centre = 50, scale = NaN; both must be finite, and scale at least 0",
            ),
            (
                "scale = 10.0",
                "scale = 1e-310",
                "column \"age\": scale = 1e-310 is too small to divide by; it must be 0, or at least 2.3e-308",
            ),
            ("\"number\"", "\"numbers\"", "column \"age\": bounds has no meaning for kind = \"numbers\""),
            (
                "\"ignored\"",
                "\"none\"",
                "column \"id\": kind = \"none\"; it must be number, category or ignored",
            ),
            (
                "\"input\"",
                "\"other\"",
                "column \"town\": unknown = \"other\"; it must be one of zeros, input, refuse",
            ),
            (
                "\"indicator\"",
                "\"mean\"",
                "column \"age\": missing = \"mean\"; it must be one of centre, indicator, refuse, or a number",
            ),
            ("[\"Rio\", \"Ulm\"]", "[\"Rio\", \"Rio\"]", "column \"town\": \"Rio\" is listed twice"),
            (
                "[\"Rio\", \"Ulm\"]",
                "[\"Rio\", \" Rio\"]",
                "column \"town\": \" Rio\" is listed twice: blanks around a text do not count",
            ),
            (
                "\"1\"",
                "\"no \"",
                "label \"sick\": the value \"no \" is listed twice: blanks around a text do not count",
            ),
            (
                "[\"Rio\", \"Ulm\"]",
                "[]",
                "column \"town\": no categories; list at least one, or set kind = \"ignored\"",
            ),
            ("\"Ulm\"", "\"\\u001b[2J\"", "the name or value \"\\u{1b}[2J\" contains a control character"),
            ("\"age\"", "\"a\\nge\"", "the name or value \"a\\nge\" contains a control character"),
            ("\"1\"", "\"no\"", "label \"sick\": the value \"no\" is listed twice"),
            ("\"id\"", "\"sick\"", "column \"sick\": it is listed twice, or it is the label"),
            ("missing_values", "decimal = \"'\"\nmissing_values", "decimal = \"'\"; it must be one of ., ,"),
            (
                "missing_values",
                "separator = \"::\"\nmissing_values",
                "separator = \"::\"; it must be one ASCII character, such as \";\" or \"\\t\"",
            ),
        ] {
            assert_eq!(wrong(from, to), sentence);
        }
        let unknown = wrong("unknown =", "unknwon =");
        assert!(unknown.contains("line 21") && unknown.contains("unknwon"), "{unknown}");
    }
}
