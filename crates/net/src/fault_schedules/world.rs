//! Everything around the server: its clients, the network between them, the operator. An operation is drawn from the
//! schedule's seed and carried out whenever the server's thread would wait, writes a file or logs an event.

use crate::fault_schedules::client::Client;
use crate::fault_schedules::clock;
use crate::fault_schedules::disk;
use crate::fault_schedules::network::Network;
use crate::fault_schedules::plan::{Plan, stream};
use crate::fault_schedules::truth::Truth;
use crate::federation::Coordinator;
use fedtvd_core::round::ClientId;
use fedtvd_core::stream::Stream;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Operations after which a schedule must have ended.
const MOST_OPERATIONS: u32 = 20_000;
/// How long the server keeps a request for work open.
pub(super) const POLL: Duration = crate::server::dispatch::POLL;

thread_local! {
    static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
    static SERVER: RefCell<Weak<Coordinator>> = const { RefCell::new(Weak::new()) };
}

/// Everything around the server.
pub(super) struct World {
    pub(super) plan: Plan,
    pub(super) chance: Stream,
    pub(super) clients: Vec<Client>,
    pub(super) network: Network,
    pub(super) server: Option<Arc<Coordinator>>,
    /// Clients with a valid certificate.
    pub(super) valid: BTreeSet<ClientId>,
    pub(super) truth: Truth,
    pub(super) operations: u32,
}

/// Starts a schedule on this thread.
pub(super) fn begin(plan: Plan) {
    let clients: Vec<Client> = (0..plan.clients).map(Client::new).collect();
    let world = World {
        chance: stream(plan.seed, 1),
        network: Network::default(),
        server: None,
        valid: (0..plan.clients).collect(),
        truth: Truth::default(),
        operations: 0,
        clients,
        plan,
    };
    clock::set(Duration::ZERO);
    WORLD.with_borrow_mut(|place| *place = Some(world));
}

/// Ends the schedule of this thread.
pub(super) fn end() -> Option<World> {
    WORLD.take()
}

/// Calls this with the world, outside of operations.
pub(super) fn with<T>(act: impl FnOnce(&mut World) -> T) -> T {
    WORLD.with_borrow_mut(|world| act(world.as_mut().expect("a schedule runs on this thread")))
}

/// Carries out one operation; the server's thread waits until this time at most.
pub(super) fn operate(limit: Option<Duration>) {
    with(|world| world.operate(limit));
}

/// Checks that an update is accepted under the coordinator's lock: otherwise its round could be closed meanwhile.
pub(super) fn check_locked() {
    WORLD.with(|place| {
        // Recovery works on files of updates too, before there are requests.
        let Err(_) = place.try_borrow_mut() else { return };
        SERVER.with_borrow(|server| {
            let server = server.upgrade().expect("a server answers requests");
            assert!(server.inner.try_lock().is_err(), "an update was accepted without the lock");
        });
    });
}

/// A server has started.
pub(super) fn serve(server: &Arc<Coordinator>) {
    SERVER.set(Arc::downgrade(server));
    with(|world| {
        world.announce_valid(server);
        world.server = Some(Arc::clone(server));
    });
}

/// Perhaps carries out an operation while the server's thread is busy; never during another operation.
pub(super) fn interleave() {
    WORLD.with(|place| {
        let Ok(mut place) = place.try_borrow_mut() else { return };
        let Some(world) = place.as_mut() else { return };
        if world.troubled() && world.chance.below(4) == 0 && !std::thread::panicking() {
            world.operate(None);
        }
    });
}

impl World {
    /// Whether faults still occur.
    pub(super) fn troubled(&self) -> bool {
        self.operations < self.plan.troubled
    }

    fn operate(&mut self, limit: Option<Duration>) {
        let Some(server) = self.server.clone() else { return };
        // Whoever holds the lock is in the middle of a statement; requests wait for it.
        if server.inner.try_lock().is_err() {
            return;
        }
        self.operations += 1;
        assert!(self.operations < MOST_OPERATIONS, "the schedule does not end");
        if self.operations == self.plan.troubled {
            self.calm_down(&server);
        }
        if !self.troubled() {
            self.orderly(&server, limit);
        } else if self.chance.below(self.plan.trouble) == 0 {
            self.trouble(&server, limit);
        } else {
            self.anything(&server);
        }
    }

