//! Requests of a schedule's clients, and the server's answers.

use crate::fault_schedules::client::Unsent;
use crate::wire;
use fedtvd_core::round::Job;

/// A request on its way.
#[derive(Clone)]
pub(super) struct Request {
    pub(super) number: u64,
    pub(super) client: usize,
    pub(super) connection: u64,
    pub(super) run: String,
    pub(super) content: Content,
}

/// What a request asks for.
#[derive(Clone)]
pub(super) enum Content {
    Pull,
    Enrol(wire::Enrolment),
    Upload(Unsent),
    Fail(u32),
    Evaluate(wire::Counts),
}

/// The server's answer.
pub(super) enum Reply {
    Done,
    Wait,
    Survey(wire::Survey),
    Job(Job, String),
    Evaluate(u32),
    Finished(wire::Finished),
    Received,
}

impl Reply {
    /// For people.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Wait => "wait",
            Self::Survey(_) => "survey",
            Self::Job(..) => "job",
            Self::Evaluate(_) => "evaluate",
            Self::Finished(_) => "finished",
            Self::Received => "received",
        }
    }
}

impl Content {
    /// For people.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Pull => "pull".to_owned(),
            Self::Enrol(_) => "enrol".to_owned(),
            Self::Upload(update) => format!("update {} of round {}", &update.hash[..8], update.round + 1),
            Self::Fail(round) => format!("failure in round {}", round + 1),
            Self::Evaluate(counts) => format!("evaluation after round {}", counts.round + 1),
        }
    }
}
