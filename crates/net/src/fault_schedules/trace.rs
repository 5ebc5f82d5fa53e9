//! What happens in a schedule, one line each, for people who look for the reason of a failure.

use crate::fault_schedules::clock;
use std::cell::Cell;

thread_local! {
    static SHOWN: Cell<bool> = const { Cell::new(false) };
}

/// From now on, lines are shown on this thread.
pub(super) fn show() {
    SHOWN.set(true);
}

/// Shows a line, if lines are shown.
pub(super) fn trace(line: impl FnOnce() -> String) {
    if SHOWN.get() {
        eprintln!("{:>5} s  {}", clock::now().as_secs(), line());
    }
}
