//! A stream of bytes that knows its name and offset, so that every error can say where.

use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{BufReader, Cursor, ErrorKind, Read};
use std::path::Path;
use thiserror::Error;

/// What is wrong with a file, where, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", self.sentence())]
pub struct Flaw {
    /// The file's name.
    pub file: String,
    /// The place, counted in the uncompressed file.
    pub offset: u64,
    /// What was expected.
    pub expected: String,
    /// What was found.
    pub found: String,
}

/// What is expected of a file that cannot be read at all.
pub(crate) const READABLE: &str = "a readable file";

impl Flaw {
    fn sentence(&self) -> String {
        let Self { file, offset, expected, found } = self;
        match (offset, expected.as_str()) {
            (0, READABLE) => format!("{file} cannot be read: {found}"),
            _ => format!("{file}: at byte {offset}: expected {expected}, found {found}"),
        }
    }
}

/// A file, compressed with gzip or not, read from front to back.
pub struct Source<'a> {
    file: String,
    offset: u64,
    reader: Box<dyn Read + 'a>,
}

// Memory allocated before a byte is read: a false header costs no more than this.
const TRUST: usize = 1 << 26;

impl<'a> Source<'a> {
    /// A file on disk.
    pub fn open(path: &Path) -> Result<Source<'static>, Flaw> {
        let name = path.display().to_string();
        match File::open(path) {
            Ok(file) => Source::over(name, BufReader::with_capacity(1 << 16, file)),
            Err(error) => {
                Err(Flaw { file: name, offset: 0, expected: READABLE.to_owned(), found: error.to_string() })
            }
        }
    }

    /// Bytes in memory.
    pub fn bytes(name: &str, bytes: &'a [u8]) -> Result<Self, Flaw> {
        Self::over(name.to_owned(), bytes)
    }

    fn over(file: String, mut reader: impl Read + 'a) -> Result<Self, Flaw> {
        let mut start = Vec::new();
        if let Err(error) = reader.by_ref().take(2).read_to_end(&mut start) {
            let expected = READABLE.to_owned();
            return Err(Flaw { file, offset: 0, expected, found: error.to_string() });
        }
        let compressed = start == [0x1f, 0x8b];
        let whole = Cursor::new(start).chain(reader);
        let reader: Box<dyn Read + 'a> =
            if compressed { Box::new(MultiGzDecoder::new(whole)) } else { Box::new(whole) };
        Ok(Self { file, offset: 0, reader })
    }

    /// Bytes that some other reader gives.
    pub fn reader(name: &str, reader: impl Read + 'a) -> Result<Self, Flaw> {
        Self::over(name.to_owned(), reader)
    }

    /// The next `length` bytes, which are `what`.
    pub fn take(&mut self, length: usize, what: &str) -> Result<Vec<u8>, Flaw> {
        let mut bytes = Vec::new();
        self.append(length, what, &mut bytes)?;
        Ok(bytes)
    }

    /// Appends the next `length` bytes, which are `what`.
    pub fn append(&mut self, length: usize, what: &str, into: &mut Vec<u8>) -> Result<(), Flaw> {
        into.reserve_exact(length.min(TRUST));
        let (start, before) = (self.offset, into.len());
        let outcome = self.reader.by_ref().take(length as u64).read_to_end(into);
        let read = into.len() - before;
        self.offset += read as u64;
        match outcome {
            Err(error) => Err(self.here(what, &error.to_string())),
            Ok(_) if read < length => Err(self.short(start, what, length, read)),
            Ok(_) => Ok(()),
        }
    }

    /// Fills a slice with the next bytes, which are `what`.
    pub fn fill(&mut self, what: &str, slice: &mut [u8]) -> Result<(), Flaw> {
        let start = self.offset;
        let mut filled = 0;
        while filled < slice.len() {
            match self.reader.read(&mut slice[filled..]) {
                Ok(0) => return Err(self.short(start, what, slice.len(), filled)),
                Ok(read) => filled += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.here(what, &error.to_string())),
            }
            self.offset = start + filled as u64;
        }
        Ok(())
    }

    /// All that follows, which is `what` and no longer than `limit` bytes.
    pub fn rest(&mut self, limit: usize, what: &str) -> Result<Vec<u8>, Flaw> {
        let mut bytes = Vec::new();
        let outcome = self.reader.by_ref().take(limit as u64 + 1).read_to_end(&mut bytes);
        self.offset += bytes.len() as u64;
        match outcome {
            Err(error) => Err(self.here(what, &error.to_string())),
            Ok(_) if bytes.len() > limit => {
                Err(self.here(&format!("{what} of at most {limit} bytes"), "more bytes"))
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

    /// What is left to read, uncompressed.
    pub(crate) fn into_reader(self) -> Box<dyn Read + 'a> {
        self.reader
    }

    /// The file's name.
    pub(crate) fn name(&self) -> &str {
        &self.file
    }

    /// How many bytes have been read.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// An error about this file.
    pub fn flaw(&self, offset: u64, expected: String, found: String) -> Flaw {
        Flaw { file: self.file.clone(), offset, expected, found }
    }

    fn short(&self, start: u64, what: &str, length: usize, read: usize) -> Flaw {
        self.flaw(
            start,
            format!("{what} ({length} bytes)"),
            format!("the end of the file after {read} bytes"),
        )
    }

    fn here(&self, expected: &str, found: &str) -> Flaw {
        self.flaw(self.offset, expected.to_owned(), found.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn compressed_and_plain_bytes_read_alike() {
        let content: Vec<u8> = (0..=255).collect();
        for bytes in [content.clone(), gzip(&content)] {
            let mut source = Source::bytes("x", &bytes).unwrap();
            assert_eq!(source.take(200, "a start").unwrap(), content[..200]);
            let mut more = [0; 56];
            source.fill("the rest", &mut more).unwrap();
            assert_eq!(more, content[200..]);
            source.end().unwrap();
        }
    }

    #[test]
    fn a_cut_or_corrupt_archive_says_where_it_stopped() {
        let content: Vec<u8> = (0..10_000u32).flat_map(|x| (x * x).to_le_bytes()).collect();
        let mut bytes = gzip(&content);
        let cut = &bytes[..bytes.len() / 2];
        let flaw = Source::bytes("x", cut).unwrap().take(40_000, "numbers").unwrap_err();
        assert!((1..40_000).contains(&flaw.offset), "{flaw}");
        let last = bytes.len() - 8;
        bytes[last] ^= 1;
        let mut source = Source::bytes("x", &bytes).unwrap();
        let outcome = source.take(40_000, "numbers").and_then(|_| source.end());
        assert_eq!(outcome.unwrap_err().offset, 40_000);
    }

    #[test]
    fn a_missing_file_is_named() {
        let flaw = Source::open(Path::new("no/such/file")).err().unwrap().to_string();
        assert!(flaw.starts_with("no/such/file cannot be read: "), "{flaw}");
    }
}
