//! The rows of a table as a schema reads them: columns of numbers and of category numbers, matched by name.

use super::moments::{Moments, pooled};
use super::schema::{
    Categories, Kind, MissingCategory, MissingNumber, NotNumbers, Number, Schema, Standard, Unknown,
};
use super::values::{Lookup, Missing, number};
use crate::decode::Flaw;
use crate::decode::table::{Row, Table};
use std::collections::BTreeSet;
use thiserror::Error;

/// The columns that a schema uses, in its order.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    columns: Vec<Entries>,
    rows: usize,
    reports: Vec<Report>,
    /// Columns of the file that the schema does not have.
    surplus: Vec<String>,
}

/// The entries of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Entries {
    /// Numbers within bounds, NaN if missing.
    Numbers(Vec<f64>),
    /// The place of each category in its list, `MISSING_CODE` or `UNKNOWN_CODE`.
    Codes(Vec<u32>),
}

const MISSING_CODE: u32 = u32::MAX;
const UNKNOWN_CODE: u32 = u32::MAX - 1;

/// What became of a column's values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Report {
    name: String,
    missing: u64,
    clipped: u64,
    unknown: u64,
    /// Some of the unknown categories.
    such_as: BTreeSet<String>,
    /// What is done about missing values.
    instead: &'static str,
}

/// Why a table does not fit a schema.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RowError {
    /// The file does not decode.
    #[error(transparent)]
    Flaw(#[from] Flaw),
    /// Columns that the file does not have.
    #[error("{file}: there is no column {}; its columns are {}", .missing.join(", "), .columns.join(", "))]
    NoColumn {
        /// The file.
        file: String,
        /// The missing columns, quoted.
        missing: Vec<String>,
        /// The columns that it has.
        columns: Vec<String>,
    },
    /// A value that the schema does not allow.
    #[error("{file}: row {row} (line {line}), column {column:?}: {value:?} {why}")]
    Value {
        /// The file.
        file: String,
        /// The row; the first one after the names is 1.
        row: u64,
        /// The line.
        line: u64,
        /// The column.
        column: String,
        /// The text.
        value: String,
        /// What would have been right.
        why: String,
    },
}

/// Unknown categories that are named.
const SUCH_AS: usize = 5;

impl Columns {
    /// Reads the rows that have a place into it; there are as many places as `rows`.
    pub fn read(
        table: &Table,
        schema: &Schema,
        places: &[Option<u32>],
        rows: usize,
    ) -> Result<Self, RowError> {
        let found: Vec<(&str, Option<usize>)> =
            schema.used().map(|column| (column.name.as_str(), table.column(&column.name))).collect();
        let missing: Vec<String> =
            found.iter().filter(|(_, place)| place.is_none()).map(|(name, _)| format!("{name:?}")).collect();
        if !missing.is_empty() {
            let (file, columns) = (table.file().to_owned(), table.names.clone());
            return Err(RowError::NoColumn { file, missing, columns });
        }
        let mut readers: Vec<(usize, Reader)> = schema
            .used()
            .zip(found)
            .filter_map(|(column, (_, place))| Some((place?, Reader::new(schema, column, rows)?)))
            .collect();
        let mut lines = table.rows();
        while let Some(row) = lines.next()? {
            let Some(place) = places.get(row.number as usize - 1).copied().flatten() else { continue };
            for (column, reader) in &mut readers {
                if let Err(why) = reader.add(row.field(*column), place as usize) {
                    return Err(refusal(table, &row, *column, why));
                }
            }
        }
        let known = |name: &&String| {
            **name == schema.label.column || schema.columns.iter().any(|column| column.name == **name)
        };
        let surplus = table.names.iter().filter(|name| !known(name)).cloned().collect();
        let (columns, reports) = readers.into_iter().map(|(_, reader)| reader.done()).unzip();
        Ok(Self { columns, rows, reports, surplus })
    }

    /// Reads all rows, whether they have a label or not.
    pub fn all(table: &Table, schema: &Schema) -> Result<Self, RowError> {
        let mut rows = table.rows();
        let mut count = 0;
        while rows.next()?.is_some() {
            count += 1;
        }
        let places: Vec<Option<u32>> = (0..count).map(Some).collect();
        Self::read(table, schema, &places, places.len())
    }

