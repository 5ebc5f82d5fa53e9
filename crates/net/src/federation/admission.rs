//! Checks everything that clients send to the coordinator: enrolments, updates, and counts of evaluations.

use crate::federation::arrival::Arrival;
use crate::federation::partial::Partial;
use crate::federation::phase::{Inner, Phase, Seen};
use crate::federation::received::Received;
use crate::federation::stored::Reply;
use crate::federation::{Coordinator, Event};
use crate::server::refusal::{Refusal, plain};
use crate::wire;
use fedtvd_core::bytes::{UploadStream, upload_head};
use fedtvd_core::labels::Statistic;
use fedtvd_core::round::{ClientEvaluation, ClientFailure, ClientId, Job, Mode, Profile, enrolment};
use fedtvd_run::directory::disk::remove_file;
use std::path::PathBuf;
use std::sync::Arc;

/// A client, as identified by its certificate and the allow list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    /// Its number.
    pub id: ClientId,
    /// Its name.
    pub name: String,
    /// Maximum number of training samples that it may claim.
    pub max_size: u64,
    /// The address that its request came from.
    pub peer: String,
    /// SHA-256 of its certificate; none without TLS.
    pub certificate: Option<String>,
}

/// Maximum number of hold-out samples of a client, so that sums over all clients cannot overflow.
const LARGEST_HOLDOUT: u64 = 1 << 40;

/// The answer to a valid ticket.
pub(crate) enum Admission {
    /// The update was already accepted.
    Already,
    /// Its bytes should be sent.
    Wanted(Box<Arrival>),
}

impl Coordinator {
    /// Records that a client was in contact, and refuses clients of another run or outside the roster.
    pub(crate) fn note_contact(&self, member: &Member, run: Option<&str>) -> Result<(), Refusal> {
        let (name, last) = (member.name.clone(), self.now());
        let mut inner = self.inner();
        let problem = inner.seen.remove(&member.id).and_then(|seen| seen.problem);
        inner.seen.insert(member.id, Seen { name, last, problem });
        drop(inner);
        if let Some(roster) = &self.terms.roster
            && !roster.contains(&member.id)
        {
            return Err(Refusal::NotInRoster(member.id));
        }
        match run {
            Some(run) if run != self.terms.run_id => {
                Err(Refusal::WrongRun { ours: self.terms.run_id.clone(), theirs: run.to_owned() })
            }
            _ => Ok(()),
        }
    }

    /// Remembers why a client does not take part, or has no update, for the operator's status; `None` if it takes part.
    pub(crate) fn note_problem(&self, client: ClientId, problem: Option<String>) {
        if let Some(seen) = self.inner().seen.get_mut(&client) {
            seen.problem = problem;
        }
    }

    /// Enrols a client, or checks that its profile has not changed.
    pub(crate) fn enrol(&self, member: &Member, enrolment: &wire::Enrolment) -> Result<(), Refusal> {
        self.note_contact(member, Some(&enrolment.run))?;
        if self.missing_statistics().is_some() {
            return Err(Refusal::SchemaOpen);
        }
        let (client, size, holdout) = (member.id, enrolment.size, enrolment.holdout);
        // In hardened mode a claim above the listed size counts as the listed size, so nothing is gained by it.
        let hardened = self.terms.run.mode == Mode::Hardened;
        if size > member.max_size && !hardened {
            return Err(Refusal::AboveListed { client, size, most: member.max_size });
        }
        let most = if hardened { LARGEST_HOLDOUT } else { member.max_size.min(LARGEST_HOLDOUT) };
        if holdout > most {
            return Err(Refusal::HoldoutAboveListed { client, holdout, most });
        }
        let statistic: Statistic = serde_json::from_str(&enrolment.statistic)
            .map_err(|error| Refusal::Statistic(error.to_string()))?;
        let listed = (size > member.max_size).then_some(member.max_size);
        let profile = Profile { listed, ..Profile::new(client, size, statistic) };
        let mut inner = self.inner();
        if let Some(known) = inner.present.get(&client).filter(|known| **known != holdout) {
            let what = format!("{known} samples held out at enrolment, {holdout} now");
            return Err(enrolment::Refusal::Changed { client, what }.into());
        }
        if inner.histograms.is_some() {
            self.collect(&mut inner, profile)?;
        } else {
            if inner.roster_closed && inner.enrolled.profile(client).is_none() {
                return Err(enrolment::Refusal::RosterClosed { client }.into());
            }
            inner.enrolled.enrol(&self.terms.run, profile)?;
        }
        let new = inner.present.insert(client, holdout).is_none();
        drop(inner);
        self.note_problem(client, None);
        if new {
            let name = member.name.clone();
            if let Some(listed) = listed {
                let note = format!("{name} claims {size} samples and counts with the {listed} listed for it");
                (self.log)(&Event::Note { note });
            }
            let (peer, certificate) = (member.peer.clone(), member.certificate.clone());
            (self.log)(&Event::Enrolled { client, name, size, peer, certificate });
        }
        self.notify_driver();
        Ok(())
    }

