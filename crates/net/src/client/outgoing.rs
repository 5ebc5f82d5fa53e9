//! What each message of a client says, in plain words, for `sent.jsonl`. Every request of the protocol that a client can make
//! has its sentence here; `docs/security.md` has the same list.

use crate::wire;
use fedtvd_core::labels::Statistic;
use fedtvd_run::directory::sha256;
use prost::Message;

/// A message about to be sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Outgoing {
    /// The request, by its name in the protocol.
    pub(crate) message: &'static str,
    /// What it says.
    pub(crate) content: String,
    /// Its size.
    pub(crate) bytes: usize,
    /// SHA-256 of the reference distribution to which a distance is disclosed.
    pub(crate) reference: Option<String>,
}

impl Outgoing {
    fn new(message: &'static str, content: String, encoded: &impl Message) -> Self {
        Self { message, content, bytes: encoded.encoded_len(), reference: None }
    }

    pub(crate) fn hello(hello: &wire::HelloRequest) -> Self {
        let wire::HelloRequest { protocol, version } = hello;
        Self::new(
            "Hello",
            format!("version {protocol} of the protocol, version {version} of the program"),
            hello,
        )
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
        let reference = compared.then(|| sha256(reference.as_bytes()));
        Self { reference, ..Self::new("Enrol", content, enrolment) }
    }

    pub(crate) fn pull(pull: &wire::PullRequest) -> Self {
        Self::new("Pull", "request for work, without content".to_owned(), pull)
    }

    /// The ticket and the bytes that follow it.
    pub(crate) fn upload(ticket: &wire::Ticket) -> Self {
        let content = format!(
            "update of round {}: the trained model, vectors that the strategy sends with it, number of steps, reach, mean training \
             loss of the first and of the last epoch; SHA-256 {}",
            ticket.round.saturating_add(1),
            ticket.hash
        );
        let outgoing = Self::new("Upload", content, ticket);
        Self { bytes: outgoing.bytes + ticket.bytes as usize, ..outgoing }
    }

    pub(crate) fn failure(failure: &wire::Failure) -> Self {
        let content = format!("no update in round {}: {}", failure.round.saturating_add(1), failure.why);
        Self::new("Fail", content, failure)
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
        Self::new("Judge", content, counts)
    }

    pub(crate) fn declined(declined: &wire::Declined) -> Self {
        Self::new("Decline", format!("this site does not take part: {}", declined.why), declined)
    }
}
