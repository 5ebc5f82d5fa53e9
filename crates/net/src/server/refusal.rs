//! Why the server refuses a request: each reason has its own code, for logs and scripts, and a sentence.

use crate::wire::VersionMismatch;
pub(crate) use crate::wire::plain;
use fedtvd_core::round::{ClientFailure, ClientId, enrolment};
use thiserror::Error;

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Error)]
pub(crate) enum Refusal {
    /// A certificate that is not in the list of clients.
    #[error("certificate {0} is not in the list of clients; ask the operator to issue one")]
    Unknown(String),
    /// A certificate that was revoked.
    #[error("the certificate of {0} is revoked; ask the operator for a new one")]
    Revoked(String),
    /// A certificate that has expired, perhaps since the connection was made.
    #[error("the certificate of {name} expired at {expires}; ask the operator for a new one")]
    Expired {
        /// The client.
        name: String,
        /// Its last moment.
        expires: String,
    },
    /// A client asked for what only the operator may see.
    #[error("only the operator may ask for the status")]
    NotOperator,
    /// The operator is not a client.
    #[error("the server's own certificate is not a client's; ask the operator to issue one")]
    NotClient,
    /// Without TLS: a request that does not name its client.
    #[error("without TLS a client must state its number; \"{0}\" is not a number")]
    NoName(String),
    /// A client that has worked for a later server of the run.
    #[error(
        "the client has worked for a server of this run that was started later: one of the two serves a copy of the run \
         directory; stop one of them, and restart the other"
    )]
    Outdated,
    /// Another version of the protocol.
    #[error(transparent)]
    Protocol(#[from] VersionMismatch),
    /// Another run.
    #[error("this server runs {ours}; the request is for run {theirs}")]
    WrongRun {
        /// The server's.
        ours: String,
        /// The request's.
        theirs: String,
    },
    /// An update in another client's name.
    #[error("the update claims to be from client {claimed}, but the certificate is that of client {client}")]
    WrongClient {
        /// The client that the update names.
        claimed: ClientId,
        /// The client that the certificate names.
        client: ClientId,
    },
    /// A client that is not in the roster.
    #[error("client {0} is not in this run's roster")]
    NotInRoster(ClientId),
    /// More samples than the list of clients allows.
    #[error("client {client} claims {size} samples; the list of clients allows at most {most}")]
    AboveListed {
        /// The client.
        client: ClientId,
        /// What the client claims.
        size: u64,
        /// What the list allows.
        most: u64,
    },
    /// A larger hold-out than the list of clients allows.
    #[error("client {client} claims {holdout} hold-out samples; at most {most} are allowed")]
    HoldoutAboveListed {
        /// The client.
        client: ClientId,
        /// What the client claims.
        holdout: u64,
        /// What the list allows.
        most: u64,
    },
    /// A profile that core does not accept.
    #[error(transparent)]
    Profile(#[from] enrolment::Refusal),
    /// Statistics of a table's columns that cannot be true or are not asked for.
    #[error("the statistics of the columns are refused: {0}")]
    Columns(String),
    /// The clients' statistics together give no centres and scales.
    #[error(
        "the clients' statistics give no centres and scales: {0}; the operator must act, and clients try again"
    )]
    Standards(String),
    /// An enrolment before all centres and scales are known.
    #[error(
        "the centres and scales of the tables are not known yet; the statistics of the columns come first"
    )]
    SchemaOpen,
    /// A statistic that cannot be read.
    #[error("the label statistic cannot be read: {0}")]
    Statistic(String),
    /// An update from a client that has not enrolled.
    #[error("client {0} is not enrolled yet")]
    NotEnrolled(ClientId),
    /// A round that is over.
    #[error("round {} is closed; the update is too late and does not count", .round.saturating_add(1))]
    Late {
        /// The update's round.
        round: u32,
    },
    /// A round that has not begun.
    #[error("round {} has not begun; round {} is open", .round.saturating_add(1), .open.saturating_add(1))]
    Early {
        /// The update's round.
        round: u32,
        /// The open one.
        open: u32,
    },
    /// A client that is not in the round's cohort.
    #[error("client {client} was not selected in round {}", .round.saturating_add(1))]
    NotAsked {
        /// The round.
        round: u32,
        /// The client.
        client: ClientId,
    },
    /// A second, different update for the same job.
    #[error("client {client} already sent another update in round {}; the first one counts", .round.saturating_add(1))]
    TwoAnswers {
        /// The round.
        round: u32,
        /// The client.
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
    /// A site that will not take part.
    #[error("the site declines: {0}")]
    Declined(String),
    /// A malformed hash.
    #[error("\"{0}\" is not a SHA-256 of 64 lower-case hexadecimal digits")]
    BadHash(String),
    /// More bytes than an update has.
    #[error("{bytes} bytes were announced; an update of this model has at most {most}")]
    TooLong {
        /// Announced length.
        bytes: u64,
        /// Maximum length.
        most: u64,
    },
    /// Fewer bytes than an update has.
    #[error("{bytes} bytes were announced; an update of this model has at least {least}")]
    TooShort {
        /// Announced length.
        bytes: u64,
        /// Minimum length.
        least: u64,
    },
    /// The same client is uploading another update, or the same one is being accepted.
    #[error("client {0} is sending its update on another connection; try again")]
    Busy(ClientId),
    /// The same client continues the upload on another connection.
    #[error("client {0} continues its upload on another connection; this one ends")]
    TakenOver(ClientId),
    /// The same client is sending other large requests already.
    #[error("client {0} is sending two large requests already; try again")]
    TooManyRequests(ClientId),
    /// An upload that does not begin with a ticket.
    #[error("an upload must begin with its ticket")]
    NoTicket,
    /// A ticket where a chunk should be.
    #[error("an upload has a second ticket; only chunks may follow the first")]
    SecondTicket,
    /// Fewer bytes than announced.
    #[error("the upload ended after {got} of {bytes} bytes")]
    Truncated {
        /// Received length.
        got: u64,
        /// Announced length.
        bytes: u64,
    },
    /// More bytes than announced.
    #[error("the upload continues after the {0} announced bytes")]
    Overrun(u64),
    /// Bytes that are not the announced ones.
    #[error("the bytes have hash {got}; {announced} was announced")]
    WrongHash {
        /// Hash of the received bytes.
        got: String,
        /// Announced hash.
        announced: String,
    },
    /// An upload that stalled.
    #[error("the upload stalled for {0} seconds")]
    Stalled(u64),
    /// An upload that is too slow.
    #[error("the upload is too slow: {got} of {bytes} bytes in {seconds} seconds")]
    TooSlow {
        /// Received length.
        got: u64,
        /// Announced length.
        bytes: u64,
        /// Elapsed time.
        seconds: u64,
    },
    /// The update itself is not acceptable.
    #[error("{0}")]
    Update(ClientFailure),
    /// The disk is full.
    #[error("the server's disk is full; the update was not kept, try again later")]
    DiskFull,
    /// The disk failed in another way.
    #[error("the server could not store the update; try again later")]
    Disk,
    /// Impossible counts.
    #[error("the counts of the hold-out are impossible: {0}")]
    BadCounts(String),
    /// Counts that the server did not ask for.
    #[error("the server is not waiting for counts of round {}", .0.saturating_add(1))]
    NotEvaluating(u32),
}

