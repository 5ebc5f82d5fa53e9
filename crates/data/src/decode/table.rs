//! Tables as text: a line of column names, then rows of as many fields, separated by commas, semicolons or tabs.

use super::quotes::{StrayQuote, stray_quote};
use super::{Flaw, Source};
use std::collections::BTreeSet;

/// How the text of a table is laid out; what is `None` is found in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// The character between two fields.
    pub separator: Option<u8>,
    /// Names of the columns of files that have no line of names. A first line with several of these names is one, and
    /// its own names are used: a header must never rename a file's columns.
    pub header: Option<Vec<String>>,
}

/// A table in memory, as text.
#[derive(Clone, Debug)]
pub struct Table {
    /// The columns' names.
    pub names: Vec<String>,
    /// The character between two fields.
    pub separator: u8,
    file: String,
    bytes: Vec<u8>,
    /// Bytes before the first line: a byte order mark.
    start: usize,
    /// Whether the first line holds names.
    named: bool,
}

/// The rows of a table, read one after the other.
pub struct Rows<'a> {
    table: &'a Table,
    reader: csv::Reader<&'a [u8]>,
    record: csv::StringRecord,
    number: u64,
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub struct Row<'r> {
    record: &'r csv::StringRecord,
    /// Its number; the first one after the names is 1.
    pub number: u64,
    /// Where it starts in the text, or in the line breaks before it.
    byte: u64,
}

impl<'r> Row<'r> {
    /// A field, without blanks around it.
    pub fn field(&self, column: usize) -> &'r str {
        self.record.get(column).unwrap_or_default().trim()
    }

    /// The line of the table's file in which it starts, counted from 1.
    pub fn line(&self, table: &Table) -> usize {
        table.line(self.byte)
    }

    /// All fields as they are in the file.
    pub fn fields(&self) -> impl Iterator<Item = &'r str> {
        self.record.iter()
    }
}

/// Largest table, in bytes.
pub(crate) const LARGEST_TABLE: usize = 1 << 30;
/// Maximum number of columns, far above what a table of people's data has.
pub(crate) const MOST_COLUMNS: usize = 100_000;
const SEPARATORS: [u8; 3] = *b",;\t";
/// From this size on, in bytes, several threads read a table.
const LARGE: usize = 1 << 24;
/// Every thread separates all fields, so that more of them gain nothing.
const MOST_THREADS: usize = 8;
const MARK: &[u8] = b"\xef\xbb\xbf";

