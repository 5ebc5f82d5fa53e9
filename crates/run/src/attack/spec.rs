//! The definition of an attack: its name, and a function for each place where it acts.

use crate::attack::Honest;
use fedtvd_core::labels::Reference;
use fedtvd_core::round::{Job, Upload};
use fedtvd_core::train::Evaluation;
use std::fmt;

/// One attack. It acts where it has a function; everything else that the client does is honest.
#[derive(Debug)]
pub struct Spec {
    /// The name that users type.
    pub name: &'static str,
    /// A description in one sentence.
    pub about: &'static str,
    /// The default of its factor; `None` if it has no factor, 0 if the factor follows from the round.
    pub scale: Option<f64>,
    /// The label that it puts in place of a true one, of this number of classes.
    pub label: Option<fn(label: u32, classes: usize) -> u32>,
    /// The label counts that it pretends to have.
    pub counts: Option<fn(&Claim<'_>) -> Vec<u64>>,
    /// Changes what the client trained and what it reports about it.
    pub update: Option<fn(&mut Upload, &Situation<'_>)>,
    /// The result that it reports instead of evaluating a model, of this number of classes and hold-out samples.
    pub evaluation: Option<fn(classes: usize, holdout: u64) -> Evaluation>,
    /// Whether its liars know what the honest clients of their round trained. A client of a federation does not.
    pub colludes: bool,
}

/// What a false profile is made from.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// The client's true label counts.
    pub counts: &'a [u64],
    /// The reference label distribution Q.
    pub reference: &'a Reference,
    /// The size to claim, about.
    pub size: u64,
}

/// What a liar knows when it changes its update.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    /// The job.
    pub job: &'a Job,
    /// The branch whose model it trained; 0 if there is only one.
    pub branch: u32,
    /// The strategy's proximal term, which bounds what reaches are possible.
    pub mu: f64,
    /// The size that the client claimed.
    pub size: u64,
    /// The factor.
    pub scale: f64,
    /// What the honest clients of the round trained, if the attack needs it and there are any.
    pub honest: Option<&'a Honest>,
}

impl<'a> Situation<'a> {
    /// The values of the model that it started from.
    pub fn base(&self) -> &'a [f32] {
        &self.job.offer.model(self.branch).unwrap_or(&self.job.offer.params).values
    }
}

/// Where an attack acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The training data.
    Data,
    /// The profile at enrolment: size and label statistic.
    Profile,
    /// The update of each round.
    Update,
    /// The evaluation of the global model on the client's hold-out.
    Evaluation,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Data => "data",
            Self::Profile => "profile",
            Self::Update => "update",
            Self::Evaluation => "evaluation",
        })
    }
}

impl Spec {
    /// An attack that does nothing yet, to start from.
    pub(crate) const fn new(name: &'static str, about: &'static str) -> Self {
        let (scale, label, counts, update, evaluation) = (None, None, None, None, None);
        Self { name, about, scale, label, counts, update, evaluation, colludes: false }
    }

    /// Where it acts.
    pub fn places(&self) -> Vec<Place> {
        let places = [
            (self.label.is_some(), Place::Data),
            (self.counts.is_some(), Place::Profile),
            (self.update.is_some(), Place::Update),
            (self.evaluation.is_some(), Place::Evaluation),
        ];
        places.into_iter().filter(|(acts, _)| *acts).map(|(_, place)| place).collect()
    }

    /// Whether a claimed number of samples is part of it.
    pub fn sized(&self) -> bool {
        self.counts.is_some()
    }
}
