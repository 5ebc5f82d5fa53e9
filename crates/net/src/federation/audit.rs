//! The audit log of a federation: one JSON object per line, each with the hash of the line before it.
//!
//! ```text
//! {"number":7,"time":"2030-01-01T12:00:00.000Z", ...,"previous":"HASH of line 6","hash":"HASH"}
//! ```
//!
//! `hash` is the SHA-256 of the line's text before `,"hash":`. A changed, removed, inserted or moved line breaks the chain;
//! `audit_check.rs` finds it. Whoever can write the file can also compute a new chain, and can cut off its end: only a
//! hash that is kept elsewhere shows that.

use crate::federation::Event;
use fedtvd_run::directory::files::private;
use fedtvd_run::directory::{disk, sha256};
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use time::OffsetDateTime;

/// The `previous` of the first line.
pub(crate) const FIRST: &str = "0000000000000000000000000000000000000000000000000000000000000000";
/// What separates a line's content from its hash.
pub(crate) const HASH: &str = ",\"hash\":\"";

/// Appends events to an audit log.
pub struct Audit {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    chain: Option<Chain>,
    /// Events that could not be written since the last one that was.
    lost: u64,
}

/// The open file and its last line.
struct Chain {
    file: File,
    path: PathBuf,
    length: u64,
    number: u64,
    hash: String,
    /// Whether a part of a line that could not be written may follow the last line.
    torn: bool,
}

impl Audit {
    /// The audit log of the federation in this folder; it is opened with the first event, when the server has the folder's
    /// lock.
    pub fn new(folder: &Path) -> Self {
        Self { path: folder.join("audit.jsonl"), state: Mutex::default() }
    }

    /// Records an event, unless it only says that nothing happens.
    pub fn event(&self, event: &Event) {
        if !matches!(event, Event::Waiting { .. }) {
            self.record(serde_json::to_value(event).unwrap_or_default(), lasting(event));
        }
    }

    /// Records the model after a round.
    pub fn model(&self, round: u32, hash: &str, unchanged: Option<&str>) {
        self.record(
            json!({ "event": "model", "round": round, "model_hash": hash, "unchanged": unchanged }),
            true,
        );
    }

    /// Appends a line; `durable` lines survive a crash of the machine. A full disk does not end the federation: the next line
    /// says how many are missing.
    fn record(&self, content: Value, durable: bool) {
        let Value::Object(mut content) = content else { return };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.chain.is_none() {
            state.chain = Chain::open(&self.path).ok();
        }
        if state.lost > 0 {
            content.insert("lost".to_owned(), state.lost.into());
        }
        let written = state.chain.as_mut().is_some_and(|chain| chain.append(content, durable).is_ok());
        state.lost = if written { 0 } else { state.lost + 1 };
    }
}

/// Whether an event must survive a crash of the machine. Peers can cause the others at will.
fn lasting(event: &Event) -> bool {
    !matches!(
        event,
        Event::Handshake { .. }
            | Event::Refused { .. }
            | Event::Again { .. }
            | Event::Failed { .. }
            | Event::Full { .. }
    )
}

impl Chain {
    /// Opens a log at its end. A last line that a kill cut off is removed, and the next line records it.
    fn open(path: &Path) -> io::Result<Self> {
        let mut file = disk::open(private().create(true).read(true).append(true), path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let text = String::from_utf8_lossy(&bytes[..whole]);
        let last = text.lines().next_back();
        let hash = last.map_or_else(|| FIRST.to_owned(), last_hash);
        let (length, number) = (whole as u64, text.lines().count() as u64);
        let mut chain = Self { file, path: path.to_owned(), length, number, hash, torn: false };
        let torn = &bytes[whole..];
        if !torn.is_empty() {
            disk::truncate(&chain.file, path, length)?;
            let note =
                json!({ "event": "repaired", "removed_bytes": torn.len(), "removed_hash": sha256(torn) });
            let Value::Object(note) = note else { return Ok(chain) };
            chain.append(note, true)?;
        }
        Ok(chain)
    }

    fn append(&mut self, content: Map<String, Value>, durable: bool) -> io::Result<()> {
        let (number, now) = (self.number + 1, time(OffsetDateTime::now_utc()));
        let content = Value::Object(content).to_string();
        // The content is an object with at least the name of the event; its braces are those of the line.
        let content = &content[1..content.len() - 1];
        let before =
            format!("{{\"number\":{number},\"time\":\"{now}\",{content},\"previous\":\"{}\"", self.hash);
        let hash = sha256(before.as_bytes());
        let line = format!("{before}{HASH}{hash}\"}}\n");
        if self.torn {
            disk::truncate(&self.file, &self.path, self.length)?;
            self.torn = false;
        }
        let written = disk::write(&self.file, &self.path, line.as_bytes());
        let sync = || if durable { disk::sync_data(&self.file, &self.path) } else { Ok(()) };
        let written = written.and_then(|()| sync());
        if let Err(error) = written {
            // A full disk may have stored a part of the line.
            self.torn = disk::truncate(&self.file, &self.path, self.length).is_err();
            return Err(error);
        }
        self.length += line.len() as u64;
        (self.number, self.hash) = (number, hash);
        Ok(())
    }
}

/// The hash that a line states, or that of its text if it states none.
fn last_hash(line: &str) -> String {
    let stated = line.rsplit_once(HASH).and_then(|(_, hash)| hash.strip_suffix("\"}"));
    stated.map_or_else(|| sha256(line.as_bytes()), str::to_owned)
}

/// A time as text that sorts, with milliseconds.
fn time(now: OffsetDateTime) -> String {
    let (date, milliseconds) = (now.date(), now.millisecond());
    format!("{date}T{:02}:{:02}:{:02}.{milliseconds:03}Z", now.hour(), now.minute(), now.second())
}
