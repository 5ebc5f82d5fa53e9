//! The disk of a schedule: each change may fail before, after or in the middle of its effect, or be the last one of the
//! server's process or of its machine.

use crate::fault_schedules::journal::{Journal, undo};
use crate::fault_schedules::run::Outcome;
use crate::fault_schedules::trace::trace;
use crate::fault_schedules::world::{check_locked, interleave};
use fedtvd_core::stream::Stream;
use fedtvd_run::directory::disk::Change;
use fedtvd_run::directory::disk_faults::set_hook;
use std::cell::RefCell;
use std::fs;
use std::io;
use std::panic::resume_unwind;
use std::path::Path;
use std::rc::Rc;

thread_local! {
    static DISK: RefCell<Disk> = RefCell::new(Disk::default());
}

/// The end of the server's process.
pub(super) struct Crash;

#[derive(Default)]
struct Disk {
    chance: Option<Stream>,
    /// One change in this many has a fault; 0 for none.
    one_in: u64,
    /// Number of changes that fail from now on: a full disk.
    full: u64,
    /// After a crash, until the next server starts: nothing reaches the disk.
    dead: bool,
    journal: Journal,
    outcome: Outcome,
}

/// What happens to a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Before,
    Half,
    After,
}

/// Who notices it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    Error,
    Crash,
    PowerCut,
}

/// Puts the disk between this thread and its files.
pub(super) fn install(chance: Stream, one_in: u64) {
    DISK.set(Disk { chance: Some(chance), one_in, ..Disk::default() });
    set_hook(Some(Rc::new(|change, act| attempt(change, act))));
}

/// Takes it away; what it went through.
pub(super) fn uninstall() -> Outcome {
    set_hook(None);
    DISK.take().outcome
}

/// From now on nothing fails.
pub(super) fn calm() {
    DISK.with_borrow_mut(|disk| (disk.one_in, disk.full) = (0, 0));
}

/// Number of faults so far.
pub(super) fn faults() -> u64 {
    let Outcome { disk_errors, kills, power_cuts, .. } = DISK.with_borrow(|disk| disk.outcome);
    disk_errors + kills + power_cuts
}

/// Ends the server's process here; with a power cut, unsynced changes are lost.
pub(super) fn crash(power_cut: bool) {
    DISK.with_borrow_mut(|disk| {
        disk.dead = true;
        *(if power_cut { &mut disk.outcome.power_cuts } else { &mut disk.outcome.kills }) += 1;
        if power_cut {
            // Everything that was not synced, or only the newest of it.
            let unsynced = disk.journal.len() as u64;
            let kept = disk.chance.as_mut().map_or(0, |chance| chance.below(2) * chance.below(unsynced + 1));
            trace(|| format!("power cut: {} of {unsynced} unsynced changes are undone", unsynced - kept));
            disk.journal.cut(kept as usize);
        }
    });
    resume_unwind(Box::new(Crash));
}

/// A new server starts on what is left.
pub(super) fn revive() {
    DISK.with_borrow_mut(|disk| disk.dead = false);
}

fn attempt(change: Change<'_>, act: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
    if DISK.with_borrow(|disk| disk.dead) {
        return Err(io::Error::other("the server has crashed"));
    }
    let (of_audit, of_update) = (change.path().ends_with("audit.jsonl"), is_update(change));
    if of_update {
        check_locked();
    }
    // Requests are answered while the thread that drives the rounds works on its files. Whoever writes to the audit log holds
    // its lock.
    if !of_audit {
        interleave();
    }
    let fault = DISK.with_borrow_mut(|disk| disk.fault(if of_audit { 8 } else { 1 }));
    let mut act = |change: Change<'_>| {
        let undo = undo(change);
        let done = act();
        if done.is_ok() {
            DISK.with_borrow_mut(|disk| disk.journal.made(change, undo));
        }
        done
    };
    let Some((fault, effect)) = fault else { return act(change) };
    trace(|| format!("fault: {effect:?} {fault:?} {}", shown(change)));
    match fault {
        Fault::Before => {}
        Fault::Half => half(change),
        Fault::After => act(change)?,
    }
    match effect {
        Effect::Error => {
            DISK.with_borrow_mut(|disk| disk.outcome.disk_errors += 1);
            Err(io::ErrorKind::StorageFull.into())
        }
        Effect::Crash | Effect::PowerCut if std::thread::panicking() => Err(io::ErrorKind::Other.into()),
        Effect::Crash => {
            crash(false);
            Ok(())
        }
        Effect::PowerCut => {
            crash(true);
            Ok(())
        }
    }
}

impl Disk {
    /// The fault of the next change, if it has one: in the audit log, which has most changes, `less` often.
    fn fault(&mut self, less: u64) -> Option<(Fault, Effect)> {
        self.outcome.changes += 1;
        let chance = self.chance.as_mut()?;
        if self.full > 0 {
            self.full -= 1;
            return Some((if chance.below(3) == 0 { Fault::Half } else { Fault::Before }, Effect::Error));
        }
        if self.one_in == 0 || chance.below(less * self.one_in) > 0 {
            return None;
        }
        let fault = [Fault::Before, Fault::Half, Fault::After][chance.below(3) as usize];
        Some(match chance.below(10) {
            0 | 1 => {
                self.full = chance.below(8);
                (fault, Effect::Error)
            }
            2..=5 => (fault, Effect::Error),
            6 | 7 => (fault, Effect::Crash),
            _ => (fault, Effect::PowerCut),
        })
    }
}

/// Whether an update is renamed into place.
fn is_update(change: Change<'_>) -> bool {
    let name =
        |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("client-"));
    matches!(change, Change::Rename(_, to) if name(to))
}

/// A change without its bytes.
fn shown(change: Change<'_>) -> String {
    match change {
        Change::Write(path, bytes) => format!("Write({path:?}, {} bytes)", bytes.len()),
        other => format!("{other:?}"),
    }
}

/// Makes half of a change.
fn half(change: Change<'_>) {
    let undo = undo(change);
    let made = match change {
        Change::Write(path, bytes) => append(path, &bytes[..bytes.len() / 2]),
        Change::RemoveFolder(path) => remove_half(path),
        _ => return,
    };
    if made.is_ok() {
        DISK.with_borrow_mut(|disk| disk.journal.made(change, undo));
    }
}

fn append(path: &Path, bytes: &[u8]) -> io::Result<()> {
    io::Write::write_all(&mut fs::OpenOptions::new().append(true).open(path)?, bytes)
}

fn remove_half(folder: &Path) -> io::Result<()> {
    let mut entries: Vec<_> = fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    entries.truncate(entries.len().div_ceil(2));
    entries.iter().filter(|entry| entry.is_file()).try_for_each(fs::remove_file)
}
