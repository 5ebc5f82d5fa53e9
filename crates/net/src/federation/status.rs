//! The status of a federation, for its operator.

use crate::client::{Connection, ConnectionError, Security};
use crate::federation::Coordinator;
use crate::federation::phase::Phase;
use crate::federation::stored::Reply;
use crate::federation::table_schema::waiting_for_columns;
use fedtvd_core::round::{ClientId, Mode};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// The status of a federation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The run's name.
    pub run: String,
    /// The strategy's label.
    pub strategy: String,
    /// How far clients' claims are trusted.
    pub mode: Mode,
    /// The phase: columns (statistics of tables' columns are collected), gathering, training, evaluating (clients evaluate the
    /// model) or finished.
    pub phase: String,
    /// Why the statistics of the clients' columns give no centres and scales, so that round 1 cannot begin
    /// (`standards-failed`).
    pub problem: Option<String>,
    /// The current round, counted from 1.
    pub round: u32,
    /// Number of rounds.
    pub rounds: u32,
    /// How long the round has been open.
    pub open_seconds: Option<f64>,
    /// How long the round waits for answers at most, counted from its opening; null for no limit.
    pub deadline_seconds: Option<f64>,
    /// Number of updates with which the round closes; fewer than the clients asked if `cohort.extra` is set.
    pub needed: Option<usize>,
    /// Accuracy after the last round; null if not evaluated.
    pub accuracy: Option<f64>,
    /// Median of the clients' accuracies after the last round; null if they did not evaluate the model.
    #[serde(default)]
    pub median_accuracy: Option<f64>,
    /// Why the clients' evaluations after the last round do not count; null if they do, or if none were asked for.
    #[serde(default)]
    pub not_evaluated: Option<String>,
    /// Number of enrolled clients.
    pub roster: usize,
    /// Clients whose update is on disk.
    pub answered: Vec<ClientId>,
    /// Clients that the round, or its start, waits for: their enrolment, or the statistics of their columns.
    pub waiting_for: Vec<ClientId>,
    /// Their names.
    pub waiting_for_names: Vec<String>,
    /// All clients that were in contact.
    pub clients: Vec<ClientStatus>,
}

/// One client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientStatus {
    /// Its number.
    pub client: ClientId,
    /// Its name.
    pub name: String,
    /// Its number of training samples, if it is enrolled.
    pub size: Option<u64>,
    /// Its answer in the round: answered, failed, waiting, or null.
    pub answer: Option<String>,
    /// Seconds since its last contact.
    pub last_seen_seconds: f64,
    /// Why it does not take part, or has no update, by the last that the server heard of it; null if there was nothing.
    #[serde(default)]
    pub problem: Option<String>,
}

impl Coordinator {
    /// The current status.
    pub fn status(&self) -> Status {
        // Before the lock: a client that sends statistics holds theirs while it takes it.
        let (missing_statistics, now) = (self.missing_statistics(), self.now());
        let problem = self.terms.tables.as_ref().and_then(|tables| tables.problem());
        let inner = self.inner();
        let (mut answered, mut waiting_for) = (Vec::new(), Vec::new());
        let mut answer = |client: &ClientId| match &inner.phase {
            Phase::Training(open) if open.jobs.contains_key(client) => Some(match open.answers.get(client) {
                Some(Reply::Update(_)) => {
                    answered.push(*client);
                    "answered"
                }
                Some(Reply::Failure(_)) => "failed",
                None => {
                    waiting_for.push(*client);
                    "waiting"
                }
            }),
            _ => None,
        };
        let mut clients: Vec<ClientStatus> = Vec::new();
        for (client, seen) in &inner.seen {
            clients.push(ClientStatus {
                client: *client,
                name: seen.name.clone(),
                size: inner.enrolled.profile(*client).map(|profile| profile.size),
                answer: answer(client).map(str::to_owned),
                last_seen_seconds: now.saturating_duration_since(seen.last).as_secs_f64(),
                problem: seen.problem.clone(),
            });
        }
        // Includes clients that have not contacted a restarted server yet.
        for profile in
            inner.enrolled.roster.iter().filter(|profile| !inner.seen.contains_key(&profile.client))
        {
            answer(&profile.client);
        }
        if matches!(inner.phase, Phase::Between) {
            // Clients that wait for the others' statistics have not enrolled either, but they have done their part.
            waiting_for =
                missing_statistics.clone().unwrap_or_else(|| inner.absent(self.terms.roster.as_ref()));
        }
        if let Phase::Evaluating(evaluating) = &inner.phase {
            waiting_for = evaluating.missing();
        }
        answered.sort_unstable();
        waiting_for.sort_unstable();
        let (phase, open) = match &inner.phase {
            Phase::Between if missing_statistics.is_some() => ("columns", None),
            Phase::Between => ("gathering", None),
            Phase::Training(open) => ("training", Some(open)),
            Phase::Evaluating(_) => ("evaluating", None),
            Phase::Finished(_) => ("finished", None),
        };
        Status {
            run: self.terms.run_id.clone(),
            strategy: self.terms.run.strategy.label.clone(),
            mode: self.terms.run.mode,
            phase: phase.to_owned(),
            problem,
            round: (inner.enrolled.round + 1).min(self.terms.rounds),
            rounds: self.terms.rounds,
            open_seconds: open.map(|open| now.saturating_duration_since(open.began).as_secs_f64()),
            deadline_seconds: open.and_then(|open| open.limit).map(|limit| limit.as_secs_f64()),
            needed: open.map(|open| open.needed),
            accuracy: inner.accuracy.filter(|accuracy| accuracy.is_finite()),
            median_accuracy: inner.median_accuracy.filter(|accuracy| accuracy.is_finite()),
            not_evaluated: inner.not_evaluated.as_ref().map(|(_, why)| why.clone()),
            roster: inner.enrolled.roster.len(),
            answered,
            waiting_for_names: self.names(&waiting_for),
            waiting_for,
            clients,
        }
    }
}

