//! Live progress: bars on a terminal, plain lines elsewhere.

use crate::request::{per_cent, tell};
use crate::run::duration;
use fedtvd_lab::comparison::{Comparison, Progress};
use indicatif::{HumanCount, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// One bar per strategy.
pub(crate) struct Bars {
    bars: Vec<ProgressBar>,
    summary: ProgressBar,
    images: AtomicU64,
    rounds: AtomicU64,
    /// Rounds of each strategy.
    places: Vec<AtomicU64>,
    total: u64,
    seeds: usize,
    /// Whether lines take the place of bars.
    plain: bool,
    started: Instant,
}

impl Bars {
    /// Bars for a comparison; `quiet` shows none.
    pub(crate) fn new(comparison: &Comparison, quiet: bool) -> Self {
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let board = MultiProgress::with_draw_target(target);
        let width = comparison.labels().iter().map(String::len).max().unwrap_or(0);
        let style = ProgressStyle::with_template("{prefix} {bar:20} {msg}").expect("the template is valid");
        let style = style.progress_chars("█▌░");
        let rounds = u64::from(comparison.rounds()) * comparison.seeds().len() as u64;
        let bar = |label: &String| {
            let bar = board.add(ProgressBar::new(rounds).with_style(style.clone()));
            bar.set_prefix(format!("{label:width$}"));
            bar.tick();
            bar
        };
        let bars: Vec<ProgressBar> = comparison.labels().iter().map(bar).collect();
        let plain = ProgressStyle::with_template("{msg}").expect("the template is valid");
        Self {
            summary: board.add(ProgressBar::new(1).with_style(plain)),
            images: AtomicU64::new(0),
            rounds: AtomicU64::new(0),
            places: bars.iter().map(|_| AtomicU64::new(0)).collect(),
            total: rounds * bars.len() as u64,
            seeds: comparison.seeds().len(),
            plain: !quiet && !std::io::stderr().is_terminal(),
            bars,
            started: Instant::now(),
        }
    }

    /// Shows that a round is done.
    pub(crate) fn show(&self, progress: Progress) {
        let bar = &self.bars[progress.strategy];
        let place = self.places[progress.strategy].fetch_add(1, Ordering::Relaxed) + 1;
        bar.set_position(place);
        let length = bar.length().unwrap_or(1).max(1) as usize;
        let seeds = |rounds: u64| rounds as usize * self.seeds / length;
        let done = seeds(place);
        bar.set_message(format!("{done}/{}  {}", self.seeds, per_cent(progress.accuracy, 1)));
        let images = self.images.fetch_add(progress.images, Ordering::Relaxed) + progress.images;
        let rounds = self.rounds.fetch_add(1, Ordering::Relaxed) + 1;
        let seconds = self.started.elapsed().as_secs_f64();
        let left = seconds / rounds as f64 * (self.total - rounds) as f64;
        let speed = HumanCount((images as f64 / seconds) as u64);
        self.summary.set_message(format!("{} left · {speed} images/s", duration(left)));
        if self.plain && done > seeds(place - 1) {
            let accuracy = per_cent(progress.accuracy, 1);
            tell(format_args!(
                "{}  {done}/{} seeds  {accuracy}  {} left",
                bar.prefix(),
                self.seeds,
                duration(left)
            ));
        }
    }

    /// Leaves the bars as they are and clears the line below them.
    pub(crate) fn finish(&self) {
        self.bars.iter().for_each(ProgressBar::abandon);
        self.summary.finish_and_clear();
    }
}
