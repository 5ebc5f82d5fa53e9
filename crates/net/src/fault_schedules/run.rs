//! Runs one schedule: servers one after the other on the same directory, until all rounds are done and all clients know.

use crate::fault_schedules::clock::SimulatedClock;
use crate::fault_schedules::disk::{self, Crash};
use crate::fault_schedules::plan::{Plan, stream};
use crate::fault_schedules::trace::trace;
use crate::fault_schedules::world;
use crate::federation::audit::Audit;
use crate::federation::coordinator::Terms;
use crate::federation::start::prepare_with;
use crate::federation::{Event, FederationError, Log, Ready, Work, farewell};
use fedtvd_core::model::Params;
use fedtvd_core::round::{ClientId, RoundRecord};
use fedtvd_data::set::Places;
use fedtvd_run::configuration::Config;
use fedtvd_run::runner::End;
use serde::Serialize;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Servers after which a schedule must have ended.
const MOST_SERVERS: u32 = 200;

/// What schedules went through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Outcome {
    pub(super) schedules: u64,
    /// Operations of clients, network and operator.
    pub(super) operations: u64,
    /// Changes of the disk.
    pub(super) changes: u64,
    /// Changes of the disk that failed.
    pub(super) disk_errors: u64,
    /// Servers that were killed.
    pub(super) kills: u64,
    /// Servers whose machine lost power.
    pub(super) power_cuts: u64,
    /// Servers that were started.
    pub(super) servers: u64,
    /// Updates that were acknowledged.
    pub(super) acknowledged: u64,
    /// Updates that counted.
    pub(super) counted: u64,
}

impl Outcome {
    /// Both together.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            schedules: self.schedules + other.schedules,
            operations: self.operations + other.operations,
            changes: self.changes + other.changes,
            disk_errors: self.disk_errors + other.disk_errors,
            kills: self.kills + other.kills,
            power_cuts: self.power_cuts + other.power_cuts,
            servers: self.servers + other.servers,
            acknowledged: self.acknowledged + other.acknowledged,
            counted: self.counted + other.counted,
        }
    }
}

/// Runs the schedule of a seed. Panics if anything is not as it must be.
pub(super) fn run(plan: &Plan, folder: &Path) -> Outcome {
    let config = plan.config(folder);
    let out = folder.join("run");
    disk::install(stream(plan.seed, 2), plan.disk);
    world::begin(plan.clone());
    let mut servers = 0;
    let terms = loop {
        servers += 1;
        assert!(servers < MOST_SERVERS, "the server does not stay up");
        let before = disk::faults();
        disk::revive();
        let served = catch_unwind(AssertUnwindSafe(|| serve(plan, &config, &out)));
        let ended = catch_unwind(AssertUnwindSafe(|| {
            // Uploads that break off may remove their files, which may fail.
            drop(world::with(|world| {
                world.server = None;
                world.clients.iter_mut().for_each(|client| client.disconnect());
                world.network.server_ended()
            }));
        }));
        trace(|| match &served {
            Ok(Ok(done)) => format!("server {servers} ended, done: {}", done.is_some()),
            Ok(Err(error)) => format!("server {servers} failed: {error}"),
            Err(_) => format!("server {servers} crashed"),
        });
        match served {
            Ok(Ok(Some(terms))) => break terms,
            Ok(Ok(None)) => {}
            Ok(Err(error)) if disk::faults() == before => {
                panic!("server {servers} failed without a fault: {error}")
            }
            Ok(Err(_)) => {}
            Err(payload) if payload.is::<Crash>() => {}
            Err(payload) => resume_unwind(payload),
        }
        if let Err(payload) = ended
            && !payload.is::<Crash>()
        {
            resume_unwind(payload);
        }
    };
    let faults = disk::uninstall();
    let world = world::end().expect("a schedule runs on this thread");
    world.truth.check_run(plan, &out, &terms);
    for finished in world.clients.iter().filter_map(|client| client.finished.as_ref()) {
        assert_eq!(Some(finished.model_hash.as_str()), world.truth.last_model());
    }
    let (acknowledged, counted) = world.truth.totals();
    Outcome {
        schedules: 1,
        operations: world.operations.into(),
        servers: servers.into(),
        acknowledged,
        counted,
        ..faults
    }
}

/// One server, from its start until it stops, fails, or the federation is over: what it was about.
fn serve(plan: &Plan, config: &Config, out: &Path) -> Result<Option<Terms>, FederationError> {
    let audit = Audit::new(&out.join("federation"))
        .map(Arc::new)
        .expect("to look at a file is no change of the disk");
    let log: Log = {
        let audit = Arc::clone(&audit);
        Arc::new(move |event: &Event| {
            trace(|| format!("event: {event}"));
            audit.event(event);
            world::interleave();
        })
    };
    let clock = Arc::new(SimulatedClock::new());
    let places = Places::new(None);
    let Ready { coordinator, work } =
        prepare_with(Some(config), &places, out, plan.options(), Arc::clone(&log), clock)?;
    world::with(|world| {
        let initial = Params::initial(Arc::clone(&coordinator.terms.layout), plan.model_seed());
        world.truth.server_started(coordinator.ledger.lease, &initial);
    });
    world::serve(&coordinator);
    let summary = match work {
        Work::Farewell(summary) => summary,
        Work::Rounds(runner) => {
            let show = &mut |record: &RoundRecord| {
                let reference = coordinator.inner().enrolled.reference.clone();
                world::with(|world| world.truth.record(record, &reference));
                audit.model(record.round, &record.model_hash, record.unchanged.as_deref());
            };
            match runner.run(&AtomicBool::new(false), show).map_err(FederationError::from)? {
                End::Stopped(_) => return Ok(None),
                End::Done(summary) => summary,
            }
        }
    };
    farewell(&coordinator, out, &summary, Duration::from_secs(600))?;
    // Those who are revoked, down or slow need not hear of the end; after the troubles there are none. An answer may be lost, and
    // who heard of the end from a server before this one does not ask again.
    let inner = coordinator.inner();
    world::with(|world| {
        let told = |client: ClientId| {
            inner.informed.contains(&client) || world.clients[client as usize].finished.is_some()
        };
        let all = inner.enrolled.roster.iter().all(|profile| told(profile.client));
        assert!(all || world.troubled(), "the federation has ended, and not all clients were told");
    });
    drop(inner);
    Ok(Some(coordinator.terms.clone()))
}
