//! The part of an update that has arrived: hashed and checked as far as it goes, so that nothing is read twice, and an upload
//! that breaks off continues where it stopped.

use crate::federation::stored::StoredUpdate;
use crate::wire;
use data_encoding::HEXLOWER;
use fedtvd_core::bytes::UploadStream;
use fedtvd_core::round::ClientFailure;
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// The part of an update that has arrived.
#[derive(Debug)]
pub(crate) struct Partial {
    /// Announced SHA-256 of the whole update.
    pub(crate) hash: String,
    /// Announced number of bytes.
    pub(crate) bytes: u64,
    /// Number of bytes that have arrived.
    pub(crate) got: u64,
    digest: Sha256,
    check: UploadStream,
}

/// Why a complete update is not acceptable.
#[derive(Debug)]
pub(crate) enum Unacceptable {
    /// Its bytes are not the announced ones, but have this hash.
    Hash(String),
    /// It failed a check.
    Failure(ClientFailure),
}

impl Partial {
    /// Nothing yet of an update that is announced with this hash and length.
    pub(crate) fn new(hash: &str, bytes: u64, check: UploadStream) -> Self {
        Self { hash: hash.to_owned(), bytes, got: 0, digest: Sha256::new(), check }
    }

    /// Whether this ticket announces the same update.
    pub(crate) fn is_of(&self, ticket: &wire::Ticket) -> bool {
        self.hash == ticket.hash && self.bytes == ticket.bytes
    }

    /// The next bytes.
    pub(crate) fn feed(&mut self, part: &[u8]) {
        self.got += part.len() as u64;
        self.digest.update(part);
        self.check.feed(part);
    }

    /// The bytes of a file.
    pub(crate) fn read(&mut self, path: &Path) -> io::Result<()> {
        let (mut file, mut block) = (File::open(path)?, vec![0; 1 << 16]);
        loop {
            match file.read(&mut block)? {
                0 => return Ok(()),
                read => self.feed(&block[..read]),
            }
        }
    }

    /// The update, if it is complete and acceptable.
    pub(crate) fn finish(self) -> Result<StoredUpdate, Unacceptable> {
        let hash = HEXLOWER.encode(&self.digest.finalize());
        if hash != self.hash {
            return Err(Unacceptable::Hash(hash));
        }
        let (head, checked) = self.check.finish().map_err(Unacceptable::Failure)?;
        Ok(StoredUpdate { hash, bytes: self.bytes, head, checked })
    }
}
