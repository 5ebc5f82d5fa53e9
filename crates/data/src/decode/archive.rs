//! The files inside a tar.gz.

use super::{Flaw, Source};
use std::cell::Cell;
use std::io::Read;
use std::rc::Rc;

/// Calls `visit` with the name and content of each file, folders left off the name.
pub fn each_member(
    source: Source,
    mut visit: impl FnMut(&str, &mut dyn Read) -> Result<(), Flaw>,
) -> Result<(), Flaw> {
    let name = source.name().to_owned();
    let place = Rc::new(Cell::new(0));
    let broken = |error: std::io::Error| Flaw {
        file: name.clone(),
        offset: place.get(),
        expected: "a tar.gz".to_owned(),
        found: error.to_string(),
    };
    let mut archive = tar::Archive::new(Counted { reader: source.into_reader(), place: Rc::clone(&place) });
    for member in archive.entries().map_err(broken)? {
        let mut member = member.map_err(broken)?;
        let name = member.path().map_err(broken)?.file_name().map(|name| name.to_string_lossy().into_owned());
        if let Some(name) = name.filter(|_| member.header().entry_type().is_file()) {
            visit(&name, &mut member)?;
        }
    }
    Ok(())
}

/// A reader that counts its bytes, since the archive does not say where it failed.
struct Counted<'a> {
    reader: Box<dyn Read + 'a>,
    place: Rc<Cell<u64>>,
}

impl Read for Counted<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let read = self.reader.read(into)?;
        self.place.set(self.place.get() + read as u64);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_that_breaks_off_says_where() {
        let mut tar = tar::Builder::new(Vec::new());
        for name in ["one", "two"] {
            let mut header = tar::Header::new_gnu();
            header.set_size(1000);
            header.set_mode(0o644);
            tar.append_data(&mut header, name, [7; 1000].as_slice()).unwrap();
        }
        let mut bytes = tar.into_inner().unwrap();
        // The second header is at 512 + 1024.
        bytes[1536..2048].fill(b'x');
        let flaw = each_member(Source::bytes("x", &bytes).unwrap(), |_, _| Ok(())).unwrap_err();
        assert_eq!((flaw.offset, flaw.expected.as_str()), (2048, "a tar.gz"));
    }
}
