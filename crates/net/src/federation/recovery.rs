//! What a restarted server finds in the ledger: accepted updates are checked again, incomplete uploads can be continued.

use crate::federation::ledger::{Ledger, LedgerError, remove};
use crate::federation::partial::Partial;
use crate::federation::stored::StoredUpdate;
use fedtvd_core::bytes::UploadStream;
use fedtvd_core::round::ClientId;
use fedtvd_run::directory::disk;
use fedtvd_run::directory::files::{doing, sync};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;

/// What a restarted server finds of a round.
pub(crate) struct Recovered {
    /// Accepted updates.
    pub(crate) updates: BTreeMap<ClientId, StoredUpdate>,
    /// Incomplete uploads, which can be continued.
    pub(crate) partial: BTreeMap<ClientId, Partial>,
    /// What the operator should know.
    pub(crate) notes: Vec<String>,
}

impl Ledger {
    /// The updates of a round after a restart: accepted are those whose bytes match the hash in their name and pass the check
    /// again. Of a client without one, an incomplete upload is kept. Damaged files are removed, with a note.
    pub(crate) fn recover(
        &self,
        round: u32,
        check: &dyn Fn(ClientId, u64) -> Option<UploadStream>,
    ) -> Result<Recovered, LedgerError> {
        let folder = self.round(round);
        let (mut updates, mut partial, mut notes) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        for entry in fs::read_dir(&folder).map_err(doing("reading", &folder))? {
            let path = entry.map_err(doing("reading", &folder))?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let Some(rest) = name.strip_prefix("client-") else { continue };
            let Some(Name { client, hash, bytes }) = Name::of(rest) else {
                remove(&path)?;
                continue;
            };
            let length = fs::symlink_metadata(&path).map_err(doing("reading", &path))?.len();
            let Some(stream) = check(client, bytes.unwrap_or(length)) else { continue };
            let mut found = Partial::new(hash, bytes.unwrap_or(length), stream);
            found.read(&path).map_err(doing("reading", &path))?;
            if bytes.is_some() {
                match partial.entry(client) {
                    Entry::Vacant(place) if found.got <= found.bytes => _ = place.insert(found),
                    _ => remove(&path)?,
                }
                continue;
            }
            let Ok(update) = found.finish() else {
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
        partial.retain(|client, _| !updates.contains_key(client));
        // A process killed between rename and sync left renames that a crash of the machine could still undo.
        sync(&folder)?;
        Ok(Recovered { updates, partial, notes })
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

/// The name of an update's file, after "client-".
struct Name<'a> {
    client: ClientId,
    hash: &'a str,
    /// Announced length, if the upload is incomplete.
    bytes: Option<u64>,
}

impl<'a> Name<'a> {
    fn of(rest: &'a str) -> Option<Self> {
        let (client, rest) = rest.split_once('-')?;
        let (hash, bytes) = match rest.strip_suffix(".partial") {
            None => (rest, None),
            Some(partial) => {
                let (hash, bytes) = partial.split_once('-')?;
                (hash, Some(bytes.parse().ok()?))
            }
        };
        Some(Self { client: client.parse().ok()?, hash, bytes })
    }
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
            branch: 0,
            params: Arc::new(Params::zeros(Arc::new(Layout::vector(1)))),
            others: Vec::new(),
            carried: Arc::default(),
            own: Arc::default(),
        };
        Job { client, key: Key::of(1), accepted: None, matching: None, offer: Arc::new(offer) }
    }

    fn upload(client: ClientId, value: f32) -> Vec<u8> {
        let params = Params { layout: Arc::new(Layout::vector(1)), values: vec![value] };
        let report =
            Report { round: 3, steps: 1, reach: 0.01, losses: [1.0, 1.0], remembers: true, branch: 0 };
        Upload { client, params, carried: Memory::default(), report }.to_bytes()
    }

    fn recovered(ledger: &Ledger) -> (Vec<(ClientId, String, u64)>, Vec<String>) {
        let check = |client, bytes| Some(UploadStream::new(Needs::default(), 10, job(client), bytes));
        let Recovered { updates, notes, .. } = ledger.recover(3, &check).unwrap();
        (updates.into_iter().map(|(client, update)| (client, update.hash, update.bytes)).collect(), notes)
    }

    #[test]
    fn committed_updates_are_recovered_after_a_restart_and_incomplete_ones_of_other_clients_can_continue() {
        let (_folder, ledger) = opened();
        let bytes = upload(7, 1.0);
        let hash = keep(&ledger, 7, &bytes);
        let half = &upload(8, 1.0)[..20];
        fs::write(ledger.partial(3, 8, "eight", 100), half).unwrap();
        fs::write(ledger.partial(3, 8, "more", 10), half).unwrap();
        fs::write(ledger.partial(3, 7, "again", 100), half).unwrap();
        fs::write(ledger.round(3).join("client-nine.partial"), half).unwrap();
        let nine = keep(&ledger, 9, &upload(9, 1.0));
        fs::write(ledger.place(3, 9, &nine), upload(9, 2.0)).unwrap();
        // The right hash, but not an acceptable update.
        let ten = keep(&ledger, 10, &upload(10, f32::NAN));
        let (updates, notes) = recovered(&ledger);
        let check = |client, bytes| Some(UploadStream::new(Needs::default(), 10, job(client), bytes));
        let partial = ledger.recover(3, &check).unwrap().partial.into_iter();
        let incomplete: Vec<_> =
            partial.map(|(client, partial)| (client, partial.hash, partial.got)).collect();
        assert_eq!(updates, [(7, hash, bytes.len() as u64)]);
        assert_eq!(notes.len(), 2);
        assert!(!ledger.place(3, 10, &ten).exists());
        assert_eq!(incomplete, [(8, "eight".to_owned(), 20)]);
        assert!(!ledger.round(3).join("client-nine.partial").exists());
    }

    #[test]
    fn updates_of_clients_without_a_job_stay_and_later_rounds_are_discarded() {
        let (_folder, ledger) = opened();
        let hash = keep(&ledger, 7, &upload(7, 1.0));
        let Recovered { updates, notes, .. } = ledger.recover(3, &|_, _| None).unwrap();
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
