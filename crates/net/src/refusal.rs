//! Why the server refuses: each reason with a code of its own, for logs and scripts, and a sentence.

use crate::wire::VersionMismatch;
use fedtvd_core::enrolment;
use fedtvd_core::failure::ClientFailure;
use fedtvd_core::profile::ClientId;
use thiserror::Error;

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Refusal {
    /// A certificate that the allow list does not have.
    #[error("certificate {0} is not in the list of clients; ask the operator to issue one")]
    Unknown(String),
    /// A certificate that was revoked.
    #[error("the certificate of {0} is revoked; ask the operator for a new one")]
    Revoked(String),
    /// A client may not ask for this.
    #[error("only the operator may ask for the status")]
    NotOperator,
    /// The operator is no client.
    #[error("the server's own certificate is no client's; ask the operator to issue one")]
    NotClient,
    /// A client that names nobody, where there is no TLS.
    #[error("without TLS a client says its number; \"{0}\" is none")]
    NoName(String),
    /// Another version of the protocol.
    #[error(transparent)]
    Protocol(#[from] VersionMismatch),
    /// Another run.
    #[error("this is run {ours}; the request is for run {theirs}")]
    WrongRun {
        /// The server's.
        ours: String,
        /// The request's.
        theirs: String,
    },
    /// An update in another client's name.
    #[error("the update is client {claimed}'s, but the certificate is client {client}'s")]
    WrongClient {
        /// Whose the update says it is.
        claimed: ClientId,
        /// Whose the certificate is.
        client: ClientId,
    },
    /// A roster that does not have this client.
    #[error("client {0} is not in this run's roster")]
    NotInRoster(ClientId),
    /// More samples than the allow list has.
    #[error("client {client} claims {size} samples; it is listed with at most {most}")]
    AboveListed {
        /// Who.
        client: ClientId,
        /// What it claims.
        size: u64,
        /// What the list allows.
        most: u64,
    },
    /// More samples kept back than the allow list has.
    #[error("client {client} claims to keep {holdout} samples back; at most {most} count")]
    HoldoutAboveListed {
        /// Who.
        client: ClientId,
        /// What it claims.
        holdout: u64,
        /// What the list allows.
        most: u64,
    },
    /// A profile that core does not take.
    #[error(transparent)]
    Profile(#[from] enrolment::Refusal),
    /// A statistic that does not read.
    #[error("the statistic does not read: {0}")]
    Statistic(String),
    /// An answer before the enrolment.
    #[error("client {0} is not enrolled yet")]
    NotEnrolled(ClientId),
    /// A round that is over.
    #[error("round {} is closed; the update came too late and does not count", .round.saturating_add(1))]
    Late {
        /// The update's round.
        round: u32,
    },
    /// A round that has not begun.
    #[error("round {} has not begun; this is round {}", .round.saturating_add(1), .open.saturating_add(1))]
    Early {
        /// The update's round.
        round: u32,
        /// The open one.
        open: u32,
    },
    /// A client that the round did not ask.
    #[error("round {} did not ask client {client}", .round.saturating_add(1))]
    NotAsked {
        /// The round.
        round: u32,
        /// Who.
        client: ClientId,
    },
    /// Another answer to the same job.
    #[error("client {client} already answered in round {} with other bytes; the first answer holds", .round.saturating_add(1))]
    TwoAnswers {
        /// The round.
        round: u32,
        /// Who.
        client: ClientId,
    },
    /// Bytes that were accepted in another round.
    #[error("these bytes were accepted in round {}; they do not count again in round {}", .before.saturating_add(1), .round.saturating_add(1))]
    Replayed {
        /// The round now.
        round: u32,
        /// The round then.
        before: u32,
    },
    /// A hash that is none.
    #[error("\"{0}\" is no SHA-256 in 64 hexadecimal digits")]
    BadHash(String),
    /// More bytes than an update has.
    #[error("{bytes} bytes are announced; an update of this model has at most {most}")]
    TooLong {
        /// How many are announced.
        bytes: u64,
        /// How many there can be.
        most: u64,
    },
    /// Fewer bytes than an update has.
    #[error("{bytes} bytes are announced; an update of this model has at least {least}")]
    TooShort {
        /// How many are announced.
        bytes: u64,
        /// How many there must be.
        least: u64,
    },
    /// The same client is sending already.
    #[error("client {0} is sending its update on another connection; try again")]
    Busy(ClientId),
    /// An upload that does not begin with a ticket.
    #[error("an upload begins with its ticket")]
    NoTicket,
    /// Something else than a part.
    #[error("a second ticket in one upload; only parts may follow")]
    SecondTicket,
    /// Fewer bytes than announced.
    #[error("the upload ended after {got} of {bytes} bytes")]
    Truncated {
        /// How many came.
        got: u64,
        /// How many were announced.
        bytes: u64,
    },
    /// More bytes than announced.
    #[error("the upload goes on after its {0} bytes")]
    Overrun(u64),
    /// Bytes that are not the announced ones.
    #[error("the bytes have hash {got}; {announced} was announced")]
    WrongHash {
        /// What came.
        got: String,
        /// What was announced.
        announced: String,
    },
    /// An upload that stands still.
    #[error("no part came for {0} seconds")]
    Stalled(u64),
    /// An upload that goes on for too long.
    #[error("{got} of {bytes} bytes came in {seconds} seconds")]
    TooSlow {
        /// How many came.
        got: u64,
        /// How many were announced.
        bytes: u64,
        /// In which time.
        seconds: u64,
    },
    /// The update itself is not acceptable.
    #[error("{0}")]
    Update(ClientFailure),
    /// The disk is full.
    #[error("the server's disk is full; the update was not kept, try again later")]
    DiskFull,
    /// The disk fails in another way.
    #[error("the server could not store the update; try again later")]
    Disk,
    /// Counts that cannot be.
    #[error("the counts of the hold-out cannot be: {0}")]
    BadCounts(String),
    /// Counts that nobody asked for.
    #[error("no counts are wanted for round {} now", .0.saturating_add(1))]
    NotJudging(u32),
}

impl Refusal {
    /// A code that never changes.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "unknown-certificate",
            Self::Revoked(_) => "revoked",
            Self::NotOperator => "not-operator",
            Self::NotClient => "not-client",
            Self::NoName(_) => "no-name",
            Self::Protocol(_) => "wrong-protocol",
            Self::WrongRun { .. } => "wrong-run",
            Self::WrongClient { .. } => "wrong-client",
            Self::NotInRoster(_) => "not-in-roster",
            Self::AboveListed { .. } => "size-above-listed",
            Self::HoldoutAboveListed { .. } => "holdout-above-listed",
            Self::Profile(refusal) => profile_code(refusal),
            Self::Statistic(_) => "statistic-unreadable",
            Self::NotEnrolled(_) => "not-enrolled",
            Self::Late { .. } => "late",
            Self::Early { .. } => "early",
            Self::NotAsked { .. } => "not-asked",
            Self::TwoAnswers { .. } => "two-answers",
            Self::Replayed { .. } => "replayed",
            Self::BadHash(_) => "bad-hash",
            Self::TooLong { .. } => "too-long",
            Self::TooShort { .. } => "too-short",
            Self::Busy(_) => "busy",
            Self::NoTicket => "no-ticket",
            Self::SecondTicket => "second-ticket",
            Self::Truncated { .. } => "truncated",
            Self::Overrun(_) => "overrun",
            Self::WrongHash { .. } => "wrong-hash",
            Self::Stalled(_) => "stalled",
            Self::TooSlow { .. } => "too-slow",
            Self::Update(failure) => update_code(failure),
            Self::DiskFull => "disk-full",
            Self::Disk => "disk",
            Self::BadCounts(_) => "bad-counts",
            Self::NotJudging(_) => "not-judging",
        }
    }

    /// Whether the same request may succeed later.
    pub fn passing(&self) -> bool {
        matches!(
            self,
            Self::Busy(_)
                | Self::Truncated { .. }
                | Self::Overrun(_)
                | Self::WrongHash { .. }
                | Self::Stalled(_)
                | Self::TooSlow { .. }
                | Self::DiskFull
                | Self::Disk
        )
    }
}

