//! Many schedules, and one of them again.

use crate::fault_schedules::plan::Plan;
use crate::fault_schedules::run::{Outcome, run};
use crate::fault_schedules::trace;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// A folder in memory if there is one: schedules sync files all the time.
fn folder() -> tempfile::TempDir {
    let memory = tempfile::Builder::new().prefix("fedtvd-faults-").tempdir_in("/dev/shm");
    memory.or_else(|_| tempfile::tempdir()).unwrap()
}

/// A number from the environment.
fn number(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
}

/// Runs the schedules of these seeds on all cores. Panics with the seeds of those that fail.
fn run_all(first: u64, count: u64) -> Outcome {
    let (next, total, failed) =
        (AtomicU64::new(first), Mutex::new(Outcome::default()), Mutex::new(Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        return;
                    }
                    let folder = folder();
                    let ran = catch_unwind(AssertUnwindSafe(|| run(&Plan::of(seed), folder.path())));
                    match ran {
                        Ok(outcome) => {
                            let mut total = total.lock().unwrap();
                            *total = total.and(outcome);
                        }
                        Err(_) => {
                            eprintln!("failed: FEDTVD_FAULT_SEED={seed}");
                            failed.lock().unwrap().push(seed);
                        }
                    }
                }
            });
        }
    });
    let mut failed = failed.into_inner().unwrap();
    failed.sort_unstable();
    assert!(failed.is_empty(), "schedules of {} of {count} seeds failed: {failed:?}", failed.len());
    total.into_inner().unwrap()
}

#[test]
fn after_every_schedule_of_faults_the_model_is_the_vector_of_its_members_weights() {
    match number("FEDTVD_FAULT_SEED") {
        Some(seed) => {
            let folder = folder();
            let plan = Plan::of(seed);
            trace::show();
            eprintln!("{plan:?}");
            eprintln!("{:?}", run(&plan, folder.path()));
        }
        None => {
            let first = number("FEDTVD_FAULT_FIRST").unwrap_or(0);
            let count = number("FEDTVD_FAULT_COUNT").unwrap_or(500);
            let outcome = run_all(first, count);
            // For bench/fault_schedules.sh.
            println!("{}", serde_json::to_string(&outcome).unwrap());
        }
    }
}

#[test]
fn a_seed_replays_the_same_schedule() {
    for seed in 0..20 {
        let outcomes = [folder(), folder()].map(|folder| run(&Plan::of(seed), folder.path()));
        assert_eq!(outcomes[0], outcomes[1], "seed {seed}");
    }
}
