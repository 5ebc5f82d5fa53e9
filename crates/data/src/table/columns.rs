//! The rows of a table as a schema reads them: columns of numbers and of category numbers, matched by name.

use super::column_reader::{MISSING_CODE, Reader, Report, UNKNOWN_CODE};
use super::moments::{Moments, pooled};
use super::overflow::check_finite;
use super::schema::{Kind, MissingNumber, Schema, Standard, Unknown};
use crate::decode::Flaw;
use crate::decode::table::{Row, Table};
use std::collections::{BTreeMap, BTreeSet};
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

/// Maximum size of all inputs, in bytes. A schema from elsewhere may list any number of categories.
const LARGEST: usize = 4 << 30;

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
    /// More inputs than fit into memory.
    #[error(
        "{file}: {rows} rows of {inputs} inputs need {} MiB, and the maximum is {} MiB; leave columns out of the schema, or \
         list fewer categories", .rows.saturating_mul(4 * .inputs) >> 20, LARGEST >> 20
    )]
    TooLarge {
        /// The file.
        file: String,
        /// Number of rows.
        rows: usize,
        /// Number of inputs of a row.
        inputs: usize,
    },
    /// A column whose inputs cannot be computed.
    #[error("{file}: column {column:?}: {why}")]
    Column {
        /// The file.
        file: String,
        /// The column.
        column: String,
        /// What would have been right.
        why: String,
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

impl Columns {
    /// Reads the rows that have a place into it; there are as many places as `rows`.
    pub fn read(
        table: &Table,
        schema: &Schema,
        places: &[Option<u32>],
        rows: usize,
    ) -> Result<Self, RowError> {
        let inputs = schema.inputs();
        if rows.saturating_mul(4 * inputs) > LARGEST {
            return Err(RowError::TooLarge { file: table.file().to_owned(), rows, inputs });
        }
        let places_of: BTreeMap<&str, usize> =
            table.names.iter().enumerate().map(|(place, name)| (name.as_str(), place)).collect();
        let found: Vec<(&str, Option<usize>)> = schema
            .used()
            .map(|column| (column.name.as_str(), places_of.get(column.name.as_str()).copied()))
            .collect();
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
        let each = readers.len().div_ceil(table.threads()).max(1);
        let outcomes: Vec<Result<(), RowError>> = std::thread::scope(|scope| {
            let part = |part| scope.spawn(move || read_part(table, places, part));
            let threads: Vec<_> = readers.chunks_mut(each).map(part).collect();
            threads.into_iter().map(|thread| thread.join().expect("reading does not panic")).collect()
        });
        // The first wrong row, as if one thread had read them.
        let row = |error: &RowError| if let RowError::Value { row, .. } = error { *row } else { u64::MAX };
        if let Some(error) = outcomes.into_iter().filter_map(Result::err).min_by_key(row) {
            return Err(error);
        }
        let known: BTreeSet<&String> =
            schema.columns.iter().map(|column| &column.name).chain([&schema.label.column]).collect();
        let surplus = table.names.iter().filter(|name| !known.contains(name)).cloned().collect();
        let (columns, reports) = readers.into_iter().map(|(_, reader)| reader.done(table.file())).unzip();
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
            whole.reports.iter_mut().zip(part.reports).for_each(|(own, other)| own.add(other));
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

    /// The inputs of all rows, row after row. A column without centre and scale has inputs of 0. Fails if an input would
    /// be infinite, with the value and its place.
    pub fn inputs(&self, schema: &Schema) -> Result<Vec<f32>, RowError> {
        for (column, report) in schema.used().zip(&self.reports) {
            if let Kind::Number(number) = &column.kind {
                check_finite(number, report, schema)?;
            }
        }
        let width = schema.inputs();
        let mut values = vec![0.0; width * self.rows];
        // In blocks that stay in the cache while one column after the other is written into their rows.
        for (block, part) in values.chunks_mut(width.max(1) * BLOCK).enumerate() {
            let mut start = 0;
            for (column, entries) in schema.used().zip(&self.columns) {
                fill(part, width, start, &column.kind, entries, block * BLOCK);
                start += column.kind.inputs();
            }
        }
        Ok(values)
    }

    /// What was done about missing, unknown and clipped values and surplus columns, one sentence each.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for Report { name, missing, clipped, unknown, such_as, instead, .. } in &self.reports {
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

/// Rows of a block of inputs.
const BLOCK: usize = 256;

/// Writes the inputs of one column into a block of rows, the first of which is row `first`.
fn fill(block: &mut [f32], width: usize, start: usize, kind: &Kind, entries: &Entries, first: usize) {
    let rows = block.chunks_exact_mut(width);
    match (kind, entries) {
        (Kind::Number(number), Entries::Numbers(numbers)) => {
            let standard = number.standard.unwrap_or(Standard { centre: 0.0, scale: 0.0 });
            for (row, &x) in rows.zip(&numbers[first..]) {
                match number.missing {
                    _ if !x.is_nan() => row[start] = standard.apply(x),
                    MissingNumber::Indicator => row[start + 1] = 1.0,
                    // Only here: a substitute is not among the values whose statistics are computed.
                    MissingNumber::Value(instead) => {
                        let [least, most] = number.bounds.unwrap_or([f64::MIN, f64::MAX]);
                        row[start] = standard.apply(instead.clamp(least, most));
                    }
                    MissingNumber::Centre | MissingNumber::Refuse => {}
                }
            }
        }
        (Kind::Category(of), Entries::Codes(codes)) => {
            for (row, &code) in rows.zip(&codes[first..]) {
                match code {
                    UNKNOWN_CODE if of.unknown == Unknown::Input => row[start + of.categories.len()] = 1.0,
                    MISSING_CODE | UNKNOWN_CODE => {}
                    code => row[start + code as usize] = 1.0,
                }
            }
        }
        _ => unreachable!("the columns were read with this schema"),
    }
}

/// Reads some of the columns.
fn read_part(
    table: &Table,
    places: &[Option<u32>],
    readers: &mut [(usize, Reader<'_>)],
) -> Result<(), RowError> {
    let mut lines = table.rows();
    while let Some(row) = lines.next()? {
        let Some(place) = places.get(row.number as usize - 1).copied().flatten() else { continue };
        for (column, reader) in &mut *readers {
            if let Err(why) = reader.add(&row, *column, place as usize) {
                return Err(refusal(table, &row, *column, why));
            }
        }
    }
    Ok(())
}

/// The error of a value in a table.
pub(crate) fn refusal(table: &Table, row: &Row<'_>, column: usize, why: String) -> RowError {
    RowError::Value {
        file: table.file().to_owned(),
        row: row.number,
        line: row.line(table) as u64,
        column: table.names[column].clone(),
        value: row.field(column).chars().take(80).collect(),
        why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Source;

    const SCHEMA: &str = "missing_values = [\"\"]\n[label]\ncolumn = \"sick\"\nclasses = [\"no\", \"yes\"]\n[[column]]\nname = \
                          \"age\"\nkind = \"number\"\nbounds = [0, 100]\nmissing = 200\n";

    fn columns(text: &str, schema: &Schema) -> Columns {
        let mut source = Source::bytes("x", text.as_bytes()).unwrap();
        Columns::all(&Table::read(&mut source, 1 << 20, &schema.layout()).unwrap(), schema).unwrap()
    }

    #[test]
    fn inputs_that_do_not_fit_into_memory_are_refused_before_they_are_made() {
        let categories: String = (0..99_000).map(|place| format!("\"{place}\",")).collect();
        let more = format!("[[column]]\nname = \"code\"\nkind = \"category\"\ncategories = [{categories}]\n");
        let schema: Schema = (SCHEMA.to_owned() + &more).parse().unwrap();
        let text = "age,code,sick\n".to_owned() + &"1,2,no\n".repeat(20_000);
        let table = Table::read(&mut Source::bytes("x", text.as_bytes()).unwrap(), 1 << 20, &schema.layout());
        let error = Columns::all(&table.unwrap(), &schema).unwrap_err().to_string();
        let start =
            "x: 20000 rows of 99001 inputs need 7553 MiB, and the maximum is 4096 MiB; leave columns out";
        assert!(error.starts_with(start), "{error}");
    }

    #[test]
    fn substitutes_for_missing_numbers_are_inputs_and_not_among_the_values_whose_statistics_are_sent() {
        let schema: Schema = SCHEMA.parse().unwrap();
        let rows: String = (0..120).map(|row| if row == 7 { "37,no\n" } else { ",yes\n" }).collect();
        let columns = columns(&format!("age,sick\n{rows}"), &schema);
        let all: Vec<u32> = (0..120).collect();
        // The statistics of one real value are not sent, however many substitutes there are.
        assert_eq!(columns.moments(&schema, &all), [Moments::default()]);
        assert_eq!(columns.pooled(&schema, 120), [Standard { centre: 37.0, scale: 0.0 }]);
        let fixed = schema.with_standards(&[Standard { centre: 50.0, scale: 10.0 }]);
        // The substitute is clipped to 100.
        assert_eq!(columns.inputs(&fixed).unwrap()[6..9], [5.0, -1.3, 5.0]);
    }
}