/// Requests the status from a running server; blocks.
pub fn ask(address: &str, security: &Security) -> Result<Status, ConnectionError> {
    let lost = |error: &dyn std::fmt::Display| ConnectionError::Lost(error.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let text = runtime.map_err(|error| lost(&error))?.block_on(async {
        // The operator connects from the server's machine, to any of its addresses: the certificate always names
        // localhost.
        let mut connection = Connection::dial_as(address, Some("localhost"), security).await?;
        connection.status().await
    })?;
    serde_json::from_str(&text).map_err(|error| lost(&error))
}

impl Status {
    /// The status as text for people.
    pub fn text(&self) -> String {
        let median =
            self.median_accuracy.map(|median| format!(" (median of the clients {:.2} %)", 100.0 * median));
        let accuracy = self.accuracy.map_or_else(|| "-".to_owned(), |a| format!("{:.2} %", 100.0 * a))
            + &median.unwrap_or_default();
        let mut text = format!(
            "round {}/{} · {} · {} ({} mode) · accuracy {accuracy} · {} clients enrolled\n",
            self.round,
            self.rounds,
            self.phase,
            self.strategy,
            serde_json::to_string(&self.mode).unwrap_or_default().trim_matches('"'),
            self.roster,
        );
        if let Some(why) = &self.not_evaluated {
            let _ = writeln!(text, "the last model was not evaluated: {why}");
        }
        if let Some(problem) = &self.problem {
            let _ = writeln!(text, "round 1 cannot begin: {problem}");
        }
        if let Some(open) = self.open_seconds {
            let limit = self.deadline_seconds.map_or_else(
                || "no deadline".to_owned(),
                |limit| format!("closes after {limit:.0} s at the latest"),
            );
            let _ = writeln!(text, "open for {open:.0} s, {limit}");
        }
        let answered = self.answered.len();
        let failed = self.clients.iter().filter(|client| client.answer.as_deref() == Some("failed")).count();
        let asked = answered + failed + self.waiting_for.len();
        if let Some(needed) = self.needed.filter(|needed| *needed < asked) {
            let _ = writeln!(text, "{answered} updates of {asked} clients; closes with {needed}");
        }
        if !self.waiting_for.is_empty() {
            let waiting = match self.phase.as_str() {
                "columns" => waiting_for_columns(&self.waiting_for_names),
                _ => format!("waiting for {}", self.waiting_for_names.join(", ")),
            };
            let _ = writeln!(text, "{waiting}");
        }
        for client in &self.clients {
            let problem = client.problem.as_ref().map(|problem| format!(": {problem}")).unwrap_or_default();
            let _ = writeln!(
                text,
                "{:>6}  {:<20} {:>9} samples  {:<9} seen {:.0} s ago{problem}",
                client.client,
                client.name,
                client.size.map_or_else(|| "-".to_owned(), |size| size.to_string()),
                client.answer.as_deref().unwrap_or("-"),
                client.last_seen_seconds,
            );
        }
        text
    }
}
