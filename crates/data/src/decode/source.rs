//! A stream of bytes that knows its name and place, so that every complaint can say where.

use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{BufReader, Cursor, Read};
use std::path::Path;
use thiserror::Error;

/// What is wrong with a file, where, and what would have been right.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}: at byte {offset}: expected {expected}, found {found}")]
pub struct Flaw {
    /// The file's name.
    pub file: String,
    /// The place, counted in the uncompressed file.
    pub offset: u64,
    /// What would have been right.
    pub expected: String,
    /// What is there.
    pub found: String,
}

/// A file, compressed with gzip or not, read from front to back.
pub struct Source<'a> {
    file: String,
    offset: u64,
    reader: Box<dyn Read + 'a>,
}

// Memory taken before a byte is seen: a header that lies costs no more than this.
const TRUST: usize = 1 << 26;

impl<'a> Source<'a> {
    /// A file on disk.
    pub fn open(path: &Path) -> Result<Source<'static>, Flaw> {
        let name = path.display().to_string();
        match File::open(path) {
            Ok(file) => Source::over(name, BufReader::with_capacity(1 << 16, file)),
            Err(error) => Err(Flaw {
                file: name,
                offset: 0,
                expected: "a readable file".to_owned(),
                found: error.to_string(),
            }),
        }
    }

    /// Bytes in memory.
    pub fn bytes(name: &str, bytes: &'a [u8]) -> Result<Self, Flaw> {
        Self::over(name.to_owned(), bytes)
    }

    fn over(file: String, mut reader: impl Read + 'a) -> Result<Self, Flaw> {
        let mut start = Vec::new();
        if let Err(error) = reader.by_ref().take(2).read_to_end(&mut start) {
            let expected = "a readable file".to_owned();
            return Err(Flaw { file, offset: 0, expected, found: error.to_string() });
        }
        let compressed = start == [0x1f, 0x8b];
        let whole = Cursor::new(start).chain(reader);
        let reader: Box<dyn Read + 'a> =
            if compressed { Box::new(MultiGzDecoder::new(whole)) } else { Box::new(whole) };
        Ok(Self { file, offset: 0, reader })
    }

    /// The next `length` bytes, which are `what`.
    pub fn take(&mut self, length: usize, what: &str) -> Result<Vec<u8>, Flaw> {
        let mut bytes = Vec::with_capacity(length.min(TRUST));
        let start = self.offset;
        let outcome = self.reader.by_ref().take(length as u64).read_to_end(&mut bytes);
        self.offset += bytes.len() as u64;
        match outcome {
            Err(error) => Err(self.flaw(self.offset, what.to_owned(), error.to_string())),
            Ok(read) if read < length => {
                let expected = format!("{what} ({length} bytes)");
                Err(self.flaw(start, expected, format!("the end of the file after {read} bytes")))
            }
            Ok(_) => Ok(bytes),
        }
    }

    /// Checks that nothing follows.
    pub fn end(&mut self) -> Result<(), Flaw> {
        let mut one = Vec::new();
        match self.reader.by_ref().take(1).read_to_end(&mut one) {
            Ok(0) => Ok(()),
            Ok(_) => Err(self.here("the end of the file", "more bytes")),
            Err(error) => Err(self.here("the end of the file", &error.to_string())),
        }
    }

    /// How many bytes have been read.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// A complaint about this file.
    pub fn flaw(&self, offset: u64, expected: String, found: String) -> Flaw {
        Flaw { file: self.file.clone(), offset, expected, found }
    }

    fn here(&self, expected: &str, found: &str) -> Flaw {
        self.flaw(self.offset, expected.to_owned(), found.to_owned())
    }
}
