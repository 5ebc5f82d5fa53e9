//! Keeps the updates of a round in memory up to a budget, and the others in a temporary file.
//!
//! The round reads them back in client order, in blocks of coordinates, as often as its rule needs, so where an update
//! is kept does not change the result.

use crate::fleet::FleetFailure;
use fedtvd_core::memory::{Array, Memory};
use fedtvd_core::model::Params;
use fedtvd_core::round::{ClientId, Outcome, ReadFailure, UpdatePart, Updates, Upload};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Stores updates as they arrive.
pub(crate) struct Spool {
    budget: usize,
    storage: Mutex<Storage>,
}

#[derive(Default)]
struct Storage {
    used: usize,
    file: Option<File>,
    end: u64,
    failure: Option<String>,
}

/// A stored update: in memory, or the offsets of its parts in the file.
pub(crate) enum Kept {
    /// In memory.
    InMemory(Params, Memory),
    /// Name (`None` for the model), offset and length of each part.
    OnDisk(Vec<(Option<String>, u64, usize)>),
}

impl Spool {
    /// A spool that keeps up to `budget` bytes in memory.
    pub(crate) fn new(budget: usize) -> Self {
        Self { budget, storage: Mutex::default() }
    }

    fn storage(&self) -> MutexGuard<'_, Storage> {
        self.storage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an update's values. If they cannot be written to disk, [`Spool::failure`] reports it: the round cannot be
    /// closed, since leaving out a client for lack of space would change the result.
    pub(crate) fn keep(&self, upload: &mut Upload) -> Kept {
        let carried = upload.carried.arrays().map(|(_, array)| array.len()).sum::<usize>();
        let size = 4 * (upload.params.values.len() + carried);
        let mut storage = self.storage();
        let carried = std::mem::take(&mut upload.carried);
        if storage.used + size <= self.budget {
            storage.used += size;
            let layout = upload.params.layout.clone();
            let params = std::mem::replace(&mut upload.params, Params { layout, values: Vec::new() });
            return Kept::InMemory(params, carried);
        }
        let model = std::mem::take(&mut upload.params.values);
        let mut places = vec![(None, storage.end, model.len())];
        storage.write(&model);
        for (name, array) in carried.arrays() {
            let Array::F32(values) = array else { continue };
            places.push((Some(name.to_owned()), storage.end, values.len()));
            storage.write(values);
        }
        Kept::OnDisk(places)
    }

    /// Why an update could not be written to the file, if one could not.
    pub(crate) fn failure(&self) -> Option<String> {
        self.storage().failure.clone()
    }

    /// Fails if an update could not be written to the file.
    pub(crate) fn complete(&self) -> Result<(), FleetFailure> {
        let folder = || std::env::temp_dir().display().to_string();
        self.failure().map_or(Ok(()), |why| Err(FleetFailure::Spool { folder: folder(), why }))
    }

    /// All updates, in client order.
    pub(crate) fn close(self, mut answers: Vec<(Outcome, Option<Kept>)>) -> Spooled {
        // Floating-point sums depend on their order; arrival order is not reproducible.
        answers.sort_by_key(|(outcome, _)| outcome.client);
        let (outcomes, kept) = answers.into_iter().unzip();
        Spooled { outcomes, kept, storage: self.storage }
    }
}

impl Storage {
    fn write(&mut self, values: &[f32]) {
        if self.failure.is_none() {
            self.failure = self.written(values).err().map(|error| error.to_string());
        }
    }

    fn written(&mut self, values: &[f32]) -> io::Result<()> {
        if self.file.is_none() {
            self.file = Some(tempfile::tempfile()?);
        }
        let Some(file) = &mut self.file else { unreachable!("it was just created") };
        file.seek(SeekFrom::Start(self.end))?;
        for block in values.chunks(1 << 16) {
            let bytes: Vec<u8> = block.iter().flat_map(|value| value.to_le_bytes()).collect();
            file.write_all(&bytes)?;
            self.end += bytes.len() as u64;
        }
        Ok(())
    }

    fn read(&mut self, place: u64, out: &mut [f32]) -> io::Result<()> {
        if let Some(failure) = &self.failure {
            return Err(io::Error::other(failure.clone()));
        }
        let Some(file) = &mut self.file else { return Err(io::ErrorKind::NotFound.into()) };
        file.seek(SeekFrom::Start(place))?;
        let mut bytes = vec![0; 4 * out.len()];
        file.read_exact(&mut bytes)?;
        for (out, chunk) in out.iter_mut().zip(bytes.as_chunks().0) {
            *out = f32::from_le_bytes(*chunk);
        }
        Ok(())
    }
}

