//! Progress of a comparison: bars on a terminal, plain lines otherwise.

use crate::commands::run::duration;
use crate::request::{eprint_line, per_cent, plural};
use crate::terminal::trouble::FirstAlarms;
use fedtvd_core::train::Local;
use fedtvd_lab::experiments::comparison::Comparison;
use fedtvd_lab::experiments::grid::Cell;
use fedtvd_lab::experiments::sweep::{Event, RunStatus};
use fedtvd_run::directory::images;
use indicatif::{HumanCount, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::BTreeSet;
use std::io::IsTerminal as _;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// One bar per strategy.
pub(crate) struct ComparisonProgress {
    bars: Vec<ProgressBar>,
    /// The runs.
    names: Vec<String>,
    summary: ProgressBar,
    counts: Mutex<Counts>,
    /// Rounds of each run.
    rounds: u64,
    local: Local,
    seeds: usize,
    /// Whether to print lines instead of bars.
    plain: bool,
    quiet: bool,
    started: Instant,
}

struct Counts {
    /// Runs that were not finished before.
    begun: BTreeSet<usize>,
    /// Finished runs of each strategy.
    done: Vec<usize>,
    /// Rounds and samples trained by this process.
    rounds: u64,
    images: u64,
    /// Remaining rounds.
    left: u64,
    alarms: FirstAlarms,
}

impl ComparisonProgress {
    /// Starts the display; `quiet` shows nothing.
    pub(crate) fn new(comparison: &Comparison, quiet: bool) -> Self {
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let board = MultiProgress::with_draw_target(target);
        let width = comparison.labels().iter().map(String::len).max().unwrap_or(0).min(1000);
        let style = ProgressStyle::with_template("{prefix} {bar:20} {msg}").expect("the template is valid");
        let style = style.progress_chars("█▌░");
        let (rounds, seeds) = (u64::from(comparison.rounds()), comparison.seeds());
        let bar = |label: &String| {
            let bar = board.add(ProgressBar::new(rounds * seeds as u64).with_style(style.clone()));
            bar.set_prefix(format!("{label:width$}"));
            bar.tick();
            bar
        };
        let bars: Vec<ProgressBar> = comparison.labels().iter().map(bar).collect();
        let plain = ProgressStyle::with_template("{msg}").expect("the template is valid");
        let name =
            |cell: &Cell| format!("{} seed {}", cell.experiment.run.strategy.label, cell.experiment.seed);
        Self {
            names: comparison.cells().iter().map(name).collect(),
            summary: board.add(ProgressBar::new(1).with_style(plain)),
            counts: Mutex::new(Counts {
                begun: BTreeSet::new(),
                done: vec![0; bars.len()],
                rounds: 0,
                images: 0,
                left: rounds * comparison.cells().len() as u64,
                alarms: FirstAlarms::default(),
            }),
            rounds,
            local: comparison.cells().first().map_or_else(Local::default, |cell| cell.experiment.run.local),
            seeds,
            plain: !quiet && !std::io::stderr().is_terminal(),
            quiet,
            bars,
            started: Instant::now(),
        }
    }

    /// Shows the progress of the run with this index.
    pub(crate) fn show(&self, place: usize, event: &Event<'_>) {
        let strategy = place % self.bars.len();
        let bar = &self.bars[strategy];
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Begins(round, notes) => {
                counts.begun.insert(place);
                for note in notes.iter().filter(|_| *round > 0) {
                    self.bars[0].suspend(|| eprint_line(format_args!("{}: {note}", bar.prefix())));
                }
                bar.inc((*round).into());
                counts.left -= u64::from(*round);
            }
            Event::Round(line) => {
                if let Some(alarm) = counts.alarms.first(place, line) {
                    self.print(&format!("{}: {alarm}", self.names[place]));
                }
                bar.inc(1);
                counts.left -= 1;
                counts.rounds += 1;
                counts.images += images(line, &self.local);
                let seconds = self.started.elapsed().as_secs_f64();
                let speed = HumanCount((counts.images as f64 / seconds) as u64);
                self.summary.set_message(format!("{} left · {speed} samples/s", self.left(&counts)));
                let done = counts.done[strategy];
                bar.set_message(format!("{done}/{}  {}", self.seeds, per_cent(line.accuracy, 1)));
            }
            Event::Ends(RunStatus::Done(summary)) => {
                if !counts.begun.contains(&place) {
                    bar.inc(self.rounds);
                    counts.left -= self.rounds;
                }
                counts.done[strategy] += 1;
                let (done, accuracy) = (counts.done[strategy], per_cent(summary.accuracy, 1));
                if let Some(why) = &summary.collapsed {
                    self.print(&format!("{}: collapsed: {why}", self.names[place]));
                }
                bar.set_message(format!("{done}/{}  {accuracy}", self.seeds));
                if self.plain {
                    let (label, left) = (bar.prefix(), self.left(&counts));
                    let seeds = plural(self.seeds, "seed");
                    eprint_line(format_args!("{label}  {done}/{seeds}  {accuracy}  {left} left"));
                }
            }
            Event::Ends(_) => {}
        }
    }

    /// Prints a line above the bars, unless quiet.
    fn print(&self, line: &str) {
        if !self.quiet {
            self.bars[0].suspend(|| eprint_line(line));
        }
    }

    /// Estimated time of the remaining rounds.
    fn left(&self, counts: &Counts) -> String {
        let each = self.started.elapsed().as_secs_f64() / counts.rounds.max(1) as f64;
        duration(each * counts.left as f64)
    }

    /// Leaves the bars as they are and clears the line below them.
    pub(crate) fn finish(&self) {
        self.bars.iter().for_each(ProgressBar::abandon);
        self.summary.finish_and_clear();
    }
}
