//! Values whose inputs would be infinite: a network computes with 32-bit floats, which end at 3.4e38.

use super::column_reader::{Extreme, Report};
use super::columns::{RowError, refusal};
use super::schema::{MissingNumber, Number, Schema, Standard};
use crate::decode::Source;
use crate::decode::table::{LARGEST_TABLE, Table};
use std::path::Path;

/// Fails if an input of a column is infinite.
pub(super) fn check_finite(number: &Number, report: &Report, schema: &Schema) -> Result<(), RowError> {
    let Some(standard) = number.standard else { return Ok(()) };
    let Standard { centre, scale } = standard;
    let infinite = |x: f64| !standard.apply(x).is_finite();
    let why = format!(
        "is too far from the centre {centre} for a scale of {scale}: its input would be infinite; correct it, or set bounds in \
         the schema"
    );
    if let Some(extreme) = report.extremes.iter().flatten().find(|extreme| infinite(extreme.x)) {
        return Err(found(extreme, &report.name, why, schema));
    }
    let [least, most] = number.bounds.unwrap_or([f64::MIN, f64::MAX]);
    match number.missing {
        MissingNumber::Value(instead) if report.missing > 0 && infinite(instead.clamp(least, most)) => {
            let (file, column) = ("the schema".to_owned(), report.name.clone());
            Err(RowError::Column { file, column, why: format!("missing = {instead:?} {why}") })
        }
        _ => Ok(()),
    }
}

/// The error of a number; the file is read again to find its line and its text.
fn found(extreme: &Extreme, column: &str, why: String, schema: &Schema) -> RowError {
    let Extreme { x, file, row } = extreme;
    let again = || {
        let table =
            Table::read(&mut Source::open(Path::new(file)).ok()?, LARGEST_TABLE, &schema.layout()).ok()?;
        let place = table.column(column)?;
        let mut rows = table.rows();
        while let Some(found) = rows.next().ok()? {
            if found.number == *row {
                return Some(refusal(&table, &found, place, why.clone()));
            }
        }
        None
    };
    // The table may be gone by the time that centres and scales are known.
    let gone = || RowError::Column {
        file: file.clone(),
        column: column.to_owned(),
        why: format!("{x:?} in row {row} {why}"),
    };
    again().unwrap_or_else(gone)
}
