//! Progress of a single run: a bar on a terminal, plain lines otherwise, JSON lines on request.

use crate::commands::run::duration;
use crate::host::{Host, News, RoundNews, host};
use crate::request::{Failure, Output, eprint_line, mean_loss, per_cent};
use crate::terminal::trouble::{AboveBar, trouble};
use anyhow::Context;
use clap::{Args, ValueEnum};
use fedtvd_core::round::RoundRecord;
use fedtvd_run::runner::Runner;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Options for the progress of a run.
#[derive(Args)]
pub(crate) struct Watch {
    /// Write a line per round to stderr, in this format
    #[arg(long, value_enum)]
    log: Option<Log>,
}

/// The format of a log line.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Log {
    /// Plain text
    Text,
    /// The line of rounds.jsonl, and {"note": …} for notes
    Json,
}

/// Shows finished rounds.
pub(crate) enum Viewer {
    /// Nothing.
    Silent,
    /// A bar, the troubles above it, and the last accuracy that was measured.
    Bar(ProgressBar, AboveBar, String),
    /// A line of text per round.
    Text { rounds: u32, first: u32, started: Instant },
    /// One JSON line per round.
    Json,
    /// Data for the program that called.
    News(Arc<Host>, RoundNews),
}

impl Watch {
    /// Starts the display of a run.
    pub(crate) fn start(&self, runner: &Runner, output: Output) -> Viewer {
        runner.notes().iter().for_each(|note| self.warn(note));
        let (rounds, first) = (runner.experiment().rounds, runner.rounds_done());
        if let Some(host) = host() {
            let strategy = &runner.experiment().run.strategy.label;
            let name = format!("{strategy} seed {}", runner.experiment().seed);
            let begun = RoundNews { name, run: 0, runs: 1, round: first, rounds, accuracy: None };
            (host.tell)(News::Round(begun.clone()));
            return if output.quiet { Viewer::Silent } else { Viewer::News(host, begun) };
        }
        match self.log {
            Some(Log::Json) => Viewer::Json,
            _ if output.quiet => Viewer::Silent,
            None if std::io::stderr().is_terminal() => {
                let template = "{prefix} {bar:30} {pos}/{len}  {msg}";
                let style = ProgressStyle::with_template(template).expect("the template is valid");
                let bar = ProgressBar::new(rounds.into()).with_style(style.progress_chars("█▌░"));
                bar.set_prefix(runner.experiment().run.strategy.label.clone());
                bar.set_position(first.into());
                bar.reset_eta();
                Viewer::Bar(bar, AboveBar::default(), per_cent(None, 1))
            }
            None | Some(Log::Text) => Viewer::Text { rounds, first, started: Instant::now() },
        }
    }

    /// Prints a note, unless quiet.
    pub(crate) fn note(&self, output: Output, note: &str) {
        if !output.quiet {
            self.warn(note);
        }
    }

    /// Prints a note that must be seen, even if quiet.
    fn warn(&self, note: &str) {
        match self.log {
            Some(Log::Json) => eprint_line(json!({ "note": note })),
            _ => eprint_line(format_args!("note: {note}")),
        }
    }
}

impl Viewer {
    /// Shows a round.
    pub(crate) fn show(&mut self, line: &RoundRecord) {
        match self {
            Self::Silent => {}
            Self::News(host, run) => {
                let accuracy = main_accuracy(line);
                (host.tell)(News::Round(RoundNews { round: line.round, accuracy, ..run.clone() }));
                trouble(line).into_iter().for_each(|trouble| (host.tell)(News::Note(&trouble)));
            }
            Self::Json => eprint_line(serde_json::to_string(line).expect("a line is plain data")),
            Self::Bar(bar, troubles, shown) => {
                troubles.show(bar, line);
                bar.set_position(line.round.into());
                if let Some(accuracy) = main_accuracy(line) {
                    *shown = per_cent(Some(accuracy), 1);
                }
                bar.set_message(format!("{shown}  {} left", duration(bar.eta().as_secs_f64())));
            }
            Self::Text { rounds, first, started } => {
                let done = f64::from(line.round - *first);
                let left = started.elapsed().as_secs_f64() / done * f64::from(*rounds - line.round);
                eprint_line(format_args!(
                    "round {}/{rounds}  {}{:.2} s  {} left",
                    line.round,
                    measured(line),
                    line.seconds,
                    duration(left),
                ));
                trouble(line).into_iter().for_each(eprint_line);
            }
        }
    }

    /// Clears the bar.
    pub(crate) fn finish(&self) {
        if let Self::Bar(bar, ..) = self {
            bar.finish_and_clear();
        }
    }
}

/// The accuracy by which people follow a run: of the shared model, or of clients' own models where there is none.
pub(crate) fn main_accuracy(line: &RoundRecord) -> Option<f64> {
    let validation = line.validation.map(|found| found.accuracy);
    line.accuracy.or(validation).or(line.personal.map(|own| own.clients.mean))
}

/// What was measured in a round, on the test set, on the hold-outs and of clients' own models; empty if the model was not evaluated.
fn measured(line: &RoundRecord) -> String {
    let part = |name: &str, accuracy, loss| {
        format!("{name} {}  loss {}  ", per_cent(Some(accuracy), 2), mean_loss(loss))
    };
    let test = line.accuracy.map(|accuracy| part("accuracy", accuracy, line.loss));
    let validation = line.validation.map(|found| part("validation", found.accuracy, found.loss));
    let own = line.personal.map(|own| part("own models", own.clients.mean, own.loss));
    test.into_iter().chain(validation).chain(own).collect()
}

/// Set by Ctrl-C; a second Ctrl-C ends the program immediately.
pub(crate) fn stop_flag() -> Result<&'static AtomicBool, Failure> {
    if let Some(host) = host() {
        return Ok(host.stop);
    }
    static STOP: AtomicBool = AtomicBool::new(false);
    let handler = || {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(1);
        }
        eprint_line("\nfedtvd: stopping after this round; press Ctrl-C again to stop immediately");
    };
    ctrlc::set_handler(handler).context("listening for Ctrl-C").map_err(Failure::Work)?;
    Ok(&STOP)
}
