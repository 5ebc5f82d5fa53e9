//! A program that calls subcommands instead of a person: it gets the JSON document, progress and notes as data, and stops the work
//! by a flag. The same subcommands with the same checks, files and sentences run for both.

use crate::request::Failure;
use crate::{Cli, answer};
use clap::Parser as _;
use fedtvd_lab::experiments::grid::Cell;
use fedtvd_lab::experiments::sweep::{Event, RunStatus};
use std::cell::RefCell;
use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The program that calls.
pub struct Host {
    /// Set by the program to stop after the current rounds.
    pub stop: &'static AtomicBool,
    /// Called with what happens, by any thread that works.
    pub tell: Tell,
}

/// A function that hears what happens.
pub type Tell = Box<dyn Fn(News<'_>) + Send + Sync>;

/// What happens during a call.
#[derive(Clone, Debug, PartialEq)]
pub enum News<'a> {
    /// A note for the user.
    Note(&'a str),
    /// A round is finished, or a run begins or resumes after it.
    Round(RoundNews),
}

/// How far a run is.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundNews {
    /// Strategy, seed and setting.
    pub name: String,
    /// Its number among the runs of the call, from 0.
    pub run: usize,
    /// Number of runs of the call.
    pub runs: usize,
    /// Finished rounds.
    pub round: u32,
    /// Rounds of the run.
    pub rounds: u32,
    /// The accuracy after the round, if it was measured.
    pub accuracy: Option<f64>,
}

/// What a call amounts to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Called {
    /// The JSON document; empty if there is none.
    pub document: String,
    /// Why it failed, if it did. A collapsed run has both.
    pub failure: Option<CallFailure>,
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallFailure {
    /// Whether the request was invalid, rather than the work failed.
    pub request: bool,
    /// The reason.
    pub why: String,
}

/// A call on the thread that made it.
struct Call {
    host: Arc<Host>,
    document: Vec<u8>,
}

thread_local! {
    static CALL: RefCell<Option<Call>> = const { RefCell::new(None) };
}

/// Runs a subcommand with `--json` for a program; the arguments are those after the program's name.
pub fn call(arguments: impl IntoIterator<Item = OsString>, host: Host) -> Called {
    let arguments =
        std::iter::once(OsString::from("fedtvd")).chain(arguments).chain([OsString::from("--json")]);
    CALL.set(Some(Call { host: Arc::new(host), document: Vec::new() }));
    let failure = match Cli::try_parse_from(arguments) {
        Err(wrong) => Some(CallFailure { request: true, why: wrong.to_string().trim_end().to_owned() }),
        Ok(cli) => match answer(&cli.command) {
            Ok(()) => None,
            Err(Failure::Request(error)) => Some(CallFailure { request: true, why: format!("{error:#}") }),
            Err(Failure::Work(error)) => Some(CallFailure { request: false, why: format!("{error:#}") }),
        },
    };
    let document = CALL.take().map_or_else(Vec::new, |call| call.document);
    Called { document: String::from_utf8_lossy(&document).into_owned(), failure }
}

/// The program that called on this thread, if one did.
pub(crate) fn host() -> Option<Arc<Host>> {
    CALL.with_borrow(|call| call.as_ref().map(|call| Arc::clone(&call.host)))
}

/// Keeps what would be printed on stdout, if a program called on this thread; returns whether it did.
pub(crate) fn keep(printed: &[u8]) -> bool {
    CALL.with_borrow_mut(|call| {
        let kept = call.as_mut().map(|call| call.document.extend_from_slice(printed));
        kept.is_some()
    })
}

/// Tells the progress of the runs of a grid.
pub(crate) struct GridNews {
    host: Option<Arc<Host>>,
    names: Vec<String>,
    rounds: Vec<u32>,
}

impl GridNews {
    /// News of these cells for the program that called on this thread, if one did.
    pub(crate) fn new(cells: &[&Cell]) -> Self {
        let name = |cell: &&Cell| {
            let setting = cell.setting.iter().map(|setting| format!(" · {setting}")).collect::<String>();
            format!("{} seed {}{setting}", cell.experiment.run.strategy.label, cell.experiment.seed)
        };
        let rounds = cells.iter().map(|cell| cell.experiment.rounds).collect();
        Self { host: host(), names: cells.iter().map(name).collect(), rounds }
    }

    /// Tells an event of the run with this index.
    pub(crate) fn tell(&self, run: usize, event: &Event<'_>) {
        let Some(host) = &self.host else { return };
        let (round, accuracy) = match event {
            Event::Begins(round, notes) => {
                notes.iter().for_each(|note| (host.tell)(News::Note(note)));
                (*round, None)
            }
            Event::Round(line) => (line.round, line.accuracy),
            Event::Ends(RunStatus::Done(summary)) => (self.rounds[run], summary.accuracy),
            Event::Ends(_) => return,
        };
        let (name, runs, rounds) = (self.names[run].clone(), self.names.len(), self.rounds[run]);
        (host.tell)(News::Round(RoundNews { name, run, runs, round, rounds, accuracy }));
    }
}
