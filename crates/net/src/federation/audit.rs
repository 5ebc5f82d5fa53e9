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
use crate::utc;
use fedtvd_run::directory::files::private;
use fedtvd_run::directory::{disk, sha256};
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use time::OffsetDateTime;

/// The `previous` of the first line.
pub(crate) const FIRST: &str = "0000000000000000000000000000000000000000000000000000000000000000";
/// Bytes that are read at a time from the end of a log.
const BLOCK: u64 = 64 << 10;
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
    /// Events that could not be written since the server started.
    lost_in_all: u64,
    /// Why the last event could not be written, if it could not.
    problem: Option<String>,
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
    /// The audit log of the federation in this folder, if it can be opened or does not exist yet. Nothing is written before
    /// the first event, when the server has the folder's lock.
    pub fn new(folder: &Path) -> io::Result<Self> {
        let path = folder.join("audit.jsonl");
        match private().read(true).append(true).open(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(named(&path, &error)),
            _ => {}
        }
        Ok(Self { path, state: Mutex::default() })
    }

    /// Fails if the log cannot be opened; the server has the folder's lock.
    pub fn open(&self) -> io::Result<()> {
        self.state().open(&self.path).map(|_| ()).map_err(|error| named(&self.path, &error))
    }

    /// Records an event, unless it only says that nothing happens. Returns what an operator should know: that the log
    /// cannot be written, or that it can be written again.
    pub fn event(&self, event: &Event) -> Option<String> {
        match event {
            // Whatever made the log fail may be mended while nothing else happens.
            Event::Waiting { .. } if self.state().lost > 0 => {
                self.record(json!({ "event": "note", "note": "the audit log can be written again" }), true)
            }
            Event::Waiting { .. } => None,
            event => self.record(serde_json::to_value(event).unwrap_or_default(), lasting(event)),
        }
    }

    /// Records the model after a round; returns the same as `event`.
    pub fn model(&self, round: u32, hash: &str, unchanged: Option<&str>) -> Option<String> {
        self.record(
            json!({ "event": "model", "round": round, "model_hash": hash, "unchanged": unchanged }),
            true,
        )
    }

    /// Why the last event could not be written, if it could not.
    pub fn problem(&self) -> Option<String> {
        self.state().problem.clone()
    }

    /// Number of events that could not be written since the server started.
    pub fn missing_events(&self) -> u64 {
        self.state().lost_in_all
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a line; `durable` lines survive a crash of the machine. A full disk does not end the federation: the next line
    /// says how many are missing.
    fn record(&self, content: Value, durable: bool) -> Option<String> {
        let Value::Object(mut content) = content else { return None };
        let mut state = self.state();
        if state.lost > 0 {
            content.insert("lost".to_owned(), state.lost.into());
        }
        let written = state.open(&self.path).and_then(|chain| chain.append(content, durable));
        let path = self.path.display();
        match written {
            Ok(()) => {
                let lost = std::mem::take(&mut state.lost);
                state
                    .problem
                    .take()
                    .map(|_| format!("{path} can be written again; {lost} events are missing"))
            }
            Err(error) => {
                (state.lost, state.lost_in_all) = (state.lost + 1, state.lost_in_all + 1);
                let first = state.problem.replace(error.to_string()).is_none();
                first.then(|| format!("{path} cannot be written, and events are missing in it: {error}"))
            }
        }
    }
}

/// An error with the file that it is about.
fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("opening the audit log {}: {error}", path.display()))
}

impl State {
    /// The open log.
    fn open(&mut self, path: &Path) -> io::Result<&mut Chain> {
        match &mut self.chain {
            Some(chain) => Ok(chain),
            none => Ok(none.insert(Chain::open(path)?)),
        }
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
            | Event::Suppressed { .. }
    )
}

impl Chain {
    /// Opens a log at its end. A last line that a kill cut off is removed, and the next line records it.
    fn open(path: &Path) -> io::Result<Self> {
        let file = disk::open(private().create(true).read(true).append(true), path)?;
        let end = file.metadata()?.len();
        let torn = last_line(&file, end)?;
        let length = end - torn.len() as u64;
        // Without the line feed at its end.
        let last = last_line(&file, length.saturating_sub(1))?;
        let last = (length > 0).then(|| String::from_utf8_lossy(&last));
        let hash = last.as_deref().map_or_else(|| FIRST.to_owned(), last_hash);
        let number = last.as_deref().map_or(0, last_number);
        let mut chain = Self { file, path: path.to_owned(), length, number, hash, torn: false };
        if !torn.is_empty() {
            disk::truncate(&chain.file, path, length)?;
            let note =
                json!({ "event": "repaired", "removed_bytes": torn.len(), "removed_hash": sha256(&torn) });
            let Value::Object(note) = note else { return Ok(chain) };
            chain.append(note, true)?;
        }
        Ok(chain)
    }

    fn append(&mut self, content: Map<String, Value>, durable: bool) -> io::Result<()> {
        let (number, now) = (self.number + 1, utc::milliseconds(OffsetDateTime::now_utc()));
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

/// The number that a line states; 0 if it states none, so that the next line does not follow it either.
fn last_number(line: &str) -> u64 {
    serde_json::from_str::<Value>(line).ok().and_then(|line| line["number"].as_u64()).unwrap_or(0)
}

/// What stands between `end` and the last line feed before it, read from the end: a log may be larger than the memory.
fn last_line(mut file: &File, end: u64) -> io::Result<Vec<u8>> {
    let (mut found, mut start) = (Vec::new(), end);
    while start > 0 {
        let length = start.min(BLOCK);
        start -= length;
        let mut block = vec![0; length as usize];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut block)?;
        let feed = block.iter().rposition(|byte| *byte == b'\n');
        let mut line = block.split_off(feed.map_or(0, |feed| feed + 1));
        line.append(&mut found);
        found = line;
        if feed.is_some() {
            break;
        }
    }
    Ok(found)
}
