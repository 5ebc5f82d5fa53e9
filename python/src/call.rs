//! Subcommands as functions. The work runs on a thread of its own, while the thread that called passes on what happens and asks
//! Python for signals, so that Ctrl-C stops after the current round. The interpreter is free while Rust works.

use crate::rules;
use fedtvd_cli::{Called, Host, News};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// How long a signal may wait.
const PATIENCE: Duration = Duration::from_millis(50);
/// As much as a main thread has.
const STACK: usize = 8 << 20;

/// What happened, as Python gets it: `(None, note)`, or `((name, run, runs, round, rounds), accuracy)`.
enum Told {
    Note(String),
    Round(fedtvd_cli::RoundNews),
}

/// The whole command; returns the exit code.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    let arguments = std::iter::once(OsString::from("fedtvd")).chain(arguments);
    py.detach(|| fedtvd_cli::main(arguments))
}

/// What a call returns: its JSON document, and why it failed: whether the request was invalid, the sentence, and the exception that
/// a rule in Python raised.
type Answer = (String, Option<(bool, String, Option<Py<PyAny>>)>);

/// Runs a subcommand and returns its JSON document. `note` gets sentences, `progress` the name, number and count of runs, finished
/// rounds, rounds and accuracy. An exception of theirs, or of a signal handler, is raised after the work has stopped.
#[pyfunction]
pub(crate) fn call(
    py: Python<'_>,
    arguments: Vec<OsString>,
    note: Py<PyAny>,
    progress: Py<PyAny>,
) -> PyResult<Answer> {
    // The flag is read by whatever part of the program still works when this returns.
    let stop: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
    let (sender, news) = channel();
    let tell = move |told: News<'_>| {
        let told = match told {
            News::Note(note) => Told::Note(note.to_owned()),
            News::Round(round) => Told::Round(round),
        };
        // Nobody hears it after an exception of its listener.
        let _ = sender.send(told);
    };
    let host = Host { stop, tell: Box::new(tell) };
    let work = Builder::new().name("fedtvd".to_owned()).stack_size(STACK);
    let work = work.spawn(move || fedtvd_cli::call(arguments, host))?;
    let tell = |told| {
        Python::attach(|py| match told {
            Told::Note(text) => note.call1(py, (text,)),
            Told::Round(round) => progress
                .call1(py, (round.name, round.run, round.runs, round.round, round.rounds, round.accuracy)),
        })
        .map(drop)
    };
    let (called, interrupted) = py.detach(|| follow(work, news, stop, tell));
    let called =
        called.ok_or_else(|| PyRuntimeError::new_err("fedtvd stopped unexpectedly; this is a bug"))?;
    if let Some(error) = interrupted {
        let why = called.failure.map(|failure| failure.why).unwrap_or_default();
        if !why.is_empty() {
            error.value(py).call_method1("add_note", (why,)).ok();
        }
        return Err(error);
    }
    let failure = called.failure.map(|failure| {
        let cause = rules::raised(py, &failure.why);
        (failure.request, failure.why, cause)
    });
    Ok((called.document, failure))
}

/// Passes on what happens until the work ends; returns its result and the first exception on the way.
fn follow(
    work: JoinHandle<Called>,
    news: Receiver<Told>,
    stop: &AtomicBool,
    tell: impl Fn(Told) -> PyResult<()>,
) -> (Option<Called>, Option<PyErr>) {
    let mut interrupted = None;
    loop {
        let heard = match news.recv_timeout(PATIENCE) {
            Ok(told) if interrupted.is_none() => tell(told),
            Ok(_) | Err(RecvTimeoutError::Timeout) => Ok(()),
            Err(RecvTimeoutError::Disconnected) => break,
        };
        if let Err(error) = heard.and_then(|()| Python::attach(|py| py.check_signals())) {
            stop.store(true, Ordering::Relaxed);
            interrupted.get_or_insert(error);
        }
    }
    (work.join().ok(), interrupted)
}
