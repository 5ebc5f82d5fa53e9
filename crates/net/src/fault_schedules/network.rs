//! The network of a schedule: requests on their way, in no order, and uploads that are being received.

use crate::fault_schedules::client::{Client, Connection, Next, Unsent};
use crate::fault_schedules::clock;
use crate::fault_schedules::receiving::Receiving;
use crate::fault_schedules::request::{Content, Reply, Request};
use crate::fault_schedules::trace::trace;
use crate::fault_schedules::world::{POLL, World};
use crate::federation::Coordinator;
use crate::federation::admission::Admission;
use crate::federation::next_work::Todo;
use crate::server::refusal::Refusal;
use crate::wire::{self, work};
use fedtvd_core::round::{ClientId, Job, enrolment};
use fedtvd_run::directory::sha256;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Requests on their way and uploads that are being received.
#[derive(Default)]
pub(super) struct Network {
    requests: Vec<Request>,
    uploads: Vec<Receiving>,
    /// Connections on which a client has enrolled.
    surveyed: BTreeSet<u64>,
    next: u64,
}

impl Network {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Number of requests on their way.
    pub(super) fn waiting(&self) -> usize {
        self.requests.len()
    }

    /// Number of uploads that are being received.
    pub(super) fn receiving(&self) -> usize {
        self.uploads.len()
    }

    /// Takes a request off the network.
    pub(super) fn take(&mut self, request: usize) -> Request {
        self.requests.remove(request)
    }

    /// Another copy of a request is on its way.
    pub(super) fn duplicate(&mut self, request: usize) {
        let copy = self.requests[request].clone();
        self.requests.push(copy);
    }

    /// The connection of an upload breaks.
    pub(super) fn break_off(&mut self, upload: usize) {
        drop(self.uploads.remove(upload));
    }

    /// A client sends the bytes of an earlier round as its update of the next one.
    pub(super) fn replay(&mut self, client: usize, run: String, update: &Unsent) {
        let number = self.number();
        let content = Content::Upload(Unsent { round: update.round + 1, ..update.clone() });
        self.requests.push(Request { number, client, connection: 0, run, content });
    }

    /// A client says that it has no update in a round.
    pub(super) fn fail(&mut self, client: usize, run: String, round: u32) {
        let number = self.number();
        self.requests.push(Request { number, client, connection: 0, run, content: Content::Fail(round) });
    }

    /// All connections break: the server has ended. Requests may have been sent again, and arrive at the next one.
    pub(super) fn server_ended(&mut self) -> Vec<Receiving> {
        self.surveyed.clear();
        std::mem::take(&mut self.uploads)
    }
}

impl World {
    /// A client does what it does next, unless it waits; whether it did anything.
    pub(super) fn step(&mut self, server: &Arc<Coordinator>, client: usize) -> bool {
        let Client { member, down, left, connection, next, waits_for, unsent, finished, .. } =
            &mut self.clients[client];
        if *down || *left || finished.is_some() || waits_for.is_some() {
            return false;
        }
        let Some(Connection { number, run, poll }) = connection else {
            let revoked = self.plan.certificates && !self.valid.contains(&member.id);
            if !revoked && server.note_contact(member, None).is_ok() {
                let (number, run) = (self.network.number(), server.terms.run_id.clone());
                *connection = Some(Connection { number, run, poll: None });
            }
            return !revoked;
        };
        if let Some((changed, limit)) = poll
            && !changed.has_changed().unwrap_or(true)
            && clock::now() < *limit
        {
            return false;
        }
        *poll = None;
        let (connection, run) = (*number, run.clone());
        let content = match next.clone() {
            Next::Pull => Content::Pull,
            Next::Enrol(survey) => Content::Enrol(self.clients[client].enrolment(&run, &survey)),
            Next::Upload => match unsent.clone() {
                Some(unsent) => Content::Upload(unsent),
                None => Content::Pull,
            },
            Next::Evaluate(round) => Content::Evaluate(self.clients[client].evaluation(&run, round)),
        };
        let number = self.network.number();
        self.clients[client].waits_for = Some(number);
        self.network.requests.push(Request { number, client, connection, run, content });
        true
    }

