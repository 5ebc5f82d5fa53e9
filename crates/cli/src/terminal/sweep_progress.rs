//! A sweep while it runs: on a terminal a bar with the time left and a line per run, elsewhere a line per finished run.

use crate::commands::run::duration;
use crate::request::per_cent;
use fedtvd_lab::experiments::grid::Cell;
use fedtvd_lab::experiments::sweep::{Event, Standing};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal as _;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The overview of some cells.
pub(crate) struct SweepProgress {
    names: Vec<String>,
    rounds: Vec<u64>,
    way: Way,
    counts: Mutex<Counts>,
}

enum Way {
    Silent,
    Lines,
    Bars { board: MultiProgress, all: ProgressBar, own: Mutex<BTreeMap<usize, ProgressBar>> },
}

struct Counts {
    /// Runs that were not done before.
    begun: BTreeSet<usize>,
    /// Runs that ended.
    ended: usize,
    /// Rounds that are behind us, whenever they were done.
    behind: u64,
    /// Rounds done since `started`.
    done: u64,
    started: Instant,
}

impl SweepProgress {
    /// Starts an overview; `quiet` shows nothing.
    pub(crate) fn new(cells: &[&Cell], quiet: bool) -> Self {
        let name = |cell: &&Cell| {
            let setting = cell.setting.iter().map(|setting| format!(" · {setting}")).collect::<String>();
            format!("{} seed {}{setting}", cell.experiment.run.strategy.label, cell.experiment.seed)
        };
        let rounds: Vec<u64> = cells.iter().map(|cell| u64::from(cell.experiment.rounds)).collect();
        let way = if quiet {
            Way::Silent
        } else if std::io::stderr().is_terminal() {
            let board = MultiProgress::new();
            let all = board.add(ProgressBar::new(rounds.iter().sum()).with_style(style("{bar:30} {msg}")));
            all.tick();
            Way::Bars { board, all, own: Mutex::default() }
        } else {
            Way::Lines
        };
        let counts = Counts { begun: BTreeSet::new(), ended: 0, behind: 0, done: 0, started: Instant::now() };
        Self { names: cells.iter().map(name).collect(), rounds, way, counts: Mutex::new(counts) }
    }

    /// Shows what happened to the cell at a place.
    pub(crate) fn show(&self, place: usize, event: Event<'_>) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Begins(round, notes) => {
                counts.begun.insert(place);
                counts.behind += u64::from(round);
                notes.iter().for_each(|note| self.say(&format!("{}: {note}", self.names[place])));
                self.bar(place, |bar| bar.set_position(round.into()));
            }
            Event::Round(line) => {
                counts.behind += 1;
                counts.done += 1;
                self.bar(place, |bar| {
                    bar.set_position(line.round.into());
                    bar.set_message(per_cent(line.accuracy, 1));
                });
                self.summarise(&counts);
            }
            Event::Ends(standing) => {
                counts.ended += 1;
                self.remove(place);
                if !counts.begun.contains(&place) && matches!(standing, Standing::Done(_)) {
                    counts.behind += self.rounds[place];
                }
                let end = match standing {
                    Standing::Done(summary) => per_cent(summary.last10_accuracy, 2),
                    Standing::Stopped(0) => "not begun".to_owned(),
                    Standing::Stopped(rounds) => format!("stopped after round {rounds}"),
                    Standing::Elsewhere => "another process is at it".to_owned(),
                    Standing::Failed(why) => format!("failed: {why}"),
                };
                // A sweep that is being stopped has no time left.
                let left = match standing {
                    Standing::Stopped(_) => String::new(),
                    _ => self.left(&counts),
                };
                let progress = format!("{}/{}", counts.ended, self.names.len());
                self.say(&format!("{progress}  {}  {end}{left}", self.names[place]));
                self.summarise(&counts);
            }
        }
    }

    /// Clears the bars.
    pub(crate) fn finish(&self) {
        if let Way::Bars { board, .. } = &self.way {
            // That a terminal has gone is no reason to fail.
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
        if let Way::Bars { all, .. } = &self.way {
            all.set_position(counts.behind);
            all.set_message(format!("{}/{} runs{}", counts.ended, self.names.len(), self.left(counts)));
        }
    }

    fn say(&self, sentence: &str) {
        match &self.way {
            Way::Silent => {}
            Way::Lines => eprintln!("{sentence}"),
            Way::Bars { board, .. } => drop(board.println(sentence)),
        }
    }

    fn bar(&self, place: usize, change: impl FnOnce(&ProgressBar)) {
        if let Way::Bars { board, own, .. } = &self.way {
            let mut own = own.lock().unwrap_or_else(PoisonError::into_inner);
            let bar = own.entry(place).or_insert_with(|| {
                let style = style("  {prefix}  {pos}/{len}  {msg}");
                // A bar that is changed before the board has it draws a line that nobody clears.
                let bar = board.add(ProgressBar::new(self.rounds[place]).with_style(style));
                bar.set_prefix(self.names[place].clone());
                bar
            });
            change(bar);
        }
    }

    /// Takes a run's line away.
    fn remove(&self, place: usize) {
        if let Way::Bars { board, own, .. } = &self.way
            && let Some(bar) = own.lock().unwrap_or_else(PoisonError::into_inner).remove(&place)
        {
            board.remove(&bar);
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is valid").progress_chars("█▌░")
}
