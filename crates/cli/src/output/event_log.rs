//! The server's log: events on stderr and, with a timestamp, in a file of the run directory.

use crate::request::eprint_line;
use clap::ValueEnum;
use fedtvd_net::federation::Event;
use fedtvd_run::directory::files::private;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// The format of a log line.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub(crate) enum Format {
    /// Plain text
    Text,
    /// One JSON object per line
    Json,
}

/// Writes events.
pub(crate) struct EventLog {
    path: PathBuf,
    file: Mutex<Option<File>>,
    format: Format,
    quiet: bool,
}

impl EventLog {
    /// A log in this file, which is created with the first event.
    pub(crate) fn new(path: PathBuf, format: Format, quiet: bool) -> Self {
        Self { path, file: Mutex::new(None), format, quiet }
    }

    /// Writes an event.
    pub(crate) fn write(&self, event: &Event) {
        self.write_unless(event, self.quiet);
    }

    /// Writes an event that an operator must see: to stderr, too, whatever was asked for.
    pub(crate) fn write_even_if_quiet(&self, event: &Event) {
        self.write_unless(event, false);
    }

    fn write_unless(&self, event: &Event, quiet: bool) {
        let time =
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64());
        let mut json = serde_json::to_value(event).unwrap_or_default();
        json["time"] = time.into();
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if file.is_none() {
            *file = private().create(true).append(true).open(&self.path).ok();
        }
        if let Some(file) = &mut *file {
            // A full disk must not end the federation because of its log.
            let _ = writeln!(file, "{json}");
        }
        drop(file);
        match self.format {
            _ if quiet => {}
            Format::Text => eprint_line(event),
            Format::Json => eprint_line(json),
        }
    }

    /// Opens the file again at the next event: a program that rotates logs may have renamed it.
    pub(crate) fn reopen(&self) {
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
