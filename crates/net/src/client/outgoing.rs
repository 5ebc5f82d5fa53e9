//! What each message of a client says, in plain words, for `sent.jsonl`. Every request of the protocol that a client can make
//! has its sentence here; `docs/security.md` has the same list.

use crate::client::sent_log::{EVALUATION, FAIL, UPLOAD};
use crate::wire;
use fedtvd_core::labels::Statistic;
use fedtvd_run::directory::sha256;
use prost::Message;

/// The first words about an update itself, in contrast to its announcement.
pub(crate) const UPDATE: &str = "update of round";

/// A message about to be sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Outgoing {
    /// The request, by its name in the protocol.
    pub(crate) message: &'static str,
    /// What it says.
    pub(crate) content: String,
    /// Its size.
    pub(crate) bytes: usize,
    /// The key of the reference distribution to which a distance is disclosed ([`reference_key`]).
    pub(crate) reference: Option<String>,
}

/// What a disclosed distance is remembered by: each of the two kinds of distance to each reference is one disclosure.
pub(crate) fn reference_key(released: bool, reference: &str) -> String {
    if released { sha256(format!("released {reference}").as_bytes()) } else { sha256(reference.as_bytes()) }
}

impl Outgoing {
    fn new(message: &'static str, content: String, encoded: &impl Message) -> Self {
        Self { message, content, bytes: encoded.encoded_len(), reference: None }
    }

    pub(crate) fn hello(hello: &wire::HelloRequest) -> Self {
        let wire::HelloRequest { protocol, newest, version } = hello;
        let content =
            format!("versions {protocol} to {newest} of the protocol, version {version} of the program");
        Self::new("Hello", content, hello)
    }

    pub(crate) fn columns(statistics: &wire::ColumnStatistics) -> Self {
        let sent = statistics.columns.iter().filter(|column| column.count > 0).count();
        let content = format!(
            "number of training samples: {}; count, mean and sum of squared deviations of {sent} columns; nothing about {} \
             columns with too few values",
            statistics.size,
            statistics.columns.len() - sent
        );
        Self::new("Columns", content, statistics)
    }

    /// `reference` is the survey's, as text.
    pub(crate) fn enrolment(enrolment: &wire::Enrolment, reference: &str) -> Self {
        let released = matches!(serde_json::from_str(&enrolment.statistic), Ok(Statistic::Released(_)));
        let (words, compared) = match serde_json::from_str(&enrolment.statistic) {
            Ok(Statistic::Nothing) => ("no label statistic".to_owned(), false),
            Ok(Statistic::Distance(d)) => {
                (format!("distance of the label distribution to the reference: {d}"), true)
            }
            Ok(Statistic::Released(d)) => (
                format!(
                    "distance of the label distribution to the reference, by the authors' public code: {d}"
                ),
                true,
            ),
            Ok(Statistic::Histogram(counts)) => {
                (format!("number of training samples of each class: {counts:?}"), false)
            }
            Err(_) => (enrolment.statistic.clone(), false),
        };
        let content = format!(
            "number of training samples: {}; size of the hold-out: {}; {words}",
            enrolment.size, enrolment.holdout
        );
        let reference = compared.then(|| reference_key(released, reference));
        Self { reference, ..Self::new("Enrol", content, enrolment) }
    }

    pub(crate) fn pull(pull: &wire::PullRequest) -> Self {
        Self::new("Pull", "request for work, without content".to_owned(), pull)
    }

    /// The announcement of an update.
    pub(crate) fn ticket(ticket: &wire::Ticket) -> Self {
        let (round, wire::Ticket { bytes, hash, .. }) = (ticket.round.saturating_add(1), ticket);
        let content = format!("announcement of the update of round {round}: {bytes} bytes, SHA-256 {hash}");
        Self::new(UPLOAD, content, ticket)
    }

    /// The bytes of an update from this offset on.
    pub(crate) fn update(ticket: &wire::Ticket, offset: u64) -> Self {
        let (round, hash) = (ticket.round.saturating_add(1), &ticket.hash);
        let rest = if offset > 0 { format!(", from byte {offset} on") } else { String::new() };
        let content = format!(
            "{UPDATE} {round}{rest}: the trained model, vectors that the strategy sends with it, number of steps, reach, mean \
             training loss of the first and of the last epoch; SHA-256 {hash}"
        );
        let bytes = ticket.bytes.saturating_sub(offset) as usize;
        Self { message: UPLOAD, content, bytes, reference: None }
    }

    pub(crate) fn failure(failure: &wire::Failure) -> Self {
        let content = format!("no update in round {}: {}", failure.round.saturating_add(1), failure.why);
        Self::new(FAIL, content, failure)
    }

    pub(crate) fn counts(counts: &wire::Counts) -> Self {
        let matrix = if counts.confusion.is_empty() { "" } else { "; confusion matrix" };
        let content = format!(
            "evaluation on the hold-out after round {}: {} of {} correct, sum of the losses {}{matrix}",
            counts.round.saturating_add(1),
            counts.correct,
            counts.total,
            counts.loss
        );
        Self::new(EVALUATION, content, counts)
    }

    pub(crate) fn declined(declined: &wire::Declined) -> Self {
        Self::new("Decline", format!("this site does not take part: {}", declined.why), declined)
    }
}
