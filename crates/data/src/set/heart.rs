//! UCI heart disease: four hospitals, whether a patient has a narrowed vessel.
//!
//! `heart.toml` is the schema of the four files. Every fifth patient of each kind at each hospital is for testing.

use super::catalogue::Entry;
use super::labelled_rows::Rows;
use super::load::{LoadError, Loaded};
use super::places;
use super::table::{TableData, open_table};
use super::test_rows::{test_rows, train_first};
use crate::split::Groups;
use crate::table::{Columns, Schema};
use fedtvd_core::train::{Samples, Values};
use std::path::Path;
use std::sync::Arc;

const HOSPITALS: [(&str, &str); 4] = [
    ("Cleveland", "processed.cleveland.data"),
    ("Hungary", "processed.hungarian.data"),
    ("Switzerland", "processed.switzerland.data"),
    ("Long Beach", "processed.va.data"),
];

/// The schema of each hospital's file; centres and scales come from all training rows together.
pub(crate) fn schema() -> Schema {
    include_str!("heart.toml").parse().expect("the embedded schema is valid")
}

pub(crate) fn load(entry: &Entry, folder: &Path) -> Result<Loaded, LoadError> {
    let schema = schema();
    let (mut parts, mut labels, mut hospitals, mut rows) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (hospital, (_, file)) in HOSPITALS.iter().enumerate() {
        let table = open_table(&places::file(folder, file), &schema.layout())?;
        let read = Rows::read(table, &schema, None, 0.0)?;
        hospitals.extend(std::iter::repeat_n(hospital, read.labels.len()));
        labels.extend(read.labels);
        rows.extend(read.rows);
        parts.push(read.columns);
    }
    let columns = Columns::joined(parts).expect("there are four parts of one schema");
    let strata: Vec<usize> =
        labels.iter().zip(&hospitals).map(|(label, hospital)| 2 * hospital + *label as usize).collect();
    let (order, train) = train_first(&test_rows(&strata, 0.2));
    let columns = columns.chosen(&order);
    let schema = schema.with_standards(&columns.pooled(&schema, train));
    let values = Values::Floats(columns.inputs(&schema)?);
    let labels = order.iter().map(|row| labels[*row]).collect();
    let samples = Samples::new([schema.inputs(), 1, 1], 2, values, labels, train)?;
    let names = HOSPITALS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let of = order[..train].iter().map(|row| hospitals[*row] as u32).collect();
    let rows = order.iter().map(|row| rows[*row]).collect();
    Ok(Loaded {
        samples: Arc::new(samples),
        normal: Vec::new(),
        groups: Some(Groups { names, of }),
        class_names: entry.class_names(),
        notes: columns.notes(),
        table: Some(Arc::new(TableData { schema, columns: None, rows })),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::named;

    #[test]
    fn the_schema_fits_the_catalogue() {
        let entry = named("heart").unwrap();
        assert_eq!((schema().inputs(), schema().class_names()), (entry.shape[0], entry.class_names()));
    }

    #[test]
    fn an_unknown_code_is_named_with_its_file_and_place() {
        let folder = tempfile::tempdir().unwrap();
        let patient = |sex: u8, thal: u8| format!("63,{sex},1,145,233,1,2,150,0,2.3,3,0,{thal},0\n");
        for (_, file) in HOSPITALS {
            let second = patient(0, if file.contains("hungarian") { 4 } else { 7 });
            std::fs::write(folder.path().join(file), patient(1, 6) + &second).unwrap();
        }
        let error = load(named("heart").unwrap(), folder.path()).unwrap_err().to_string();
        let end = "processed.hungarian.data: row 2 (line 2), column \"thal\": \"4\" is unknown; the categories are 3, 6, 7";
        assert!(error.ends_with(end), "{error}");
    }
}