/// The updates of a round, in memory and in the file.
pub(crate) struct Spooled {
    outcomes: Vec<Outcome>,
    kept: Vec<Option<Kept>>,
    storage: Mutex<Storage>,
}

impl Spooled {
    /// Offset and length of a part in the file.
    fn place(&self, index: usize, part: UpdatePart<'_>) -> Option<(u64, usize)> {
        let Some(Kept::OnDisk(places)) = &self.kept[index] else { return None };
        let wanted = match part {
            UpdatePart::Model => None,
            UpdatePart::Carried(name) => Some(name),
        };
        places.iter().find(|(name, ..)| name.as_deref() == wanted).map(|(_, place, len)| (*place, *len))
    }

    fn here(&self, index: usize, part: UpdatePart<'_>) -> Option<&[f32]> {
        match (&self.kept[index], part) {
            (Some(Kept::InMemory(params, _)), UpdatePart::Model) => Some(&params.values),
            (Some(Kept::InMemory(_, carried)), UpdatePart::Carried(name)) => carried.f32(name),
            _ => None,
        }
    }

    fn failure(&self, index: usize, why: impl ToString) -> ReadFailure {
        let client: ClientId = self.outcomes[index].client;
        ReadFailure { client, why: why.to_string() }
    }
}

impl Updates for Spooled {
    fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }

    fn read(
        &self,
        index: usize,
        part: UpdatePart<'_>,
        range: Range<usize>,
        out: &mut [f32],
    ) -> Result<(), ReadFailure> {
        if let Some(values) = self.here(index, part) {
            let values = values.get(range).ok_or_else(|| self.failure(index, "it is too short"))?;
            out.copy_from_slice(values);
            return Ok(());
        }
        match self.place(index, part) {
            Some((place, len)) if range.end <= len => {
                let mut storage = self.storage.lock().unwrap_or_else(PoisonError::into_inner);
                let read = storage.read(place + 4 * range.start as u64, out);
                read.map_err(|error| self.failure(index, error))
            }
            _ => Err(self.failure(index, "it is too short")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedtvd_core::model::Layout;
    use fedtvd_core::round::{ClientFailure, Report};
    use std::sync::Arc;

    fn upload(client: ClientId) -> Upload {
        let values: Vec<f32> = (0..100_000).map(|i| (i as f32).sin() + client as f32).collect();
        let mut carried = Memory::default();
        carried.put("control", values.iter().map(|x| -x).collect::<Vec<f32>>());
        let params = Params { layout: Arc::new(Layout::vector(values.len())), values };
        let report = Report { round: 0, steps: 1, reach: 0.1, losses: [1.0; 2], remembers: true, branch: 0 };
        Upload { client, params, carried, report }
    }

    #[test]
    fn values_are_read_back_from_memory_and_from_the_file() {
        // One update of 800,000 bytes fits; the others go to the file.
        let spool = Spool::new(1_000_000);
        let answers = [3, 1, 2].map(|client| {
            let mut upload = upload(client);
            let kept = spool.keep(&mut upload);
            // The spool stores values whatever the outcome is.
            (Outcome { client, answer: Err(ClientFailure::Absent) }, Some(kept))
        });
        assert!(
            matches!(answers[0].1, Some(Kept::InMemory(..))) && matches!(answers[2].1, Some(Kept::OnDisk(_)))
        );
        let updates = spool.close(answers.into());
        for (index, client) in [1, 2, 3].into_iter().enumerate() {
            assert_eq!(updates.outcomes()[index].client, client);
            let expected = upload(client);
            for (part, values) in [
                (UpdatePart::Model, expected.params.values.as_slice()),
                (UpdatePart::Carried("control"), expected.carried.f32("control").unwrap()),
            ] {
                let mut out = vec![0.0; 70_000];
                updates.read(index, part, 20_000..90_000, &mut out).unwrap();
                assert_eq!(out, values[20_000..90_000]);
                assert!(updates.read(index, part, 99_999..100_001, &mut out[..2]).is_err());
            }
            assert!(updates.read(index, UpdatePart::Carried("nothing"), 0..1, &mut [0.0]).is_err());
        }
    }
}