/// Most characters of a sentence that may hold a client's words.
const LONGEST: usize = 300;

/// A sentence that may hold a client's words, as a log can bear it: short, and without control characters.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::new();
    for (place, c) in text.chars().enumerate() {
        if place == LONGEST {
            plain.push('…');
            break;
        }
        if c.is_control() { plain.extend(c.escape_default()) } else { plain.push(c) }
    }
    plain
}

fn profile_code(refusal: &enrolment::Refusal) -> &'static str {
    match refusal {
        enrolment::Refusal::Size { .. } => "profile-size",
        enrolment::Refusal::WrongStatistic { .. } => "profile-statistic",
        enrolment::Refusal::Distance { .. } => "profile-distance",
        enrolment::Refusal::Impossible { .. } => "profile-impossible",
        enrolment::Refusal::Classes { .. } => "profile-classes",
        enrolment::Refusal::CountsSum { .. } => "profile-counts",
        enrolment::Refusal::Changed { .. } => "profile-changed",
        enrolment::Refusal::RosterClosed { .. } => "roster-closed",
    }
}

fn update_code(failure: &ClientFailure) -> &'static str {
    match failure {
        ClientFailure::Absent => "update-absent",
        ClientFailure::Twice => "update-twice",
        ClientFailure::Training(_) => "update-training",
        ClientFailure::BadJob(_) => "update-job",
        ClientFailure::Unreadable(_) => "update-unreadable",
        ClientFailure::WrongRound { .. } => "update-round",
        ClientFailure::WrongShape { .. } => "update-shape",
        ClientFailure::NotFinite { .. } => "update-not-finite",
        ClientFailure::Steps { .. } => "update-steps",
        ClientFailure::Reach { .. } => "update-reach",
        ClientFailure::NegativeVariance { .. } => "update-variance",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clients_words_are_cut_and_cannot_write_a_line_of_their_own() {
        assert_eq!(plain("good\nrefused [late]\u{1b}[2J"), "good\\nrefused [late]\\u{1b}[2J");
        assert_eq!(plain(&"x".repeat(100_000)).chars().count(), LONGEST + 1);
        assert_eq!(plain("Zürich …"), "Zürich …");
    }
}