    /// Collects a client's label counts for the reference.
    fn collect(&self, inner: &mut Inner, profile: Profile) -> Result<(), Refusal> {
        let (client, size, counted) = (profile.client, profile.size, profile.counted_size());
        let Statistic::Histogram(counts) = profile.statistic else {
            return Err(Refusal::Statistic("the server asks for label counts".to_owned()));
        };
        if counts.len() != self.terms.classes {
            let classes = self.terms.classes;
            return Err(enrolment::Refusal::Classes { client, got: counts.len(), classes }.into());
        }
        let sum: u128 = counts.iter().map(|&count| u128::from(count)).sum();
        if sum != u128::from(size) || sum == 0 {
            return Err(enrolment::Refusal::CountsSum { client, sum, size }.into());
        }
        let known = inner.histograms.get_or_insert_default();
        if known.get(&client).is_some_and(|(_, known)| *known != counts) {
            let what = "its label counts are not those that it sent before".to_owned();
            return Err(enrolment::Refusal::Changed { client, what }.into());
        }
        known.insert(client, (counted, counts));
        Ok(())
    }

    /// Checks an upload's ticket before any of its bytes are read.
    pub(crate) fn admit(
        self: &Arc<Self>,
        member: &Member,
        ticket: &wire::Ticket,
    ) -> Result<Admission, Refusal> {
        self.note_contact(member, Some(&ticket.run))?;
        let (client, round) = (member.id, ticket.round);
        if ticket.client != client {
            return Err(Refusal::WrongClient { claimed: ticket.client, client });
        }
        if ticket.hash.len() != 64 || !ticket.hash.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(Refusal::BadHash(ticket.hash.chars().take(80).collect()));
        }
        let mut inner = self.inner();
        let Inner { present, enrolled, last_accepted, sending, phase, .. } = &mut *inner;
        if !present.contains_key(&client) {
            return Err(Refusal::NotEnrolled(client));
        }
        let next = enrolled.round;
        let before = last_accepted.get(&client);
        let Phase::Training(open) = phase else {
            return Err(if round > next {
                Refusal::Early { round, open: next }
            } else {
                Refusal::Late { round }
            });
        };
        if round < open.round {
            return Err(Refusal::Late { round });
        }
        if round > open.round {
            return Err(Refusal::Early { round, open: open.round });
        }
        let Some(job) = open.jobs.get(&client) else { return Err(Refusal::NotAsked { round, client }) };
        match open.answers.get(&client) {
            Some(Reply::Update(update)) if update.hash == ticket.hash => {
                drop(inner);
                let (peer, certificate) = (member.peer.clone(), member.certificate.clone());
                let update = ticket.hash.clone();
                (self.log)(&Event::Again { client, round: round + 1, update, peer, certificate });
                return Ok(Admission::Already);
            }
            Some(Reply::Update(_)) => return Err(Refusal::TwoAnswers { round, client }),
            Some(Reply::Failure(_)) | None => {}
        }
        if let Some((before, _)) = before.filter(|(_, hash)| *hash == ticket.hash) {
            return Err(Refusal::Replayed { round, before: *before });
        }
        let numbers = self.numbers(job);
        let (least, most) = (8 + 4 * numbers, upload_head::LARGEST as u64 + 4 * numbers);
        if ticket.bytes < least {
            return Err(Refusal::TooShort { bytes: ticket.bytes, least });
        }
        if ticket.bytes > most {
            return Err(Refusal::TooLong { bytes: ticket.bytes, most });
        }
        let mut before: Vec<(PathBuf, Partial)> = Vec::new();
        if let Some(other) = sending.get(&client) {
            before.push((other.path.clone(), other.take_over(ticket)?));
        }
        let place = |partial: &Partial| self.ledger.partial(round, client, &partial.hash, partial.bytes);
        before.extend(open.partial.remove(&client).map(|partial| (place(&partial), partial)));
        let size = enrolled.profile(client).map_or(0, |profile| profile.size);
        let check = UploadStream::new(self.terms.run.strategy.needs(), size, job.clone(), ticket.bytes);
        let path = self.ledger.partial(round, client, &ticket.hash, ticket.bytes);
        let same = |(other, _): &(PathBuf, Partial)| *other == path && ticket.continues;
        let partial = match before.iter().position(same) {
            Some(place) => before.swap_remove(place).1,
            None => Partial::new(&ticket.hash, ticket.bytes, check),
        };
        let received = Arc::new(Received::new(client, round, path.clone(), partial));
        sending.insert(client, Arc::clone(&received));
        drop(inner);
        for (other, _) in before {
            // Of one client at most one incomplete upload is kept. The file of the same update is written anew.
            if other != path {
                let _ = remove_file(&other);
            }
        }
        let (coordinator, member) = (Arc::clone(self), member.clone());
        Ok(Admission::Wanted(Box::new(Arrival { coordinator, member, received, rest: None })))
    }

    /// Number of values in the update that answers a job.
    fn numbers(&self, job: &Job) -> u64 {
        let carried = self.terms.run.strategy.needs().carries.iter();
        let layout = &job.offer.params.layout;
        let carried: usize = carried.map(|carried| carried.extent.len(layout)).sum();
        (layout.len() + carried) as u64
    }

    /// Records that a client has no update, unless one was accepted.
    pub(crate) fn fail(&self, member: &Member, failure: &wire::Failure) -> Result<(), Refusal> {
        self.note_contact(member, Some(&failure.run))?;
        let why = plain(&failure.why);
        self.note_problem(member.id, Some(format!("round {}: {why}", failure.round.saturating_add(1))));
        let event = Event::Failed {
            client: member.id,
            round: failure.round.saturating_add(1),
            why: why.clone(),
            peer: member.peer.clone(),
            certificate: member.certificate.clone(),
        };
        self.answer(member.id, failure.round, Reply::Failure(ClientFailure::Training(why)), Some(&event))
    }

    /// Records an answer to the open round, unless an update was accepted. It is logged before the round can close.
    pub(super) fn answer(
        &self,
        client: ClientId,
        round: u32,
        answer: Reply,
        event: Option<&Event>,
    ) -> Result<(), Refusal> {
        let accepted = answer.update().is_some();
        let mut inner = self.inner();
        let Phase::Training(open) = &mut inner.phase else { return Err(Refusal::Late { round }) };
        if open.round != round {
            return Err(Refusal::Late { round });
        }
        if !open.jobs.contains_key(&client) {
            return Err(Refusal::NotAsked { round, client });
        }
        if !matches!(open.answers.get(&client), Some(Reply::Update(_))) {
            if let Reply::Update(update) = &answer {
                // Under the lock, so that no update is accepted after its round was closed.
                let committed = self.ledger.commit(round, client, &update.hash, update.bytes);
                committed.map_err(|error| disk(&error.error))?;
                open.measure(client, self.now());
            }
            open.answers.insert(client, answer);
        }
        drop(inner);
        if accepted {
            self.note_problem(client, None);
        }
        if let Some(event) = event {
            (self.log)(event);
        }
        self.notify_driver();
        Ok(())
    }

    /// Accepts the counts of a client's evaluation on its hold-out.
    pub(crate) fn count(&self, member: &Member, counts: &wire::Counts) -> Result<(), Refusal> {
        self.note_contact(member, Some(&counts.run))?;
        let mut inner = self.inner();
        let most = inner.present.get(&member.id).copied().ok_or(Refusal::NotEnrolled(member.id))?;
        let Phase::Evaluating(evaluating) = &mut inner.phase else {
            return Err(Refusal::NotEvaluating(counts.round));
        };
        if evaluating.round != counts.round || !evaluating.asked.contains(&member.id) {
            return Err(Refusal::NotEvaluating(counts.round));
        }
        let evaluation = evaluation(counts, self.terms.classes, most)?;
        evaluating.counts.insert(member.id, evaluation);
        drop(inner);
        self.notify_driver();
        Ok(())
    }
}

