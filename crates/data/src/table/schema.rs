//! The schema of a table: its columns by name and what becomes of each, and the label with its classes.

use crate::decode::table::{Layout, MOST_COLUMNS};
use std::collections::BTreeSet;
use thiserror::Error;

/// What becomes of a table's columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    /// The character between two fields; `None` if each file may use its own.
    pub separator: Option<u8>,
    /// How fractions are written.
    pub decimal: Decimal,
    /// Names of the columns of files without a line of names.
    pub header: Option<Vec<String>>,
    /// Texts that stand for a missing value in any column.
    pub missing_values: Vec<String>,
    /// The label.
    pub label: Label,
    /// The other columns, in the order of their inputs.
    pub columns: Vec<Column>,
}

/// How fractions are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decimal {
    /// 1.5
    Point,
    /// 1,5
    Comma,
}

/// The column that is predicted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Its name.
    pub column: String,
    /// The classes, by number.
    pub classes: Vec<Category>,
}

/// A category or class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Category {
    /// What it is called.
    pub name: String,
    /// The texts that stand for it.
    pub values: Vec<String>,
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// What becomes of it.
    pub kind: Kind,
}

/// What becomes of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// One standardised input, and a missing-value indicator if the schema asks for one.
    Number(Number),
    /// One input per category, and one for unknown ones if the schema asks for it.
    Category(Categories),
    /// Nothing.
    Ignored,
}

/// A column of numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Number {
    /// Least and greatest value; others are clipped.
    pub bounds: Option<[f64; 2]>,
    /// `None` if it is computed from the training rows of all clients.
    pub standard: Option<Standard>,
    /// What a missing value becomes.
    pub missing: MissingNumber,
    /// Texts that stand for a missing value in this column.
    pub missing_values: Vec<String>,
    /// What a text that is not a number is.
    pub not_numbers: NotNumbers,
}

/// How a number x becomes an input: (x - centre) * (1 / scale), or 0 if the scale is 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standard {
    /// What becomes 0.
    pub centre: f64,
    /// What becomes 1 away from the centre; 0 for a column that is constant.
    pub scale: f64,
}

/// What a missing number becomes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MissingNumber {
    /// The centre.
    Centre,
    /// The centre, with a missing-value indicator as a further input.
    Indicator,
    /// This number.
    Value(f64),
    /// An error.
    Refuse,
}

/// What a text in a column of numbers is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotNumbers {
    /// An error.
    Refuse,
    /// A missing value.
    Missing,
}

/// A column of categories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Categories {
    /// The categories, in the order of their inputs.
    pub categories: Vec<Category>,
    /// What a value that is none of them becomes.
    pub unknown: Unknown,
    /// What a missing value becomes.
    pub missing: MissingCategory,
    /// Texts that stand for a missing value in this column.
    pub missing_values: Vec<String>,
}

/// What an unknown category becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// All of the column's inputs are 0.
    Zeros,
    /// A further input is 1.
    Input,
    /// An error.
    Refuse,
}

/// What a missing category becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingCategory {
    /// All of the column's inputs are 0.
    Zeros,
    /// An error.
    Refuse,
}

/// Texts that stand for a missing value unless a schema says otherwise; NaN and null in any case.
pub(crate) const MISSING: [&str; 6] = ["", "?", "NA", "N/A", "NaN", "null"];

/// Maximum number of inputs and of columns.
const MOST: usize = MOST_COLUMNS;

/// Why a schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SchemaError {
    /// Invalid TOML, or keys that do not exist.
    #[error("{0}")]
    Syntax(String),
    /// A column that is described wrongly.
    #[error("column {column:?}: {why}")]
    Column {
        /// Its name.
        column: String,
        /// What is wrong and what would have been right.
        why: String,
    },
    /// The label.
    #[error("label {column:?}: {why}")]
    Label {
        /// The column's name.
        column: String,
        /// What is wrong and what would have been right.
        why: String,
    },
    /// The schema as a whole.
    #[error("{0}")]
    Whole(String),
}

impl Kind {
    /// Number of inputs.
    pub fn inputs(&self) -> usize {
        match self {
            Self::Number(number) => 1 + usize::from(number.missing == MissingNumber::Indicator),
            Self::Category(of) => of.categories.len() + usize::from(of.unknown == Unknown::Input),
            Self::Ignored => 0,
        }
    }
}

impl Standard {
    /// The input of a number.
    pub fn apply(self, x: f64) -> f32 {
        if self.scale > 0.0 { ((x - self.centre) * (1.0 / self.scale)) as f32 } else { 0.0 }
    }
}

impl Schema {
    /// Number of inputs of a row.
    pub fn inputs(&self) -> usize {
        self.columns.iter().map(|column| column.kind.inputs()).sum()
    }

    /// The classes' names.
    pub fn class_names(&self) -> Vec<String> {
        self.label.classes.iter().map(|class| class.name.clone()).collect()
    }

