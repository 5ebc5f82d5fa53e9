//! The updates of a round as the server reads them: from the ledger's files, block by block.

use crate::ledger::{Answer, Ledger};
use crate::server::refusal::plain;
use fedtvd_core::bytes::BytesError;
use fedtvd_core::failure::ClientFailure;
use fedtvd_core::layout::Layout;
use fedtvd_core::profile::ClientId;
use fedtvd_core::updates::{Outcome, Part, ReadFailure, Updates};
use fedtvd_core::upload_head::{self, UploadHead};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The updates of a round.
pub(crate) struct Stored {
    outcomes: Vec<Outcome>,
    /// By path: a round of many clients has more updates than a process may have open files.
    files: Vec<Option<(PathBuf, UploadHead)>>,
}

/// An update in a file, or why it is none.
pub(crate) fn open(path: &Path, layout: &Layout) -> io::Result<Result<UploadHead, BytesError>> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    let mut first = [0; 8];
    if size < 8 {
        return Ok(Err(BytesError::Container(format!("{size} bytes; even an empty file has 8"))));
    }
    file.read_exact(&mut first)?;
    let length = match upload_head::length(first) {
        Ok(length) if length as u64 <= size => length,
        Ok(length) => {
            return Ok(Err(BytesError::Container(format!("{size} bytes; its head alone has {length}"))));
        }
        Err(error) => return Ok(Err(error)),
    };
    let mut head = vec![0; length];
    file.seek(SeekFrom::Start(0))?;
    file.read_exact(&mut head)?;
    Ok(UploadHead::from_bytes(&head, size, layout))
}

impl Stored {
    /// The frozen answers of a round, in client order.
    pub(crate) fn new(
        ledger: &Ledger,
        round: u32,
        answers: &BTreeMap<ClientId, Answer>,
        layout: &Layout,
    ) -> Result<Self, ReadFailure> {
        let (mut outcomes, mut files) = (Vec::new(), Vec::new());
        for (&client, answer) in answers {
            let (answer, file) = match answer {
                Answer::Failure(failure) => (Err(failure.clone()), None),
                Answer::Update { hash, .. } => {
                    let unread = |why: String| ReadFailure { client, why };
                    let path = ledger.place(round, client, hash);
                    let head = open(&path, layout)
                        .map_err(|error| unread(error.to_string()))?
                        .map_err(|error| unread(error.to_string()))?;
                    (Ok(head.report), Some((path, head)))
                }
            };
            outcomes.push(Outcome { client, answer });
            files.push(file);
        }
        Ok(Self { outcomes, files })
    }

    /// One update, not yet accepted.
    pub(crate) fn one(client: ClientId, path: PathBuf, head: UploadHead) -> Self {
        let outcome = Outcome { client, answer: Ok(head.report) };
        Self { outcomes: vec![outcome], files: vec![Some((path, head))] }
    }
}

impl Updates for Stored {
    fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }

    fn len(&self, index: usize, part: Part<'_>) -> usize {
        let place = self.files[index].as_ref().and_then(|(_, head)| head.place(part));
        place.map_or(0, |(_, len)| len)
    }

    fn read(
        &self,
        index: usize,
        part: Part<'_>,
        range: Range<usize>,
        out: &mut [f32],
    ) -> Result<(), ReadFailure> {
        let client = self.outcomes[index].client;
        let unread = |why: String| ReadFailure { client, why };
        let place = self.files[index].as_ref().and_then(|(path, head)| Some((path, head.place(part)?)));
        let (path, start) = match place {
            Some((path, (start, len))) if range.end <= len => (path, start + 4 * range.start as u64),
            _ => return Err(unread("it is too short".to_owned())),
        };
        let mut bytes = vec![0; 4 * out.len()];
        File::open(path)
            .and_then(|mut file| {
                file.seek(SeekFrom::Start(start))?;
                file.read_exact(&mut bytes)
            })
            .map_err(|error| unread(error.to_string()))?;
        for (out, chunk) in out.iter_mut().zip(bytes.as_chunks().0) {
            *out = f32::from_le_bytes(*chunk);
        }
        Ok(())
    }
}

/// What an update that does not read is to its client.
pub(crate) fn unreadable(error: &BytesError) -> ClientFailure {
    ClientFailure::Unreadable(plain(&error.to_string()))
}
