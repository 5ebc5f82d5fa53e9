//! Watching a run: a bar on a terminal, plain lines elsewhere, JSON lines on request.

use crate::commands::run::duration;
use crate::request::{Failure, Output, per_cent, tell};
use anyhow::Context;
use clap::{Args, ValueEnum};
use fedtvd_core::round::RoundRecord;
use fedtvd_run::runner::Runner;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// How a run is watched.
#[derive(Args)]
pub(crate) struct Watch {
    /// Write every round to stderr as a line of this form
    #[arg(long, value_enum)]
    log: Option<Log>,
}

/// The form of a log line.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Log {
    /// A sentence
    Text,
    /// The round's line of rounds.jsonl, and {"note": …} for what else there is to say
    Json,
}

/// Shows rounds as they end.
pub(crate) enum Viewer {
    /// Nothing.
    Silent,
    /// A bar.
    Bar(ProgressBar),
    /// One sentence per round.
    Text { rounds: u32, first: u32, started: Instant },
    /// One JSON line per round.
    Json,
}

impl Watch {
    /// Starts showing a run.
    pub(crate) fn start(&self, runner: &Runner, output: Output) -> Viewer {
        runner.notes().iter().for_each(|note| self.warn(note));
        let (rounds, first) = (runner.experiment().rounds, runner.rounds_done());
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
                Viewer::Bar(bar)
            }
            None | Some(Log::Text) => Viewer::Text { rounds, first, started: Instant::now() },
        }
    }

    /// Tells the user something once.
    pub(crate) fn note(&self, output: Output, note: &str) {
        if !output.quiet && self.log != Some(Log::Json) {
            tell(format_args!("note: {note}"));
        }
    }

    /// Tells the user something that not even a quiet run may hide.
    fn warn(&self, note: &str) {
        match self.log {
            Some(Log::Json) => tell(json!({ "note": note })),
            _ => tell(format_args!("note: {note}")),
        }
    }
}

impl Viewer {
    /// Shows a round.
    pub(crate) fn show(&mut self, line: &RoundRecord) {
        match self {
            Self::Silent => {}
            Self::Json => tell(serde_json::to_string(line).expect("a line is plain data")),
            Self::Bar(bar) => {
                bar.set_position(line.round.into());
                bar.set_message(format!(
                    "{}  {} left",
                    per_cent(line.accuracy, 1),
                    duration(bar.eta().as_secs_f64())
                ));
            }
            Self::Text { rounds, first, started } => {
                let done = f64::from(line.round - *first);
                let left = started.elapsed().as_secs_f64() / done * f64::from(*rounds - line.round);
                tell(format_args!(
                    "round {}/{rounds}  accuracy {}  loss {:.4}  {:.2} s  {} left",
                    line.round,
                    per_cent(line.accuracy, 2),
                    line.loss.unwrap_or_default(),
                    line.seconds,
                    duration(left),
                ));
            }
        }
    }

    /// Clears the bar.
    pub(crate) fn finish(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

/// Set by Ctrl-C; a second one ends the program at once.
pub(crate) fn stop_flag() -> Result<&'static AtomicBool, Failure> {
    static STOP: AtomicBool = AtomicBool::new(false);
    let handler = || {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(1);
        }
        tell("\nfedtvd: finishing this round; press Ctrl-C again to stop at once");
    };
    ctrlc::set_handler(handler).context("listening for Ctrl-C").map_err(Failure::Work)?;
    Ok(&STOP)
}