    /// The columns that are read, in the order of their inputs.
    pub fn used(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| column.kind != Kind::Ignored)
    }

    /// The columns of numbers whose centre and scale come from the clients' training rows.
    pub fn open(&self) -> impl Iterator<Item = (&str, &Number)> {
        self.columns.iter().filter_map(|column| match &column.kind {
            Kind::Number(number) if number.standard.is_none() => Some((column.name.as_str(), number)),
            _ => None,
        })
    }

    /// The same schema with these centres and scales of its open columns, in their order.
    pub fn with_standards(&self, standards: &[Standard]) -> Self {
        let mut schema = self.clone();
        let mut standards = standards.iter();
        for column in &mut schema.columns {
            if let Kind::Number(number) = &mut column.kind
                && number.standard.is_none()
            {
                number.standard = standards.next().copied();
            }
        }
        schema
    }

    /// The centres and scales that another schema adds to this one; `None` if it differs in anything else.
    pub fn standards_in(&self, complete: &Self) -> Option<Vec<Standard>> {
        let both = self.columns.iter().zip(&complete.columns);
        let added = both.filter_map(|(own, theirs)| match (&own.kind, &theirs.kind) {
            (Kind::Number(own), Kind::Number(theirs)) if own.standard.is_none() => Some(theirs.standard),
            _ => None,
        });
        let added: Vec<Standard> = added.collect::<Option<_>>()?;
        (self.with_standards(&added) == *complete).then_some(added)
    }

    /// All names of columns, classes and categories, and their values.
    fn texts(&self) -> impl Iterator<Item = &String> {
        let categories = self.columns.iter().filter_map(|column| match &column.kind {
            Kind::Category(of) => Some(&of.categories),
            Kind::Number(_) | Kind::Ignored => None,
        });
        let categories = categories.chain([&self.label.classes]).flatten();
        let texts = categories.flat_map(|category| category.values.iter().chain([&category.name]));
        let names = self.columns.iter().map(|column| &column.name).chain([&self.label.column]);
        texts.chain(names).chain(self.header.iter().flatten())
    }

    /// How the text of a file is laid out.
    pub fn layout(&self) -> Layout {
        Layout { separator: self.separator, header: self.header.clone() }
    }

    /// The same schema if it can be used.
    pub fn checked(self) -> Result<Self, SchemaError> {
        let whole = |why: String| Err(SchemaError::Whole(why));
        if self.columns.len() > MOST || self.inputs() > MOST {
            return whole(format!(
                "{} columns, {} inputs; the maximum is {MOST}",
                self.columns.len(),
                self.inputs()
            ));
        }
        let wrong = |why| SchemaError::Label { column: self.label.column.clone(), why };
        if self.label.classes.len() < 2 {
            return Err(wrong(format!("{} classes; it needs at least two", self.label.classes.len())));
        }
        different(&self.label.classes).map_err(wrong)?;
        if let Some(name) = self.texts().find(|name| name.chars().any(char::is_control)) {
            return whole(format!("the name or value {name:?} contains a control character"));
        }
        let mut names = BTreeSet::from([self.label.column.as_str()]);
        for Column { name, kind } in &self.columns {
            let wrong = |why: String| SchemaError::Column { column: name.clone(), why };
            if !names.insert(name) {
                return Err(wrong("it is listed twice, or it is the label".to_owned()));
            }
            match kind {
                Kind::Number(number) => number.check().map_err(wrong)?,
                Kind::Category(of) if of.categories.is_empty() => {
                    return Err(wrong(
                        "no categories; list at least one, or set kind = \"ignored\"".to_owned(),
                    ));
                }
                Kind::Category(of) => different(&of.categories).map_err(wrong)?,
                Kind::Ignored => {}
            }
        }
        if self.inputs() == 0 {
            return whole("no column is an input; there is nothing to learn from".to_owned());
        }
        let header: Option<BTreeSet<&str>> =
            self.header.as_ref().map(|header| header.iter().map(String::as_str).collect());
        if let Some(lost) = header.and_then(|header| names.difference(&header).next().copied()) {
            return whole(format!("header does not name the column {lost:?}"));
        }
        if self.separator.is_some_and(|separator| !separator.is_ascii() || b"\r\n\"".contains(&separator)) {
            return whole(
                "separator must be one ASCII character, but not a quote or the end of a line".to_owned(),
            );
        }
        Ok(self)
    }
}

impl Number {
    fn check(&self) -> Result<(), String> {
        if let Some([least, most]) = self.bounds
            && !(least.is_finite() && most.is_finite() && least < most)
        {
            return Err(format!("bounds = [{least}, {most}]; the first must be below the second"));
        }
        if let Some(Standard { centre, scale }) = self.standard
            && !(centre.is_finite() && scale.is_finite() && scale >= 0.0)
        {
            return Err(format!(
                "centre = {centre}, scale = {scale}; both must be finite, and scale at least 0"
            ));
        }
        if let Some(Standard { scale, .. }) = self.standard
            && scale != 0.0
            && !(scale.is_normal() && (1.0 / scale).is_finite())
        {
            return Err(format!(
                "scale = {scale:e} is too small to divide by; it must be 0, or at least 2.3e-308"
            ));
        }
        match self.missing {
            MissingNumber::Value(value) if !value.is_finite() => {
                Err(format!("missing = {value} is not finite"))
            }
            _ => Ok(()),
        }
    }
}

/// Fails if two categories share a name or a text, apart from blanks around it, which no field has.
fn different(categories: &[Category]) -> Result<(), String> {
    let (mut names, mut values) = (BTreeSet::new(), BTreeSet::new());
    for category in categories {
        let twice = |text: &String| match text.trim() == text {
            true => format!("{text:?} is listed twice"),
            false => format!("{text:?} is listed twice: blanks around a text do not count"),
        };
        if !names.insert(category.name.trim()) {
            return Err(twice(&category.name));
        }
        if category.values.is_empty() {
            return Err(format!("{:?} has no values", category.name));
        }
        if let Some(value) = category.values.iter().find(|value| !values.insert(value.trim())) {
            return Err(format!("the value {}", twice(value)));
        }
    }
    Ok(())
}