impl Table {
    /// Reads a table of at most `limit` bytes.
    pub fn read(source: &mut Source, limit: usize, layout: &Layout) -> Result<Self, Flaw> {
        let bytes = source.rest(limit, "a table")?;
        let refuse = |expected: &str, found: String| Err(source.flaw(0, expected.to_owned(), found));
        if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
            return refuse("text in UTF-8", "UTF-16; save the table as UTF-8".to_owned());
        }
        let start = if bytes.starts_with(MARK) { MARK.len() } else { 0 };
        let separator = layout.separator.unwrap_or_else(|| separator(&bytes[start..]));
        let mut table =
            Self { names: Vec::new(), separator, file: source.name().to_owned(), bytes, start, named: true };
        let mut reader = table.reader();
        let mut first = csv::StringRecord::new();
        table.next(&mut reader, &mut first)?;
        if first.len() > MOST_COLUMNS {
            return refuse(&format!("at most {MOST_COLUMNS} columns"), first.len().to_string());
        }
        table.names = first.iter().map(|name| name.trim().to_owned()).collect();
        if let Some(header) = &layout.header {
            let own: BTreeSet<&String> = table.names.iter().collect();
            let given: BTreeSet<&String> = header.iter().collect();
            // Numbers may be names, and as well the values of a row.
            let names: Vec<&String> =
                own.intersection(&given).filter(|name| name.parse::<f64>().is_err()).copied().collect();
            table.named = own == given || names.len() > 1;
            if let ([name], false) = (names.as_slice(), table.named) {
                let expected = "a first line that is a row, or has several of the names of the header";
                return refuse(expected, format!("one of the names, {name:?}"));
            }
            if !table.named && table.names.len() != header.len() {
                let expected = format!("{} fields, as many as the names of the header", header.len());
                return refuse(&expected, table.names.len().to_string());
            }
            if !table.named {
                table.names.clone_from(header);
            }
        }
        let mut names: Vec<&String> = table.names.iter().collect();
        names.sort();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return refuse("column names that differ", format!("{:?} twice", twice[0]));
        }
        let empty = table.rows().next()?.is_none();
        if empty {
            return refuse("column names and at least one row", "no rows".to_owned());
        }
        Ok(table)
    }

    /// The file's name.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The column with this name.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|own| own == name)
    }

    /// Number of threads that read different columns at the same time: one for a table that is read in no time.
    pub(crate) fn threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
        if self.bytes.len() > LARGE { cores() } else { 1 }
    }

    /// The rows from the first one on.
    pub fn rows(&self) -> Rows<'_> {
        let mut rows =
            Rows { table: self, reader: self.reader(), record: csv::StringRecord::new(), number: 0 };
        if self.named {
            // The line of names was read before without an error.
            let _ = rows.reader.read_record(&mut rows.record);
        }
        rows
    }

    /// What follows a byte order mark.
    fn text(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    fn reader(&self) -> csv::Reader<&[u8]> {
        csv::ReaderBuilder::new().has_headers(false).delimiter(self.separator).from_reader(self.text())
    }

    /// Reads the next record; `false` at the end of the file.
    fn next(&self, reader: &mut csv::Reader<&[u8]>, record: &mut csv::StringRecord) -> Result<bool, Flaw> {
        let (start, line) = (reader.position().byte(), reader.position().line());
        let read = reader.read_record(record);
        let (end, next_line) = (reader.position().byte(), reader.position().line());
        // Only a record of several lines, or the last one, can have swallowed others.
        if next_line > line + 1 || end == self.text().len() as u64 {
            self.check_quotes(start, end)?;
        }
        read.map_err(|error| self.flaw(&error))
    }

    /// Fails if a quote between these bytes reaches into other rows.
    fn check_quotes(&self, start: u64, end: u64) -> Result<(), Flaw> {
        let record = &self.text()[start as usize..end as usize];
        let place = |quote: usize| start + quote as u64;
        let (opened, expected, found) = match stray_quote(record, self.separator) {
            None => return Ok(()),
            Some(StrayQuote::Unclosed(opened)) => {
                let line = self.line(place(opened));
                let found = format!(
                    "the end of the file; the quote was opened in line {line}: close it, or remove it"
                );
                (opened, "a closing quote".to_owned(), found)
            }
            Some(StrayQuote::Reopened { opened, closed }) => {
                let [first, second] = [opened, closed].map(|quote| self.line(place(quote)));
                let expected = format!(
                    "a separator after the quote in line {second}, which closes the one of line {first}"
                );
                let found = "other text; remove one of the two, or write a quote inside of quotes twice";
                (opened, expected, found.to_owned())
            }
        };
        let offset = place(opened) + self.start as u64;
        Err(Flaw { file: self.file.clone(), offset, expected, found })
    }

    /// The line of the first text at or after this place: lines end with a line feed, a carriage return, or both.
    fn line(&self, byte: u64) -> usize {
        let text = self.text();
        let skipped =
            text.iter().skip(byte as usize).take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let before = &text[..text.len().min(byte as usize + skipped)];
        let feeds = before.iter().filter(|byte| **byte == b'\n').count();
        let lone = before.windows(2).filter(|pair| pair[0] == b'\r' && pair[1] != b'\n').count();
        1 + feeds + lone + usize::from(before.ends_with(b"\r"))
    }

    fn flaw(&self, error: &csv::Error) -> Flaw {
        let byte = error.position().map_or(0, csv::Position::byte);
        let (offset, line) = (byte + self.start as u64, self.line(byte));
        let (expected, found) = match error.kind() {
            csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                (format!("{expected_len} fields, as many as column names"), format!("{len} in line {line}"))
            }
            csv::ErrorKind::Utf8 { .. } => {
                ("text in UTF-8".to_owned(), format!("other bytes in line {line}; save the table as UTF-8"))
            }
            _ => ("a row of a table".to_owned(), error.to_string()),
        };
        Flaw { file: self.file.clone(), offset, expected, found }
    }
}

