//! Checks an upload while its bytes arrive, so that they are read only once.

use crate::bytes::UploadHead;
use crate::bytes::upload_head::length;
use crate::round::{Checked, ClientFailure, Inspection, Job, UpdatePart};
use crate::rules::Needs;

/// The check of an upload whose bytes arrive in pieces of any length.
#[derive(Debug)]
pub struct UploadStream {
    needs: Needs,
    /// Number of training samples of the client.
    size: u64,
    job: Job,
    /// Announced number of bytes.
    total: u64,
    /// Bytes of an incomplete head, then those of an incomplete value.
    pending: Vec<u8>,
    /// Number of bytes checked.
    position: u64,
    values: Option<(UploadHead, Inspection)>,
    failure: Option<ClientFailure>,
}

impl UploadStream {
    /// Begins to check the answer to a job of a client with `size` samples, announced as `total` bytes.
    pub fn new(needs: Needs, size: u64, job: Job, total: u64) -> Self {
        Self { needs, size, job, total, pending: Vec::new(), position: 0, values: None, failure: None }
    }

    /// Checks the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.failure.is_none() {
            self.failure = self.next(bytes).err();
        }
    }

    /// The head and the checked update, if the upload is complete and acceptable.
    pub fn finish(self) -> Result<(UploadHead, Checked), ClientFailure> {
        match (self.failure, self.values) {
            (Some(failure), _) => Err(failure),
            (None, Some((head, inspection))) => Ok((head, inspection.finish()?)),
            (None, None) => {
                let got = self.pending.len();
                Err(ClientFailure::Unreadable(format!("the head is incomplete after {got} bytes")))
            }
        }
    }

    fn next(&mut self, mut bytes: &[u8]) -> Result<(), ClientFailure> {
        if self.values.is_none() {
            bytes = self.head(bytes)?;
        }
        let Some((head, inspection)) = &mut self.values else { return Ok(()) };
        let values = self.pending.len() + bytes.len();
        let mut whole = Vec::with_capacity(values / 4);
        if !self.pending.is_empty() && values >= 4 {
            let (end, rest) = bytes.split_at(4 - self.pending.len());
            self.pending.extend_from_slice(end);
            whole.extend(self.pending.as_chunks().0.iter().map(|value| f32::from_le_bytes(*value)));
            self.pending.clear();
            bytes = rest;
        }
        let (values, rest) = bytes.as_chunks();
        whole.extend(values.iter().map(|value| f32::from_le_bytes(*value)));
        self.pending.extend_from_slice(rest);
        let mut whole = whole.as_slice();
        while !whole.is_empty() {
            let Some((part, left)) = head.at(self.position) else {
                return Err(ClientFailure::Unreadable(format!("more than {} bytes", self.total)));
            };
            let (now, later) = whole.split_at(left.min(whole.len()));
            inspection.values(part, now)?;
            self.position += 4 * now.len() as u64;
            whole = later;
        }
        Ok(())
    }

    /// Takes what belongs to the head, and returns the rest.
    fn head<'b>(&mut self, bytes: &'b [u8]) -> Result<&'b [u8], ClientFailure> {
        let unreadable = |error: crate::bytes::BytesError| ClientFailure::Unreadable(error.to_string());
        let mut rest = bytes;
        let mut take = |pending: &mut Vec<u8>, len: usize| {
            let (now, later) = rest.split_at(len.saturating_sub(pending.len()).min(rest.len()));
            pending.extend_from_slice(now);
            rest = later;
            pending.len() >= len
        };
        if !take(&mut self.pending, 8) {
            return Ok(rest);
        }
        let first = *self.pending.first_chunk().expect("eight bytes were taken");
        let length = length(first).map_err(unreadable)?;
        if !take(&mut self.pending, length) {
            return Ok(rest);
        }
        let layout = &self.job.offer.params.layout;
        let head = UploadHead::from_bytes(&self.pending, self.total, layout).map_err(unreadable)?;
        if head.client != self.job.client {
            return Err(ClientFailure::Unreadable(format!("it claims to come from client {}", head.client)));
        }
        let mut inspection = Inspection::new(&self.needs, self.size, &self.job, head.report)?;
        // Parts without values, too, must be known.
        head.places().try_for_each(|(part, ..)| inspection.values(part, &[]))?;
        self.position = length as u64;
        self.pending.clear();
        self.values = Some((head, inspection));
        Ok(rest)
    }
}

