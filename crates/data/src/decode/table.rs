//! CSV: a line of column names, then rows of as many fields.

use super::{Flaw, Source};

/// A table of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The columns' names.
    pub names: Vec<String>,
    /// Row after row, as many fields as names.
    pub rows: Vec<Vec<String>>,
}

/// Reads a table of at most `limit` bytes.
pub fn table(source: &mut Source, limit: usize) -> Result<Table, Flaw> {
    let bytes = source.rest(limit, "a table")?;
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(bytes.as_slice());
    let names: Vec<String> = match reader.headers() {
        Ok(names) => names.iter().map(str::to_owned).collect(),
        Err(error) => return Err(flaw(source, &error)),
    };
    if let [only] = names.as_slice()
        && only.contains([';', '\t'])
    {
        let expected = "column names separated by commas".to_owned();
        return Err(source.flaw(0, expected, format!("{only:?}")));
    }
    if let Some(twice) = names.iter().enumerate().find(|(place, name)| names[..*place].contains(name)) {
        let expected = "column names that differ".to_owned();
        return Err(source.flaw(0, expected, format!("{:?} twice", twice.1)));
    }
    let mut rows = Vec::new();
    for record in reader.records() {
        match record {
            Ok(record) => rows.push(record.iter().map(str::to_owned).collect()),
            Err(error) => return Err(flaw(source, &error)),
        }
    }
    if rows.is_empty() {
        let expected = "column names and at least one row".to_owned();
        return Err(source.flaw(0, expected, "no rows".to_owned()));
    }
    Ok(Table { names, rows })
}

fn flaw(source: &Source, error: &csv::Error) -> Flaw {
    let offset = error.position().map_or(0, csv::Position::byte);
    let (expected, found) = match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            (format!("{expected_len} fields, as many as column names"), format!("{len}"))
        }
        csv::ErrorKind::Utf8 { .. } => ("text in UTF-8".to_owned(), "other bytes".to_owned()),
        _ => ("a row of a table".to_owned(), error.to_string()),
    };
    source.flaw(offset, expected, found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Result<Table, Flaw> {
        table(&mut Source::bytes("x", text).unwrap(), 1000)
    }

    #[test]
    fn names_and_fields_come_back_without_blanks_and_quotes() {
        let table = read(b"age, town\n3,\"Rio, Brazil\"\n4,Ulm\n").unwrap();
        assert_eq!(table.names, ["age", "town"]);
        assert_eq!(table.rows, [["3", "Rio, Brazil"], ["4", "Ulm"]]);
    }

    #[test]
    fn a_wrong_table_is_named_with_its_place_and_what_would_have_been_right() {
        let complaint = |text: &[u8]| read(text).unwrap_err().to_string();
        assert_eq!(
            complaint(b"a,b\n1,2\n3\n"),
            "x: at byte 8: expected 2 fields, as many as column names, found 1"
        );
        assert_eq!(
            complaint(b"a,a\n1,2\n"),
            "x: at byte 0: expected column names that differ, found \"a\" twice"
        );
        assert_eq!(
            complaint(b"a,b\n"),
            "x: at byte 0: expected column names and at least one row, found no rows"
        );
        assert_eq!(
            complaint(b"a;b\n1,5;2\n"),
            "x: at byte 0: expected column names separated by commas, found \"a;b\""
        );
        assert_eq!(complaint(b"a,b\n1,\xff\n"), "x: at byte 4: expected text in UTF-8, found other bytes");
        assert_eq!(
            complaint(&[b'x'; 1001]),
            "x: at byte 1001: expected a table of at most 1000 bytes, found more bytes"
        );
    }
}
