//! Bugs that schedules found, each as the shortest story that shows it.

use crate::fault_schedules::client::Client;
use crate::fault_schedules::journal::{Journal, undo};
use crate::fault_schedules::plan::Plan;
use crate::federation::audit::Audit;
use crate::federation::clock::Clock;
use crate::federation::ledger::{Ledger, Opening};
use crate::federation::next_work::Todo;
use crate::federation::phase::Inner;
use crate::federation::start::prepare_with;
use crate::federation::{Coordinator, Event, Ready, Work, check_audit};
use crate::wire::work;
use fedtvd_core::labels::Reference;
use fedtvd_core::memory::Memory;
use fedtvd_core::model::{Layout, Params};
use fedtvd_core::round::State;
use fedtvd_data::set::Places;
use fedtvd_run::directory::disk::Change;
use fedtvd_run::directory::disk_faults::{Hook, set_hook};
use fedtvd_run::directory::files::make_folder;
use fedtvd_run::directory::{Checkpoints, Memories};
use fedtvd_run::runner::End;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

/// A disk that fails the changes of which this is true, before their effect, and knows what was not synced.
fn failing(fails: impl Fn(Change<'_>) -> bool + 'static) -> (Hook, Rc<RefCell<Journal>>) {
    let journal = Rc::new(RefCell::new(Journal::default()));
    let kept = Rc::clone(&journal);
    let hook: Hook = Rc::new(move |change, act| {
        if fails(change) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let undo = undo(change);
        act().inspect(|()| kept.borrow_mut().made(change, undo))
    });
    (hook, journal)
}

#[test]
fn an_audit_log_stays_unbroken_if_the_part_of_a_line_that_a_full_disk_stored_cannot_be_cut_off_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let audit = Audit::new(folder.path()).unwrap();
    let note = |note: &str| audit.event(&Event::Note { note: note.to_owned() });
    note("one");
    set_hook(Some(Rc::new(|change, act| match change {
        Change::Write(path, bytes) => {
            let mut file = fs::OpenOptions::new().append(true).open(path)?;
            io::Write::write_all(&mut file, &bytes[..bytes.len() / 2])?;
            Err(io::ErrorKind::StorageFull.into())
        }
        Change::Truncate(..) => Err(io::ErrorKind::StorageFull.into()),
        _ => act(),
    })));
    note("two");
    set_hook(None);
    note("three");
    let summary = check_audit(&folder.path().join("audit.jsonl"), None).unwrap();
    assert_eq!((summary.lines, summary.lost, summary.incomplete), (2, 1, false));
}

#[test]
fn a_folder_survives_a_power_cut_even_if_the_process_that_made_it_was_killed_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("runs/mine");
    let killed = Rc::new(Cell::new(true));
    let dead = Rc::clone(&killed);
    let (hook, journal) = failing(move |change| {
        dead.get() && matches!(change, Change::SyncFolder(path) if path.ends_with("runs"))
    });
    set_hook(Some(hook));
    assert!(make_folder(&run).is_err() && run.is_dir());
    killed.set(false);
    make_folder(&run).unwrap();
    set_hook(None);
    journal.borrow_mut().cut(0);
    assert!(run.is_dir());
}

#[test]
fn a_checkpoint_that_a_run_resumes_from_survives_a_power_cut_even_if_its_writer_was_killed_before_the_sync() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = folder.path().join("checkpoint");
    fs::create_dir(&checkpoints).unwrap();
    let layout = Arc::new(Layout::vector(3));
    let state = State {
        round: 1,
        params: Arc::new(Params::zeros(Arc::clone(&layout))),
        reference: Reference::uniform(2),
        roster: Vec::new(),
        own: Arc::default(),
        carried: Arc::default(),
        weighting: Memory::default(),
        server: Memory::default(),
        combining: Memory::default(),
        screening: Memory::default(),
        branches: Vec::new(),
        members: BTreeMap::new(),
        accepted: BTreeMap::new(),
    };
    let killed = Rc::new(Cell::new(true));
    let dead = Rc::clone(&killed);
    let (hook, journal) = failing(move |change| {
        let renamed = |folder: &Path| folder.join("round-000001").is_dir();
        dead.get() && matches!(change, Change::SyncFolder(path) if renamed(path))
    });
    set_hook(Some(hook));
    let saved = Checkpoints::new(checkpoints.clone(), 10).save(&state, &Memories::new());
    assert!(saved.is_err() && checkpoints.join("round-000001").is_dir());
    killed.set(false);
    let found = Checkpoints::new(checkpoints.clone(), 10).find(&layout, 1).unwrap();
    assert!(found.checkpoint.is_some());
    set_hook(None);
    journal.borrow_mut().cut(0);
    assert!(checkpoints.join("round-000001").is_dir());
}

