//! The processed files of UCI heart disease: one patient per line, 14 numbers, `?` for a missing one.

use super::{Flaw, Source};

/// The names of the 13 measurements, as `heart-disease.names` spells them.
pub const MEASUREMENTS: [&str; 13] = [
    "age", "sex", "cp", "trestbps", "chol", "fbs", "restecg", "thalach", "exang", "oldpeak", "slope", "ca",
    "thal",
];

// The four files have 4 to 19 kB.
const LIMIT: usize = 1 << 20;

/// One patient.
#[derive(Clone, Debug, PartialEq)]
pub struct Patient {
    /// The measurements that were made.
    pub measured: [Option<f64>; 13],
    /// 0 for none, 1 to 4 for a narrowed vessel.
    pub disease: u8,
    /// Where the patient's line starts.
    pub offset: u64,
}

/// The patients of one hospital.
pub fn patients(source: &mut Source) -> Result<Vec<Patient>, Flaw> {
    let bytes = source.rest(LIMIT, "lines of patients")?;
    let mut patients = Vec::new();
    let mut offset = 0;
    for line in bytes.split(|byte| *byte == b'\n') {
        if !line.trim_ascii().is_empty() {
            patients.push(patient(source, line, offset)?);
        }
        offset += line.len() as u64 + 1;
    }
    if patients.is_empty() {
        return Err(source.flaw(0, "at least one patient".to_owned(), "none".to_owned()));
    }
    Ok(patients)
}

fn patient(source: &Source, line: &[u8], offset: u64) -> Result<Patient, Flaw> {
    let fields: Vec<&[u8]> = line.split(|byte| *byte == b',').collect();
    if fields.len() != 14 {
        let expected = "14 numbers with commas between them".to_owned();
        return Err(source.flaw(offset, expected, format!("{} fields", fields.len())));
    }
    let mut measured = [None; 13];
    let mut place = offset;
    for (field, value) in fields.iter().zip(&mut measured) {
        *value = number(source, field, place)?;
        place += field.len() as u64 + 1;
    }
    match number(source, fields[13], place)? {
        Some(disease) if [0.0, 1.0, 2.0, 3.0, 4.0].contains(&disease) => {
            Ok(Patient { measured, disease: disease as u8, offset })
        }
        _ => Err(source.flaw(place, "a diagnosis from 0 to 4".to_owned(), quoted(fields[13]))),
    }
}

fn number(source: &Source, field: &[u8], offset: u64) -> Result<Option<f64>, Flaw> {
    let text = String::from_utf8_lossy(field.trim_ascii());
    if text == "?" {
        return Ok(None);
    }
    match text.parse::<f64>() {
        Ok(number) if number.abs() <= 1e4 => Ok(Some(number)),
        _ => {
            let expected = "a number from -10000 to 10000 or ?".to_owned();
            Err(source.flaw(offset, expected, quoted(field)))
        }
    }
}

fn quoted(field: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(field).chars().take(40).collect();
    format!("{:?}", text.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Patient>, Flaw> {
        patients(&mut Source::bytes("x", text.as_bytes()).unwrap())
    }

    #[test]
    fn a_question_mark_is_a_missing_value() {
        let patients = read("32,1,1,95,0,?,0,127,0,.7,1,?,?,1\n").unwrap();
        assert_eq!(patients[0].measured[3], Some(95.0));
        assert_eq!(patients[0].measured[9], Some(0.7));
        assert_eq!(patients[0].measured[5], None);
        assert_eq!(patients[0].disease, 1);
    }

    #[test]
    fn a_wrong_line_is_named_with_its_place() {
        let good = "32,1,1,95,0,?,0,127,0,.7,1,?,?,1\n";
        let complaint = |line: &str| read(&format!("{good}{line}")).unwrap_err().to_string();
        assert_eq!(
            complaint("1,2,3"),
            "x: at byte 33: expected 14 numbers with commas between them, found 3 fields"
        );
        assert_eq!(
            complaint(&good.replace("127", "high")),
            "x: at byte 49: expected a number from -10000 to 10000 or ?, found \"high\""
        );
        assert_eq!(
            complaint(&good.replace("?,1\n", "?,5\n")),
            "x: at byte 64: expected a diagnosis from 0 to 4, found \"5\""
        );
    }
}