impl Refusal {
    /// The code for scripts; it never changes.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "unknown-certificate",
            Self::Revoked(_) => "revoked",
            Self::Expired { .. } => "expired",
            Self::NotOperator => "not-operator",
            Self::NotClient => "not-client",
            Self::NoName(_) => "no-name",
            Self::Outdated => "outdated-server",
            Self::Protocol(_) => "wrong-protocol",
            Self::WrongRun { .. } => "wrong-run",
            Self::WrongClient { .. } => "wrong-client",
            Self::NotInRoster(_) => "not-in-roster",
            Self::AboveListed { .. } => "size-above-listed",
            Self::HoldoutAboveListed { .. } => "holdout-above-listed",
            Self::Profile(refusal) => profile_code(refusal),
            Self::Statistic(_) => "statistic-unreadable",
            Self::Columns(_) => "columns-invalid",
            Self::Standards(_) => "standards-failed",
            Self::SchemaOpen => "schema-open",
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
            Self::TakenOver(_) => "taken-over",
            Self::TooManyRequests(_) => "too-many-requests",
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
            Self::Declined(_) => "declined-by-site",
            Self::BadCounts(_) => "bad-counts",
            Self::NotEvaluating(_) => "not-evaluating",
        }
    }

    /// Whether the same request may succeed later.
    pub(crate) fn passing(&self) -> bool {
        matches!(
            self,
            Self::Busy(_)
                | Self::TakenOver(_)
                | Self::TooManyRequests(_)
                | Self::Outdated
                | Self::Truncated { .. }
                | Self::Overrun(_)
                | Self::WrongHash { .. }
                | Self::Stalled(_)
                | Self::TooSlow { .. }
                | Self::DiskFull
                | Self::Disk
                | Self::Standards(_)
                | Self::SchemaOpen
        )
    }
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
        ClientFailure::WrongBranch { .. } => "update-branch",
        ClientFailure::WrongRound { .. } => "update-round",
        ClientFailure::WrongShape { .. } => "update-shape",
        ClientFailure::NotFinite { .. } => "update-not-finite",
        ClientFailure::Steps { .. } => "update-steps",
        ClientFailure::Reach { .. } => "update-reach",
        ClientFailure::NegativeVariance { .. } => "update-variance",
        ClientFailure::BeyondBound { .. } => "update-norm",
        ClientFailure::LostOwnPart => "update-own-part",
        ClientFailure::Recorded(_) => "update-recorded",
    }
}