    /// The columns of several tables of the same schema, one after the other.
    pub fn joined(parts: Vec<Self>) -> Option<Self> {
        let mut parts = parts.into_iter();
        let mut whole = parts.next()?;
        for part in parts {
            whole.rows += part.rows;
            for (own, other) in whole.columns.iter_mut().zip(part.columns) {
                match (own, other) {
                    (Entries::Numbers(own), Entries::Numbers(other)) => own.extend(other),
                    (Entries::Codes(own), Entries::Codes(other)) => own.extend(other),
                    _ => return None,
                }
            }
            for (own, other) in whole.reports.iter_mut().zip(part.reports) {
                own.missing += other.missing;
                own.clipped += other.clipped;
                own.unknown += other.unknown;
                own.such_as.extend(other.such_as);
            }
        }
        Some(whole)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Only these rows, in this order.
    pub fn chosen(&self, rows: &[usize]) -> Self {
        let chosen = |column: &Entries| match column {
            Entries::Numbers(numbers) => Entries::Numbers(rows.iter().map(|row| numbers[*row]).collect()),
            Entries::Codes(codes) => Entries::Codes(rows.iter().map(|row| codes[*row]).collect()),
        };
        let columns = self.columns.iter().map(chosen).collect();
        Self { columns, rows: rows.len(), ..self.clone() }
    }

    /// The moments of the schema's open columns over these rows.
    pub fn moments(&self, schema: &Schema, rows: &[u32]) -> Vec<Moments> {
        let of = |numbers: &[f64]| Moments::of(rows.iter().map(|row| numbers[*row as usize]));
        self.open(schema).map(of).collect()
    }

    /// Centre and scale of the schema's open columns over the first `train` rows together.
    pub fn pooled(&self, schema: &Schema, train: usize) -> Vec<Standard> {
        self.open(schema).map(|numbers| pooled(&numbers[..train], numbers)).collect()
    }

    fn open<'a>(&'a self, schema: &'a Schema) -> impl Iterator<Item = &'a [f64]> {
        schema.used().zip(&self.columns).filter_map(|(column, entries)| match (&column.kind, entries) {
            (Kind::Number(number), Entries::Numbers(numbers)) if number.standard.is_none() => {
                Some(numbers.as_slice())
            }
            _ => None,
        })
    }

    /// The inputs of all rows, row after row. A column without centre and scale has inputs of 0.
    pub fn inputs(&self, schema: &Schema) -> Vec<f32> {
        let width = schema.inputs();
        let mut values = vec![0.0; width * self.rows];
        let mut start = 0;
        for (column, entries) in schema.used().zip(&self.columns) {
            match (&column.kind, entries) {
                (Kind::Number(number), Entries::Numbers(numbers)) => {
                    let standard = number.standard.unwrap_or(Standard { centre: 0.0, scale: 0.0 });
                    let indicator = number.missing == MissingNumber::Indicator;
                    for (row, &x) in values.chunks_exact_mut(width).zip(numbers) {
                        if !x.is_nan() {
                            row[start] = standard.apply(x);
                        } else if indicator {
                            row[start + 1] = 1.0;
                        }
                    }
                }
                (Kind::Category(of), Entries::Codes(codes)) => {
                    for (row, &code) in values.chunks_exact_mut(width).zip(codes) {
                        match code {
                            MISSING_CODE => {}
                            UNKNOWN_CODE if of.unknown == Unknown::Input => {
                                row[start + of.categories.len()] = 1.0
                            }
                            UNKNOWN_CODE => {}
                            code => row[start + code as usize] = 1.0,
                        }
                    }
                }
                _ => unreachable!("the columns were read with this schema"),
            }
            start += column.kind.inputs();
        }
        values
    }

    /// What was done about missing, unknown and clipped values and surplus columns, one sentence each.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for Report { name, missing, clipped, unknown, such_as, instead } in &self.reports {
            let rows = self.rows;
            if *missing > 0 {
                notes.push(format!("{name}: {missing} of {rows} are missing; {instead}"));
            }
            if *unknown > 0 {
                let such_as: Vec<String> = such_as.iter().map(|value| format!("{value:?}")).collect();
                notes
                    .push(format!("{name}: {unknown} of {rows} are unknown, such as {}", such_as.join(", ")));
            }
            if *clipped > 0 {
                notes.push(format!("{name}: {clipped} of {rows} are outside the bounds and are clipped"));
            }
        }
        if !self.surplus.is_empty() {
            notes.push(format!(
                "columns that the schema does not have are left out: {}",
                self.surplus.join(", ")
            ));
        }
        notes
    }
}