#[test]
fn an_update_that_was_not_acknowledged_does_not_stay_beside_one_that_was_even_if_it_cannot_be_removed_at_once()
 {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(folder.path()).unwrap();
    ledger.begin(0, &Opening { roster: Vec::new(), reference: Reference::uniform(2) }).unwrap();
    let commit = |hash: &str| {
        fs::write(ledger.partial(0, 7, hash, 3), "abc").unwrap();
        ledger.commit(0, 7, hash, 3)
    };
    // A rename that is reported as failed after its effect, and a disk that stays full.
    set_hook(Some(Rc::new(|change, act| {
        if let Change::Rename(..) = change {
            act()?;
        }
        Err(io::ErrorKind::StorageFull.into())
    })));
    assert!(commit("first").is_err());
    set_hook(None);
    commit("second").unwrap();
    let exists = ["first", "second"].map(|hash| ledger.place(0, 7, hash).exists());
    assert_eq!(exists, [false, true]);
}

/// What others do while the server waits.
type Step = Box<dyn FnOnce(&Coordinator) + Send>;

/// A clock that carries out one step whenever the server's thread would wait, and then stops the server.
struct Script {
    steps: Mutex<VecDeque<Step>>,
    server: OnceLock<Weak<Coordinator>>,
    start: Instant,
}

impl Clock for Script {
    fn now(&self) -> Instant {
        self.start
    }

    fn wait<'a>(
        &self,
        lock: &'a Mutex<Inner>,
        inner: MutexGuard<'a, Inner>,
        _: Duration,
    ) -> MutexGuard<'a, Inner> {
        drop(inner);
        let step = self.steps.lock().unwrap().pop_front();
        let server = self.server.get().and_then(Weak::upgrade).unwrap();
        step.unwrap_or_else(|| Box::new(Coordinator::stop))(&server);
        lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notify(&self) {}
}

#[test]
fn a_server_that_collects_label_counts_waits_if_all_who_sent_theirs_are_revoked() {
    let folder = tempfile::tempdir().unwrap();
    let plan = Plan { clients: 2, roster: true, aggregated: true, half_of_the_clients: false, ..Plan::of(0) };
    let enrol = |id| -> Step {
        Box::new(move |server: &Coordinator| {
            let (client, run) = (Client::new(id), &server.terms.run_id);
            let Ok(Todo::Message(work::Item::Survey(survey))) = server.next_work(&client.member, run, false)
            else {
                panic!("a client is asked for its label counts first")
            };
            server.enrol(&client.member, &client.enrolment(run, &survey)).unwrap();
        })
    };
    let revoke: Step = Box::new(|server| server.allow(BTreeSet::new()));
    let steps = Mutex::new(VecDeque::from([enrol(0), revoke, enrol(1)]));
    let script = Arc::new(Script { steps, server: OnceLock::new(), start: Instant::now() });
    let (config, options, log) = (plan.config(folder.path()), plan.options(), Arc::new(|_: &Event| {}));
    let clock = Arc::clone(&script) as Arc<dyn Clock>;
    let out = folder.path().join("run");
    let ready = prepare_with(Some(&config), &Places::new(None), &out, options, log, clock);
    let Ready { coordinator, work: Work::Rounds(runner) } = ready.unwrap() else {
        panic!("there are rounds")
    };
    script.server.set(Arc::downgrade(&coordinator)).unwrap();
    let end = runner.run(&AtomicBool::new(false), &mut |_| {}).unwrap();
    assert!(matches!(end, End::Stopped(0)), "{end:?}");
}