    /// A request reaches the server; with `lossy`, its answer may be lost.
    pub(super) fn deliver(&mut self, server: &Arc<Coordinator>, request: Request, lossy: bool) {
        let Request { number, client, connection, ref run, .. } = request;
        let member = self.clients[client].member.clone();
        trace(|| format!("request {number} of client {client}: {}", request.content.name()));
        if self.plan.certificates && !self.valid.contains(&member.id) {
            return self.reply(client, number, Err(Refusal::Revoked(member.name)), lossy);
        }
        let reply = match &request.content {
            Content::Pull => {
                let surveyed = self.network.surveyed.contains(&connection);
                let changed = server.subscribe();
                server.next_work(&member, run, surveyed).map(|todo| match todo {
                    Todo::Wait => {
                        if let Some(at) = &mut self.clients[client].connection
                            && at.number == connection
                        {
                            at.poll = Some((changed, clock::now() + POLL));
                        }
                        Reply::Wait
                    }
                    Todo::Message(work::Item::Survey(survey)) => Reply::Survey(survey),
                    Todo::Message(work::Item::Finished(finished)) => Reply::Finished(finished),
                    Todo::Message(other) => panic!("{other:?}"),
                    Todo::Evaluate(round, _) => Reply::Evaluate(round),
                    Todo::Train(job, shared) => {
                        let bytes = [server.begin_sending(&job), shared].concat();
                        let (job, hash) =
                            (Job::from_bytes(&bytes, &server.terms.layout).unwrap(), sha256(&bytes));
                        self.truth.job(&job, &hash);
                        Reply::Job(job, hash)
                    }
                })
            }
            Content::Enrol(enrolment) => server.enrol(&member, enrolment).map(|()| {
                self.network.surveyed.insert(connection);
                Reply::Done
            }),
            Content::Fail(round) => {
                let failure = wire::Failure { run: run.clone(), round: *round, why: "a fault".to_owned() };
                server.fail(&member, &failure).map(|()| Reply::Done)
            }
            Content::Evaluate(counts) => server.count(&member, counts).map(|()| Reply::Done),
            Content::Upload(update) => {
                let (hash, bytes) = (update.hash.clone(), update.bytes.len() as u64);
                let ticket = wire::Ticket {
                    run: run.clone(),
                    round: update.round,
                    client: member.id,
                    hash,
                    bytes,
                    continues: self.plan.continues,
                };
                let admission = server.admit(&member, &ticket);
                self.truth.admission(update.round, &update.hash, admission.as_ref().err());
                match admission {
                    Ok(Admission::Already) => {
                        self.truth.acknowledged(run, update.round, member.id, &update.hash);
                        Ok(Reply::Received)
                    }
                    Ok(Admission::Wanted(arrival)) => {
                        match Receiving::begin(number, client, update.clone(), arrival) {
                            // It is answered when all its bytes have arrived.
                            Ok(upload) => return self.network.uploads.push(upload),
                            Err(refusal) => Err(refusal),
                        }
                    }
                    Err(refusal) => Err(refusal),
                }
            }
        };
        self.reply(client, number, reply, lossy);
    }

    /// Some bytes of an upload reach the server, or its end.
    pub(super) fn receive(&mut self, server: &Arc<Coordinator>, upload: usize, lossy: bool) {
        let receiving = &mut self.network.uploads[upload];
        let (client, number) = (receiving.client, receiving.request);
        if !receiving.complete() {
            let most = if lossy { 1 + self.chance.below(400) as usize } else { usize::MAX };
            if let Err(refusal) = receiving.receive(server, most) {
                self.network.break_off(upload);
                self.reply(client, number, Err(refusal), lossy);
            }
            return;
        }
        let receiving = self.network.uploads.remove(upload);
        let id = client as ClientId;
        let revoked = self.plan.certificates && !self.valid.contains(&id);
        let still = || if revoked { Err(Refusal::Revoked(String::new())) } else { Ok(()) };
        let (round, hash) = (receiving.update.round, receiving.update.hash.clone());
        let reply = receiving.accept(still).map(|()| {
            self.truth.acknowledged(&server.terms.run_id, round, id, &hash);
            Reply::Received
        });
        self.reply(client, number, reply, lossy);
    }

    /// An answer reaches its client, if it still waits for it.
    fn reply(&mut self, client: usize, number: u64, reply: Result<Reply, Refusal>, lossy: bool) {
        let lost = lossy && self.chance.below(3 * self.plan.trouble) == 0;
        let shown = match &reply {
            Ok(reply) => reply.name().to_owned(),
            Err(refusal) => refusal.to_string(),
        };
        trace(|| {
            format!(
                "answer to client {client}, request {number}{}: {shown}",
                if lost { " (lost)" } else { "" }
            )
        });
        let (varying, truth) = (self.plan.varying, &mut self.truth);
        let index = client;
        let client = &mut self.clients[index];
        if lost || client.waits_for != Some(number) {
            return;
        }
        client.waits_for = None;
        client.next = Next::Pull;
        match reply {
            Ok(Reply::Done | Reply::Wait) => {}
            Ok(Reply::Received) => client.sent = client.unsent.take(),
            Ok(Reply::Survey(survey)) => client.next = Next::Enrol(survey),
            Ok(Reply::Job(job, hash)) => {
                client.train(&job, &hash, varying);
                if let Some(unsent) = &client.unsent {
                    truth.update(unsent.round, client.member.id, &unsent.hash);
                }
                client.next = Next::Upload;
                // A confused client sends its last update again, for the wrong round.
                if let Some(sent) = &client.sent
                    && lossy
                    && self.chance.below(4) == 0
                {
                    let run = client
                        .connection
                        .as_ref()
                        .map_or_else(String::new, |connection| connection.run.clone());
                    self.network.replay(index, run, sent);
                }
            }
            Ok(Reply::Evaluate(round)) => client.next = Next::Evaluate(round),
            Ok(Reply::Finished(finished)) => client.finished = Some(finished),
            Err(refusal)
                if refusal.passing() || matches!(refusal, Refusal::WrongRun { .. } | Refusal::Revoked(_)) =>
            {
                client.disconnect();
            }
            Err(
                Refusal::Late { .. }
                | Refusal::Early { .. }
                | Refusal::NotAsked { .. }
                | Refusal::NotEnrolled(_)
                | Refusal::TwoAnswers { .. }
                | Refusal::Replayed { .. }
                | Refusal::NotEvaluating(_)
                | Refusal::Profile(enrolment::Refusal::WrongStatistic { .. }),
            ) => {}
            // The first round began without it, because it had no valid certificate.
            Err(Refusal::Profile(enrolment::Refusal::RosterClosed { .. })) => client.left = true,
            Err(refusal) => panic!("client {} was refused: {refusal}", client.member.id),
        }
    }
}