/// What a client states about its evaluation of a model, if it can be true of a hold-out of `most` samples.
fn evaluation(counts: &wire::Counts, classes: usize, most: u64) -> Result<ClientEvaluation, Refusal> {
    let wire::Counts { correct, total, ref confusion, .. } = *counts;
    let bad = |why: String| Err(Refusal::BadCounts(why));
    if total > most {
        return bad(format!("{total} samples; the client's hold-out has {most}"));
    }
    if correct > total {
        return bad(format!("{correct} of {total} samples were classified correctly"));
    }
    if !confusion.is_empty() {
        let need = classes * classes;
        if confusion.len() != need {
            return bad(format!("{} counts; {classes} classes need {need}", confusion.len()));
        }
        let sum =
            |counts: &mut dyn Iterator<Item = &u64>| counts.map(|&count| u128::from(count)).sum::<u128>();
        let (all, diagonal) = (sum(&mut confusion.iter()), sum(&mut confusion.iter().step_by(classes + 1)));
        if (all, diagonal) != (u128::from(total), u128::from(correct)) {
            return bad(format!(
                "{diagonal} of {all} samples in the matrix were classified correctly; it states {correct} of {total}"
            ));
        }
    }
    // A broken model has no finite loss at any honest client; their predictions count all the same.
    let loss = if counts.loss >= 0.0 { counts.loss } else { f64::NAN };
    let confusion = (!confusion.is_empty()).then(|| confusion.clone());
    Ok(ClientEvaluation { loss, correct, total, confusion })
}

/// The refusal that a client gets if the disk fails.
pub(crate) fn disk(error: &std::io::Error) -> Refusal {
    match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Refusal::DiskFull,
        _ => Refusal::Disk,
    }
}
