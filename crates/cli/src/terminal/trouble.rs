//! What a finished round says about alarms and failed updates, for people who watch a run.

use crate::request::eprint_line;
use fedtvd_core::round::RoundRecord;
use fedtvd_run::collapse::failed;
use indicatif::ProgressBar;
use std::collections::BTreeSet;

/// The round's alarm, or its failed updates if they are too few for one.
pub(crate) fn trouble(line: &RoundRecord) -> Option<String> {
    let alarm = line.alarm.as_ref().map(|alarm| format!("alarm: round {}: {alarm}", line.round));
    alarm.or_else(|| failed(line).map(|failed| format!("note: round {}: {failed}", line.round)))
}

/// More lines than this above a bar hide what was there before.
const MOST: usize = 10;

/// Prints troubles above a bar, the first ones of a run.
#[derive(Default)]
pub(crate) struct AboveBar {
    shown: usize,
}

impl AboveBar {
    /// Prints the trouble of this round, if there is any.
    pub(crate) fn show(&mut self, bar: &ProgressBar, line: &RoundRecord) {
        let Some(trouble) = trouble(line).filter(|_| self.shown < MOST) else { return };
        self.shown += 1;
        bar.suspend(|| eprint_line(trouble));
        if self.shown == MOST {
            bar.suspend(|| eprint_line("note: rounds.jsonl has all further alarms and failed updates"));
        }
    }
}

/// The first alarm of each run among several; all of them are in the runs' records.
#[derive(Default)]
pub(crate) struct FirstAlarms {
    seen: BTreeSet<usize>,
}

impl FirstAlarms {
    /// The alarm of this round, if it is the first one of the run with this index.
    pub(crate) fn first(&mut self, place: usize, line: &RoundRecord) -> Option<String> {
        line.alarm.as_ref().filter(|_| self.seen.insert(place))?;
        trouble(line)
    }
}