impl UploadHead {
    /// The part that holds the value at this byte of the file, and how many values of it are left.
    fn at(&self, position: u64) -> Option<(UpdatePart<'_>, usize)> {
        self.places().find_map(|(part, start, len)| {
            let end = start + 4 * len as u64;
            (start..end).contains(&position).then(|| (part, ((end - position) / 4) as usize))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::Reference;
    use crate::memory::Memory;
    use crate::model::{Layout, Params};
    use crate::round::{Offer, Report, Upload, check};
    use crate::rules::{Carried, Extent};
    use crate::stream::Key;
    use crate::train::Local;
    use std::sync::Arc;

    const NEEDS: Needs = Needs {
        carries: &[Carried { name: "control", extent: Extent::Trainable }],
        remembers: true,
        mu: 0.0,
        sgd: None,
        own_model: false,
        holdout: false,
        least_lr: None,
    };

    fn job() -> Job {
        let params = Params { layout: Arc::new(Layout::vector(3)), values: vec![1.0, 1.0, 0.5] };
        let offer = Offer {
            round: 2,
            strategy: "scaffold".to_owned(),
            local: Local::default(),
            class_weights: Default::default(),
            reference: Reference::uniform(2),
            branch: 0,
            params: Arc::new(params),
            others: Vec::new(),
            carried: Arc::default(),
            own: Arc::default(),
        };
        Job { client: 7, key: Key::of(1), accepted: None, matching: None, offer: Arc::new(offer) }
    }

    fn upload() -> Upload {
        let params = Params { layout: Arc::new(Layout::vector(3)), values: vec![1.0, -2.0, 4.5] };
        let mut carried = Memory::default();
        carried.put("control", vec![4.0f32, 5.0, 6.0]);
        let report =
            Report { round: 2, steps: 1, reach: 0.01, losses: [1.0, 0.5], remembers: true, branch: 0 };
        Upload { client: 7, params, carried, report }
    }

    fn streamed(bytes: &[u8], piece: usize) -> Result<Checked, ClientFailure> {
        let mut stream = UploadStream::new(NEEDS, 10, job(), bytes.len() as u64);
        bytes.chunks(piece).for_each(|piece| stream.feed(piece));
        stream.finish().map(|(_, checked)| checked)
    }

    #[test]
    fn pieces_of_any_length_give_the_same_result_as_the_whole_upload() {
        let bytes = upload().to_bytes();
        let checked = check(&NEEDS, 10, &job(), &upload()).unwrap();
        // The update is (0, -3, 4).
        assert_eq!(checked.norm(), 5.0);
        for piece in 1..=bytes.len() {
            assert_eq!(streamed(&bytes, piece), Ok(checked.clone()), "pieces of {piece} bytes");
        }
    }

    #[test]
    fn every_fault_is_found_in_pieces_of_any_length() {
        let broken: [fn(&mut Upload); 8] = [
            |upload| upload.client = 8,
            |upload| upload.report.round = 3,
            |upload| upload.report.reach = 1.0,
            |upload| upload.params.values[2] = f32::NAN,
            |upload| upload.carried.put("control", vec![1.0f32, f32::INFINITY, 1.0]),
            |upload| upload.carried = Memory::default(),
            |upload| upload.carried.put("other", vec![1.0f32; 3]),
            |upload| upload.carried.put("empty", Vec::<f32>::new()),
        ];
        for (fault, change) in broken.into_iter().enumerate() {
            let mut upload = upload();
            change(&mut upload);
            let bytes = upload.to_bytes();
            let whole = streamed(&bytes, bytes.len());
            assert!(whole.is_err(), "fault {fault} was accepted");
            for piece in 1..bytes.len() {
                assert_eq!(streamed(&bytes, piece), whole, "fault {fault}, pieces of {piece} bytes");
            }
        }
    }

    #[test]
    fn missing_or_changed_bytes_are_accepted_only_if_the_upload_decodes_the_same() {
        let bytes = upload().to_bytes();
        for len in 0..bytes.len() {
            assert!(streamed(&bytes[..len], 5).is_err());
            // Fewer bytes than were announced.
            let mut stream = UploadStream::new(NEEDS, 10, job(), bytes.len() as u64);
            stream.feed(&bytes[..len]);
            assert!(stream.finish().is_err(), "{len} bytes");
        }
        let layout = Arc::new(Layout::vector(3));
        for place in 0..bytes.len() {
            for flip in [0x01, 0x10, 0x80, 0xff] {
                let mut bytes = bytes.clone();
                bytes[place] ^= flip;
                let whole = Upload::from_bytes(&bytes, &layout).ok().filter(|upload| upload.client == 7);
                let whole = whole.and_then(|upload| check(&NEEDS, 10, &job(), &upload).ok());
                assert_eq!(streamed(&bytes, 11).ok(), whole, "{place} {flip}");
            }
        }
    }
}
