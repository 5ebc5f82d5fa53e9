//! Live progress: bars on a terminal, plain lines elsewhere.

use crate::commands::run::duration;
use crate::request::{per_cent, tell};
use fedtvd_core::train::Local;
use fedtvd_lab::experiments::comparison::Comparison;
use fedtvd_lab::experiments::sweep::{Event, Standing};
use fedtvd_run::directory::images;
use indicatif::{HumanCount, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::BTreeSet;
use std::io::IsTerminal as _;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// One bar per strategy.
pub(crate) struct ComparisonProgress {
    bars: Vec<ProgressBar>,
    summary: ProgressBar,
    counts: Mutex<Counts>,
    /// Rounds of each run, and how its clients train.
    rounds: u64,
    local: Local,
    seeds: usize,
    /// Whether lines take the place of bars.
    plain: bool,
    started: Instant,
}

struct Counts {
    /// Runs that were not done before.
    begun: BTreeSet<usize>,
    /// Runs that are done, by strategy.
    done: Vec<usize>,
    /// Rounds and samples of this process.
    rounds: u64,
    images: u64,
    /// Rounds that are not done yet.
    left: u64,
}

impl ComparisonProgress {
    /// ComparisonProgress for a comparison; `quiet` shows none.
    pub(crate) fn new(comparison: &Comparison, quiet: bool) -> Self {
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let board = MultiProgress::with_draw_target(target);
        let width = comparison.labels().iter().map(String::len).max().unwrap_or(0);
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
        Self {
            summary: board.add(ProgressBar::new(1).with_style(plain)),
            counts: Mutex::new(Counts {
                begun: BTreeSet::new(),
                done: vec![0; bars.len()],
                rounds: 0,
                images: 0,
                left: rounds * comparison.cells().len() as u64,
            }),
            rounds,
            local: comparison.cells().first().map_or_else(Local::default, |cell| cell.experiment.run.local),
            seeds,
            plain: !quiet && !std::io::stderr().is_terminal(),
            bars,
            started: Instant::now(),
        }
    }

    /// Shows what happened to the run at a place.
    pub(crate) fn show(&self, place: usize, event: &Event<'_>) {
        let strategy = place % self.bars.len();
        let bar = &self.bars[strategy];
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Begins(round, _) => {
                counts.begun.insert(place);
                bar.inc((*round).into());
                counts.left -= u64::from(*round);
            }
            Event::Round(line) => {
                bar.inc(1);
                counts.left -= 1;
                counts.rounds += 1;
                counts.images += images(line, &self.local);
                let seconds = self.started.elapsed().as_secs_f64();
                let speed = HumanCount((counts.images as f64 / seconds) as u64);
                self.summary.set_message(format!("{} left · {speed} images/s", self.left(&counts)));
                let done = counts.done[strategy];
                bar.set_message(format!("{done}/{}  {}", self.seeds, per_cent(line.accuracy, 1)));
            }
            Event::Ends(Standing::Done(summary)) => {
                if !counts.begun.contains(&place) {
                    bar.inc(self.rounds);
                    counts.left -= self.rounds;
                }
                counts.done[strategy] += 1;
                let (done, accuracy) = (counts.done[strategy], per_cent(summary.accuracy, 1));
                bar.set_message(format!("{done}/{}  {accuracy}", self.seeds));
                if self.plain {
                    let (label, left) = (bar.prefix(), self.left(&counts));
                    tell(format_args!("{label}  {done}/{} seeds  {accuracy}  {left} left", self.seeds));
                }
            }
            Event::Ends(_) => {}
        }
    }

    /// How long the rounds that are left take at the pace of those that were done.
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
