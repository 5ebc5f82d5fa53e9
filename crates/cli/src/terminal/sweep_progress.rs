//! Progress of a sweep: on a terminal, a bar with the remaining time and a line per run; otherwise a line per finished run.

use crate::commands::run::duration;
use crate::request::per_cent;
use crate::terminal::trouble::FirstAlarms;
use crate::terminal::watch::main_accuracy;
use fedtvd_lab::experiments::grid::Cell;
use fedtvd_lab::experiments::sweep::{Event, RunStatus};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal as _;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The progress display of a sweep.
pub(crate) struct SweepProgress {
    names: Vec<String>,
    rounds: Vec<u64>,
    mode: Mode,
    counts: Mutex<Counts>,
}

enum Mode {
    Silent,
    Lines,
    Bars { board: MultiProgress, all: ProgressBar, own: Mutex<BTreeMap<usize, ProgressBar>> },
}

struct Counts {
    /// Runs that were not finished before.
    begun: BTreeSet<usize>,
    /// Runs that ended.
    ended: usize,
    /// Finished rounds, including earlier ones.
    behind: u64,
    /// Rounds finished since `started`.
    done: u64,
    started: Instant,
    alarms: FirstAlarms,
}

impl SweepProgress {
    /// Starts the display; `quiet` shows nothing.
    pub(crate) fn new(cells: &[&Cell], quiet: bool) -> Self {
        let name = |cell: &&Cell| {
            let setting = cell.setting.iter().map(|setting| format!(" · {setting}")).collect::<String>();
            format!("{} seed {}{setting}", cell.experiment.run.strategy.label, cell.experiment.seed)
        };
        let rounds: Vec<u64> = cells.iter().map(|cell| u64::from(cell.experiment.rounds)).collect();
        let mode = if quiet {
            Mode::Silent
        } else if std::io::stderr().is_terminal() {
            let board = MultiProgress::new();
            let all = board.add(ProgressBar::new(rounds.iter().sum()).with_style(style("{bar:30} {msg}")));
            all.tick();
            Mode::Bars { board, all, own: Mutex::default() }
        } else {
            Mode::Lines
        };
        let counts = Counts {
            begun: BTreeSet::new(),
            ended: 0,
            behind: 0,
            done: 0,
            started: Instant::now(),
            alarms: FirstAlarms::default(),
        };
        Self { names: cells.iter().map(name).collect(), rounds, mode, counts: Mutex::new(counts) }
    }

    /// Shows the progress of the cell with this index.
    pub(crate) fn show(&self, place: usize, event: Event<'_>) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Begins(round, notes) => {
                counts.begun.insert(place);
                counts.behind += u64::from(round);
                notes.iter().for_each(|note| self.print(&format!("{}: {note}", self.names[place])));
                self.bar(place, |bar| bar.set_position(round.into()));
            }
            Event::Round(line) => {
                if let Some(alarm) = counts.alarms.first(place, line) {
                    self.print(&format!("{}: {alarm}", self.names[place]));
                }
                counts.behind += 1;
                counts.done += 1;
                self.bar(place, |bar| {
                    bar.set_position(line.round.into());
                    bar.set_message(per_cent(main_accuracy(line), 1));
                });
                self.summarise(&counts);
            }
            Event::Ends(status) => {
                counts.ended += 1;
                self.remove(place);
                if !counts.begun.contains(&place) && matches!(status, RunStatus::Done(_)) {
                    counts.behind += self.rounds[place];
                }
                let end = match status {
                    RunStatus::Done(summary) => {
                        let collapsed = summary.collapsed.as_ref().map(|why| format!("  collapsed: {why}"));
                        let own = summary.last10_personal;
                        let result = match (summary.last10_accuracy, summary.last10_validation) {
                            (None, Some(value)) => format!("validation {value:.4}"),
                            (None, None) if own.is_some() => String::new(),
                            (accuracy, _) => per_cent(accuracy, 2),
                        };
                        let own = own.map(|own| format!("  own models {}", per_cent(Some(own.mean), 2)));
                        result + &own.unwrap_or_default() + &collapsed.unwrap_or_default()
                    }
                    RunStatus::Stopped(0) => "not started".to_owned(),
                    RunStatus::Stopped(rounds) => format!("stopped after round {rounds}"),
                    RunStatus::Elsewhere => "running in another process".to_owned(),
                    RunStatus::Failed(why) => format!("failed: {why}"),
                };
                // A sweep that is being stopped shows no remaining time.
                let left = match status {
                    RunStatus::Stopped(_) => String::new(),
                    _ => self.left(&counts),
                };
                let progress = format!("{}/{}", counts.ended, self.names.len());
                self.print(&format!("{progress}  {}  {end}{left}", self.names[place]));
                self.summarise(&counts);
            }
        }
    }

    /// Clears the bars.
    pub(crate) fn finish(&self) {
        if let Mode::Bars { board, .. } = &self.mode {
            // A closed terminal must not end the sweep.
            let _ = board.clear();
        }
    }

    fn left(&self, counts: &Counts) -> String {
        let total: u64 = self.rounds.iter().sum();
        if counts.done == 0 || counts.behind >= total {
            return String::new();
        }
        let each = counts.started.elapsed().as_secs_f64() / counts.done as f64;
        format!("  {} left", duration(each * (total - counts.behind) as f64))
    }

    fn summarise(&self, counts: &Counts) {
        if let Mode::Bars { all, .. } = &self.mode {
            all.set_position(counts.behind);
            all.set_message(format!("{}/{} runs{}", counts.ended, self.names.len(), self.left(counts)));
        }
    }

    fn print(&self, line: &str) {
        match &self.mode {
            Mode::Silent => {}
            Mode::Lines => eprintln!("{line}"),
            Mode::Bars { board, .. } => drop(board.println(line)),
        }
    }

    fn bar(&self, place: usize, change: impl FnOnce(&ProgressBar)) {
        if let Mode::Bars { board, own, .. } = &self.mode {
            let mut own = own.lock().unwrap_or_else(PoisonError::into_inner);
            let bar = own.entry(place).or_insert_with(|| {
                let style = style("  {prefix}  {pos}/{len}  {msg}");
                // A bar that is changed before it is added draws a line that is never cleared.
                let bar = board.add(ProgressBar::new(self.rounds[place]).with_style(style));
                bar.set_prefix(self.names[place].clone());
                bar
            });
            change(bar);
        }
    }

    /// Removes a run's line.
    fn remove(&self, place: usize) {
        if let Mode::Bars { board, own, .. } = &self.mode
            && let Some(bar) = own.lock().unwrap_or_else(PoisonError::into_inner).remove(&place)
        {
            board.remove(&bar);
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is valid").progress_chars("█▌░")
}
