//! What a restarted server finds in the ledger: accepted updates are checked again, everything else is removed.

use crate::federation::ledger::{Ledger, LedgerError, remove};
use crate::federation::stored::StoredUpdate;
use data_encoding::HEXLOWER;
use fedtvd_core::bytes::UploadStream;
use fedtvd_core::round::ClientId;
use fedtvd_run::directory::disk;
use fedtvd_run::directory::files::{doing, sync};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

impl Ledger {
    /// The accepted updates of a round after a restart: those whose bytes match the hash in their name and pass the
    /// check again. Incomplete and damaged files are removed, the latter with a note.
    pub(crate) fn recover(
        &self,
        round: u32,
        check: &dyn Fn(ClientId, u64) -> Option<UploadStream>,
    ) -> Result<(BTreeMap<ClientId, StoredUpdate>, Vec<String>), LedgerError> {
        let folder = self.round(round);
        let (mut updates, mut notes) = (BTreeMap::new(), Vec::new());
        for entry in fs::read_dir(&folder).map_err(doing("reading", &folder))? {
            let path = entry.map_err(doing("reading", &folder))?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let Some(rest) = name.strip_prefix("client-") else { continue };
            let place = rest.split_once('-').and_then(|(client, hash)| Some((client.parse().ok()?, hash)));
            let Some((client, hash)) =
                place.filter(|(client, hash)| path == self.place(round, *client, hash))
            else {
                remove(&path)?;
                continue;
            };
            let bytes = fs::symlink_metadata(&path).map_err(doing("reading", &path))?.len();
            let Some(stream) = check(client, bytes) else { continue };
            let update = read_update(&path, hash, bytes, stream).map_err(doing("reading", &path))?;
            let Some(update) = update else {
                remove(&path)?;
                notes.push(format!("{} is damaged; its client gets the job again", path.display()));
                continue;
            };
            if let Some(other) = updates.insert(client, update) {
                // It is unknown which of them was acknowledged; the same job gives the same bytes again.
                updates.remove(&client);
                for path in [self.place(round, client, &other.hash), path] {
                    remove(&path)?;
                }
                notes.push(format!("client {client} has two updates; it gets the job again"));
            }
        }
        // A process killed between rename and sync left renames that a crash of the machine could still undo.
        sync(&folder)?;
        Ok((updates, notes))
    }

    /// Removes rounds after this one: a damaged checkpoint made the run fall back, and their updates belong to a model
    /// that may not come again.
    pub(crate) fn discard_after(&self, last: u32) -> Result<(), LedgerError> {
        for (_, path) in self.rounds()?.into_iter().filter(|(round, _)| *round > last) {
            disk::remove_folder(&path).map_err(doing("removing", &path))?;
        }
        Ok(sync(&self.folder)?)
    }
}

/// The update in a file, if its bytes have this hash and pass the check; reads the file once.
fn read_update(
    path: &Path,
    expected: &str,
    bytes: u64,
    mut stream: UploadStream,
) -> std::io::Result<Option<StoredUpdate>> {
    let mut file = File::open(path)?;
    let (mut hash, mut block) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        let read = file.read(&mut block)?;
        if read == 0 {
            break;
        }
        hash.update(&block[..read]);
        stream.feed(&block[..read]);
    }
    let hash = HEXLOWER.encode(&hash.finalize());
    let update = stream.finish().ok().filter(|_| hash == expected);
    Ok(update.map(|(head, checked)| StoredUpdate { hash, bytes, head, checked }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::federation::ledger::tests::{keep, opened};
    use fedtvd_core::labels::Reference;
    use fedtvd_core::memory::Memory;
    use fedtvd_core::model::{Layout, Params};
    use fedtvd_core::round::{Job, Offer, Report, Upload};
    use fedtvd_core::rules::Needs;
    use fedtvd_core::stream::Key;
    use fedtvd_core::train::Local;
    use std::sync::Arc;

    fn job(client: ClientId) -> Job {
        let offer = Offer {
            round: 3,
            strategy: "fedavg".to_owned(),
            local: Local::default(),
            class_weights: Default::default(),
            reference: Reference::uniform(2),
            params: Arc::new(Params::zeros(Arc::new(Layout::vector(1)))),
            carried: Arc::default(),
        };
        Job { client, key: Key::of(1), accepted: None, offer: Arc::new(offer) }
    }

    fn upload(client: ClientId, value: f32) -> Vec<u8> {
        let params = Params { layout: Arc::new(Layout::vector(1)), values: vec![value] };
        let report = Report { round: 3, steps: 1, reach: 0.01, losses: [1.0, 1.0], remembers: true };
        Upload { client, params, carried: Memory::default(), report }.to_bytes()
    }

    fn recovered(ledger: &Ledger) -> (Vec<(ClientId, String, u64)>, Vec<String>) {
        let check = |client, bytes| Some(UploadStream::new(Needs::default(), 10, job(client), bytes));
        let (updates, notes) = ledger.recover(3, &check).unwrap();
        (updates.into_iter().map(|(client, update)| (client, update.hash, update.bytes)).collect(), notes)
    }

    #[test]
    fn only_committed_updates_are_recovered_after_a_restart() {
        let (_folder, ledger) = opened();
        let bytes = upload(7, 1.0);
        let hash = keep(&ledger, 7, &bytes);
        fs::write(ledger.partial(3, 8), b"half of ei").unwrap();
        let nine = keep(&ledger, 9, &upload(9, 1.0));
        fs::write(ledger.place(3, 9, &nine), upload(9, 2.0)).unwrap();
        // The right hash, but not an acceptable update.
        let ten = keep(&ledger, 10, &upload(10, f32::NAN));
        let (updates, notes) = recovered(&ledger);
        assert_eq!(updates, [(7, hash, bytes.len() as u64)]);
        assert_eq!(notes.len(), 2);
        assert!(!ledger.partial(3, 8).exists() && !ledger.place(3, 10, &ten).exists());
    }

    #[test]
    fn updates_of_clients_without_a_job_stay_and_later_rounds_are_discarded() {
        let (_folder, ledger) = opened();
        let hash = keep(&ledger, 7, &upload(7, 1.0));
        let (updates, notes) = ledger.recover(3, &|_, _| None).unwrap();
        assert!(updates.is_empty() && notes.is_empty() && ledger.place(3, 7, &hash).exists());
        ledger.discard_after(3).unwrap();
        assert!(ledger.place(3, 7, &hash).exists());
        ledger.discard_after(2).unwrap();
        assert!(ledger.opening(3).unwrap().is_none() && !ledger.place(3, 7, &hash).exists());
    }

    #[test]
    fn if_a_client_has_two_updates_neither_counts() {
        let (_folder, ledger) = opened();
        let [one, other] = [1.0, 2.0].map(|value| keep(&ledger, 7, &upload(7, value)));
        let bytes = upload(8, 1.0);
        let eight = keep(&ledger, 8, &bytes);
        let (updates, notes) = recovered(&ledger);
        assert_eq!(updates, [(8, eight, bytes.len() as u64)]);
        assert_eq!(notes, ["client 7 has two updates; it gets the job again"]);
        assert!(!ledger.place(3, 7, &one).exists() && !ledger.place(3, 7, &other).exists());
    }
}