impl Rows<'_> {
    /// The next row, which lives until the one after it is read.
    #[expect(clippy::should_implement_trait, reason = "an iterator could not lend its rows")]
    pub fn next(&mut self) -> Result<Option<Row<'_>>, Flaw> {
        if !self.table.next(&mut self.reader, &mut self.record)? {
            return Ok(None);
        }
        self.number += 1;
        let byte = self.record.position().map_or(0, csv::Position::byte);
        Ok(Some(Row { record: &self.record, number: self.number, byte }))
    }
}

/// The most frequent separator of the first line, outside of quotes; a comma if there is none.
fn separator(bytes: &[u8]) -> u8 {
    let mut counts = [0; 3];
    let mut quoted = false;
    for byte in bytes {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' | b'\r' if !quoted => break,
            _ if quoted => {}
            byte => {
                if let Some(place) = SEPARATORS.iter().position(|separator| separator == byte) {
                    counts[place] += 1;
                }
            }
        }
    }
    let most = counts.iter().max().copied().unwrap_or(0);
    counts.iter().position(|count| *count == most).map_or(b',', |place| SEPARATORS[place])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_as(text: &[u8], layout: &Layout) -> Result<(Vec<String>, Vec<Vec<String>>), Flaw> {
        let table = Table::read(&mut Source::bytes("x", text).unwrap(), 1000, layout)?;
        let (mut rows, mut all) = (table.rows(), Vec::new());
        while let Some(row) = rows.next()? {
            all.push((0..table.names.len()).map(|column| row.field(column).to_owned()).collect());
        }
        Ok((table.names.clone(), all))
    }

    fn read(text: &[u8]) -> Result<(Vec<String>, Vec<Vec<String>>), Flaw> {
        read_as(text, &Layout::default())
    }

    #[test]
    fn names_and_fields_come_back_without_blanks_and_quotes() {
        let (names, rows) = read(b"age, town\n3,\"Rio, Brazil\"\n4, Ulm \n").unwrap();
        assert_eq!(names, ["age", "town"]);
        assert_eq!(rows, [["3", "Rio, Brazil"], ["4", "Ulm"]]);
    }

    #[test]
    fn rows_know_the_line_they_start_in_whatever_ends_lines() {
        let lines = |text: &str| {
            let table =
                Table::read(&mut Source::bytes("x", text.as_bytes()).unwrap(), 1000, &Layout::default());
            let table = table.unwrap();
            let (mut rows, mut lines) = (table.rows(), Vec::new());
            while let Some(row) = rows.next().unwrap() {
                lines.push(row.line(&table));
            }
            lines
        };
        for end in ["\n", "\r\n", "\r"] {
            // A blank line, and a field of two lines.
            let text = ["a,b", "1,2", "", "3,\"4", "5\"", "6,7", ""].join(end);
            assert_eq!(lines(&text), [2, 4, 6], "{end:?}");
        }
        let error = read(b"a,b\r\n1,2\r\n3\r\n").unwrap_err().to_string();
        assert!(error.ends_with("expected 2 fields, as many as column names, found 1 in line 3"), "{error}");
    }

    #[test]
    fn commas_semicolons_tabs_and_a_byte_order_mark_read_alike() {
        let comma = read(b"a,b\n1,x y\n2,\"q \"\"r\"\"\"\n").unwrap();
        for separator in [";", "\t"] {
            let text = "\u{feff}a,b\r\n1,x y\r\n2,\"q \"\"r\"\"\"\r\n".replace(',', separator);
            assert_eq!(read(text.as_bytes()).unwrap(), comma);
        }
        // A comma inside quotes separates nothing.
        assert_eq!(read(b"\"a,b,c\";d\n1,5;2\n").unwrap().1, [["1,5", "2"]]);
        let layout = Layout { separator: Some(b'|'), header: None };
        assert_eq!(read_as(b"a|b\n1,2;3|4\n", &layout).unwrap().1, [["1,2;3", "4"]]);
    }

    #[test]
    fn a_file_without_names_gets_those_of_its_layout() {
        let header = ["a", "b"].map(str::to_owned).to_vec();
        let layout = Layout { separator: None, header: Some(header) };
        let read = |text: &[u8]| read_as(text, &layout);
        let (names, rows) = read(b"1,2\n3,4\n").unwrap();
        assert_eq!((names.join(" "), rows.len()), ("a b".to_owned(), 2));
        // A file that has the names keeps its own order.
        let (names, rows) = read(b"b,a\n1,2\n").unwrap();
        assert_eq!((names.join(" "), rows), ("b a".to_owned(), vec![vec!["1".to_owned(), "2".to_owned()]]));
        let error = read(b"1,2,3\n").unwrap_err().to_string();
        assert!(error.ends_with("expected 2 fields, as many as the names of the header, found 3"), "{error}");
    }

    #[test]
    fn a_header_never_renames_the_columns_of_a_file_with_names() {
        let header = |names: &[&str]| Layout {
            separator: None,
            header: Some(names.iter().map(|&name| name.to_owned()).collect()),
        };
        let layout = header(&["age", "bp", "sick"]);
        // Another column in place of one, further columns, or no label: names are as in the file.
        for text in ["age,income,sick\n1,2,3\n", "id,bp,age\n1,2,3\n", "bp,age\n1,2\n"] {
            let (names, rows) = read_as(text.as_bytes(), &layout).unwrap();
            assert_eq!((names.join(","), rows.len()), (text.lines().next().unwrap().to_owned(), 1));
        }
        let error = read_as(b"income,town,sick\n1,2,3\n", &layout).unwrap_err().to_string();
        assert!(error.ends_with("found one of the names, \"sick\""), "{error}");
        // Values of a row are no names.
        let (names, rows) = read_as(b"1,2,3\n2,1,3\n", &header(&["1", "2", "x"])).unwrap();
        assert_eq!((names.join(","), rows.len()), ("1,2,x".to_owned(), 2));
    }

    #[test]
    fn a_quote_that_would_swallow_rows_is_refused_with_its_line() {
        let complaint = |text: &str| read(text.as_bytes()).unwrap_err().to_string();
        let end = "the end of the file; the quote was opened in line 3: close it, or remove it";
        for text in [
            "a,b\n1,2\n3,\"see letter\n5,6\n7,8\n",
            "a,b\r\n1,2\r\n3,\"see letter\r\n5,6",
            "a,b\r1,2\r3,\"see letter\r5,6\r",
            // Too few fields are a consequence.
            "a,b\n1,2\n\"3,4\n5,6\n",
        ] {
            let error = complaint(text);
            assert!(error.ends_with(&format!("expected a closing quote, found {end}")), "{error}");
        }
        let error = complaint("a,\"b\n1,2\n3,4\n");
        assert!(error.ends_with("the quote was opened in line 1: close it, or remove it"), "{error}");
        let error = complaint("a,b\n1,2\n3,\"see letter\n5,6\n7,\"again\n9,10\n");
        let end = "expected a separator after the quote in line 5, which closes the one of line 3, found other text; remove \
                   one of the two, or write a quote inside of quotes twice";
        assert!(error.ends_with(end), "{error}");
        // Fields of several lines are fine, also at the end.
        assert_eq!(read(b"a,b\n1,\"2\n3\"\n4,\"5 \"\"6\"\"\"").unwrap().1, [["1", "2\n3"], ["4", "5 \"6\""]]);
    }

    #[test]
    fn a_wrong_table_is_named_with_its_place_and_what_would_have_been_right() {
        let complaint = |text: &[u8]| read(text).unwrap_err().to_string();
        assert_eq!(
            complaint(b"a,b\n1,2\n3\n"),
            "x: at byte 8: expected 2 fields, as many as column names, found 1 in line 3"
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
            complaint(b"a,b\n1,\xff\n"),
            "x: at byte 4: expected text in UTF-8, found other bytes in line 2; save the table as UTF-8"
        );
        let wide = ",".repeat(MOST_COLUMNS) + "\n";
        let mut source = Source::bytes("x", wide.as_bytes()).unwrap();
        let error = Table::read(&mut source, 1 << 20, &Layout::default()).unwrap_err().to_string();
        assert_eq!(error, "x: at byte 0: expected at most 100000 columns, found 100001");
        assert!(complaint(b"\xff\xfea\0,\0b\0").contains("found UTF-16"));
        assert_eq!(
            complaint(&[b'x'; 1001]),
            "x: at byte 1001: expected a table of at most 1000 bytes, found more bytes"
        );
    }
}
