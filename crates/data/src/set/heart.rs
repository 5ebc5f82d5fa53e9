//! UCI heart disease: four hospitals, whether a patient has a narrowed vessel.
//!
//! A cholesterol or a blood pressure of 0 is not a measurement (all of Switzerland's cholesterol values are 0): it is
//! a missing value. Every fifth patient of each kind at each hospital is for testing.

use super::catalogue::Entry;
use super::features::{Column, Entries, Features, test_rows, train_first};
use super::load::{LoadError, Loaded};
use super::places;
use crate::decode::heart::{MEASUREMENTS, Patient, patients};
use crate::decode::{Flaw, Source};
use crate::split::Groups;
use fedtvd_core::train::Samples;
use std::path::Path;
use std::sync::Arc;

const HOSPITALS: [(&str, &str); 4] = [
    ("Cleveland", "processed.cleveland.data"),
    ("Hungary", "processed.hungarian.data"),
    ("Switzerland", "processed.switzerland.data"),
    ("Long Beach", "processed.va.data"),
];

// What `heart-disease.names` lists as codes; the other measurements are quantities.
const CODES: [(&str, &[f64]); 7] = [
    ("sex", &[0.0, 1.0]),
    ("cp", &[1.0, 2.0, 3.0, 4.0]),
    ("fbs", &[0.0, 1.0]),
    ("restecg", &[0.0, 1.0, 2.0]),
    ("exang", &[0.0, 1.0]),
    ("slope", &[1.0, 2.0, 3.0]),
    ("thal", &[3.0, 6.0, 7.0]),
];

pub(crate) fn load(entry: &Entry, folder: &Path) -> Result<Loaded, LoadError> {
    let mut all: Vec<(usize, Patient)> = Vec::new();
    for (hospital, (_, file)) in HOSPITALS.iter().enumerate() {
        let read = patients(&mut Source::open(&places::file(folder, file))?)?;
        all.extend(read.into_iter().map(|patient| (hospital, patient)));
    }
    let sick = |patient: &Patient| usize::from(patient.disease > 0);
    let strata: Vec<usize> = all.iter().map(|(hospital, patient)| 2 * hospital + sick(patient)).collect();
    let (order, train) = train_first(&test_rows(&strata, 0.2));
    let all: Vec<(usize, Patient)> = order.into_iter().map(|row| all[row].clone()).collect();
    let columns: Result<Vec<Column>, Flaw> =
        (0..MEASUREMENTS.len()).map(|m| column(&all, m, folder)).collect();
    let features = Features::of(&columns?, train);
    let labels = all.iter().map(|(_, patient)| sick(patient) as u32).collect();
    let shape = [features.width, 1, 1];
    let notes = features.notes.clone();
    let samples = Samples::new(shape, 2, features.into_values(), labels, train)?;
    let names = HOSPITALS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let of = all[..train].iter().map(|(hospital, _)| *hospital as u32).collect();
    let class_names = entry.class_names();
    Ok(Loaded {
        samples: Arc::new(samples),
        normal: Vec::new(),
        groups: Some(Groups { names, of }),
        class_names,
        notes,
    })
}

fn column(all: &[(usize, Patient)], measurement: usize, folder: &Path) -> Result<Column, Flaw> {
    let name = MEASUREMENTS[measurement];
    let entries = match CODES.iter().find(|(coded, _)| *coded == name) {
        None => {
            let absent = |value: &f64| ["chol", "trestbps"].contains(&name) && *value == 0.0;
            let values = all.iter().map(|(_, patient)| patient.measured[measurement]);
            Entries::Numbers(values.map(|value| value.filter(|value| !absent(value))).collect())
        }
        Some((_, codes)) => {
            let place = |(hospital, patient): &(usize, Patient)| {
                let Some(value) = patient.measured[measurement] else { return Ok(None) };
                let unknown = || Flaw {
                    file: places::file(folder, HOSPITALS[*hospital].1).display().to_string(),
                    offset: patient.offset,
                    expected: format!("a patient whose {name} is one of {codes:?}"),
                    found: value.to_string(),
                };
                codes.iter().position(|code| *code == value).map(Some).ok_or_else(unknown)
            };
            Entries::Categories(all.iter().map(place).collect::<Result<_, _>>()?, codes.len())
        }
    };
    Ok(Column { name: name.to_owned(), entries })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::named;

    #[test]
    fn an_unknown_code_is_named_with_its_file_and_place() {
        let folder = tempfile::tempdir().unwrap();
        let patient = |sex: u8, thal: u8| format!("63,{sex},1,145,233,1,2,150,0,2.3,3,0,{thal},0\n");
        for (_, file) in HOSPITALS {
            let second = patient(0, if file.contains("hungarian") { 4 } else { 7 });
            std::fs::write(folder.path().join(file), patient(1, 6) + &second).unwrap();
        }
        let error = load(named("heart").unwrap(), folder.path()).unwrap_err().to_string();
        let (start, end) =
            ("processed.hungarian.data: at byte 37", "thal is one of [3.0, 6.0, 7.0], found 4");
        assert!(error.contains(start) && error.ends_with(end), "{error}");
    }
}