/// The error of a value in a table.
pub(crate) fn refusal(table: &Table, row: &Row<'_>, column: usize, why: String) -> RowError {
    RowError::Value {
        file: table.file().to_owned(),
        row: row.number,
        line: row.line,
        column: table.names[column].clone(),
        value: row.field(column).chars().take(80).collect(),
        why,
    }
}

/// Reads one column.
enum Reader<'s> {
    Number {
        number: &'s Number,
        numbers: Vec<f64>,
        missing: Missing,
        report: Report,
        schema: &'s Schema,
    },
    Category {
        of: &'s Categories,
        codes: Vec<u32>,
        missing: Missing,
        lookup: Lookup,
        report: Report,
        schema: &'s Schema,
    },
}

impl<'s> Reader<'s> {
    fn new(schema: &'s Schema, column: &'s super::Column, rows: usize) -> Option<Self> {
        let named = |instead| Report { name: column.name.clone(), instead, ..Report::default() };
        let missing =
            |own: &'s [String]| Missing::new(schema.missing_values.iter().chain(own), schema.decimal);
        match &column.kind {
            Kind::Number(number) => {
                let instead = match number.missing {
                    MissingNumber::Indicator => {
                        "the mean replaces them, and a missing-value indicator is added"
                    }
                    MissingNumber::Centre => "the mean replaces them",
                    MissingNumber::Value(_) => "the schema's value replaces them",
                    MissingNumber::Refuse => "",
                };
                let (numbers, missing) = (vec![f64::NAN; rows], missing(&number.missing_values));
                Some(Self::Number { number, numbers, missing, report: named(instead), schema })
            }
            Kind::Category(of) => {
                let missing = missing(&of.missing_values);
                let lookup = Lookup::new(&of.categories, schema.decimal);
                let report = named("their one-hot inputs are all 0");
                Some(Self::Category { of, codes: vec![MISSING_CODE; rows], missing, lookup, report, schema })
            }
            Kind::Ignored => None,
        }
    }

    /// Reads a field into a place, or says what would have been right.
    fn add(&mut self, field: &str, place: usize) -> Result<(), String> {
        match self {
            Self::Number { number: column, numbers, missing, report, schema } => {
                let mut x = number(field, schema.decimal).filter(|x| !missing.numbers.contains(x));
                if x.is_none() {
                    let known = missing.any(field, schema.decimal);
                    if !known && column.not_numbers == NotNumbers::Refuse {
                        return Err(
                            "is not a number; correct it, or say in the schema that the column is a \
                                    category or that not_numbers = \"missing\""
                                .to_owned(),
                        );
                    }
                    if column.missing == MissingNumber::Refuse {
                        return Err("is a missing value, which the schema does not allow here".to_owned());
                    }
                    report.missing += 1;
                    x = match column.missing {
                        MissingNumber::Value(value) => Some(value),
                        _ => None,
                    };
                }
                if let Some(mut x) = x {
                    if let Some([least, most]) = column.bounds
                        && !(least..=most).contains(&x)
                    {
                        report.clipped += 1;
                        x = x.clamp(least, most);
                    }
                    numbers[place] = x;
                }
            }
            Self::Category { of, codes, missing, lookup, report, schema } => {
                codes[place] = match lookup.place(field) {
                    Some(category) => category,
                    None if missing.any(field, schema.decimal) => {
                        if of.missing == MissingCategory::Refuse {
                            return Err("is a missing value, which the schema does not allow here".to_owned());
                        }
                        report.missing += 1;
                        MISSING_CODE
                    }
                    None if of.unknown == Unknown::Refuse => {
                        let names: Vec<&str> = of.categories.iter().map(|one| one.name.as_str()).collect();
                        return Err(format!("is unknown; the categories are {}", names.join(", ")));
                    }
                    None => {
                        report.unknown += 1;
                        if report.such_as.len() < SUCH_AS {
                            report.such_as.insert(field.chars().take(80).collect());
                        }
                        UNKNOWN_CODE
                    }
                };
            }
        }
        Ok(())
    }

    fn done(self) -> (Entries, Report) {
        match self {
            Self::Number { numbers, report, .. } => (Entries::Numbers(numbers), report),
            Self::Category { codes, report, .. } => (Entries::Codes(codes), report),
        }
    }
}