    /// From now on everything works.
    fn calm_down(&mut self, server: &Coordinator) {
        disk::calm();
        self.clients.iter_mut().for_each(|client| client.down = false);
        self.valid = (0..self.plan.clients).collect();
        self.announce_valid(server);
    }

    /// Tells the server who has a valid certificate.
    fn announce_valid(&self, server: &Coordinator) {
        if self.plan.certificates {
            server.allow(self.valid.clone());
        }
    }

    fn random_client(&mut self) -> usize {
        self.chance.below(self.clients.len() as u64) as usize
    }

    /// One thing that happens in a federation without faults, in any order.
    fn anything(&mut self, server: &Arc<Coordinator>) {
        let busy = self.network.waiting() + self.network.receiving();
        if busy > 0 && self.chance.below(2) == 0 {
            match self.chance.below(busy as u64) as usize {
                upload if upload < self.network.receiving() => self.receive(server, upload, true),
                request => {
                    let request = request - self.network.receiving();
                    let request = self.network.take(request);
                    self.deliver(server, request, true);
                }
            }
            return;
        }
        let client = self.random_client();
        self.step(server, client);
    }

    /// Everything in order, as fast as possible; if there is nothing to do, time passes.
    fn orderly(&mut self, server: &Arc<Coordinator>, limit: Option<Duration>) {
        if self.network.receiving() > 0 {
            return self.receive(server, 0, false);
        }
        if self.network.waiting() > 0 {
            let request = self.network.take(0);
            return self.deliver(server, request, false);
        }
        for client in 0..self.clients.len() {
            // Its answer was lost.
            if self.clients[client].waits_for.is_some() {
                self.clients[client].disconnect();
            }
            if self.step(server, client) {
                return;
            }
        }
        let polls =
            self.clients.iter().filter_map(|client| Some(client.connection.as_ref()?.poll.as_ref()?.1));
        if let Some(next) = polls.chain(limit).min() {
            clock::set(next.max(clock::now()));
        }
    }

    /// One fault.
    fn trouble(&mut self, server: &Arc<Coordinator>, limit: Option<Duration>) {
        let client = self.random_client();
        match self.chance.below(20) {
            // A request is lost, or arrives twice.
            0..=2 if self.network.waiting() > 0 => {
                let request = self.chance.below(self.network.waiting() as u64) as usize;
                self.network.take(request);
            }
            3..=5 if self.network.waiting() > 0 => {
                let request = self.chance.below(self.network.waiting() as u64) as usize;
                self.network.duplicate(request);
            }
            // A connection breaks during an upload.
            6 | 7 if self.network.receiving() > 0 => {
                let upload = self.chance.below(self.network.receiving() as u64) as usize;
                self.network.break_off(upload);
            }
            // A client gives up waiting and connects again; its request may still arrive.
            8 | 9 => self.clients[client].disconnect(),
            10 | 11 => self.clients[client].restart(),
            12 => self.clients[client].down = true,
            13 => self.clients[client].down = false,
            // A client cannot train, perhaps after it could.
            14 => {
                let Client { unsent, sent, .. } = &self.clients[client];
                if let Some(round) = unsent.as_ref().or(sent.as_ref()).map(|update| update.round) {
                    self.network.fail(client, server.terms.run_id.clone(), round);
                }
            }
            15 if self.plan.certificates => {
                let id = client as ClientId;
                if !self.valid.remove(&id) {
                    self.valid.insert(id);
                }
                self.announce_valid(server);
            }
            16 => {
                let run = server.terms.run_id.clone();
                if let Some(update) = &self.clients[client].sent {
                    self.network.replay(client, run, update);
                }
            }
            // Time passes: a little, or until the thread that waits gives up.
            17 => {
                let seconds = Duration::from_secs(self.chance.below(30));
                clock::set(clock::now() + seconds);
            }
            18 => match (limit, self.chance.below(3)) {
                (Some(limit), 0) => clock::set(limit.max(clock::now())),
                (_, 1) => server.expire(),
                _ => {}
            },
            // The server is stopped, killed, or its machine loses power.
            19 => match self.chance.below(4) {
                0 => server.stop(),
                1 => disk::crash(true),
                _ => disk::crash(false),
            },
            _ => {}
        }
    }
}
