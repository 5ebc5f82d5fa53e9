//! A strategy is a value made of independent rules; a recipe holds the rules in which a method differs from FedAvg.

use crate::labels::Ask;
use crate::matching::Matching;
use crate::model::{Layout, Parts};
use crate::rules::{
    Combine, Grouping, LocalRule, Loss, Needs, Outside, Personal, Selection, ServerRule, Sharing, Weighting,
};
use std::fmt;
use std::sync::Arc;

/// The rules that a method defines. FedAvg supplies the others.
#[derive(Clone, Debug, Default)]
pub struct Recipe {
    /// The weight of each client.
    pub weighting: Option<Arc<dyn Weighting>>,
    /// What a client minimises.
    pub loss: Option<Arc<dyn Loss>>,
    /// How a client trains.
    pub local: Option<Arc<dyn LocalRule>>,
    /// How updates are combined.
    pub combine: Option<Arc<dyn Combine>>,
    /// How the server updates the global model.
    pub server: Option<Arc<dyn ServerRule>>,
    /// Who is asked in a round.
    pub selection: Option<Arc<dyn Selection>>,
    /// Which tensors travel.
    pub sharing: Option<Arc<dyn Sharing>>,
    /// Which model a client itself uses.
    pub personal: Option<Arc<dyn Personal>>,
    /// Which clients share a model.
    pub grouping: Option<Arc<dyn Grouping>>,
    /// Which units of the clients' networks correspond.
    pub matching: Option<Matching>,
    /// The methods from outside that it is made of.
    pub outside: Vec<Outside>,
}

/// The name of one rule of a recipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// [`Recipe::weighting`].
    Weighting,
    /// [`Recipe::loss`].
    Loss,
    /// [`Recipe::local`].
    Local,
    /// [`Recipe::combine`].
    Combine,
    /// [`Recipe::server`].
    Server,
    /// [`Recipe::selection`].
    Selection,
    /// [`Recipe::sharing`].
    Sharing,
    /// [`Recipe::personal`].
    Personal,
    /// [`Recipe::grouping`].
    Grouping,
    /// [`Recipe::matching`].
    Matching,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Weighting => "the clients' weights",
            Self::Loss => "the clients' loss",
            Self::Local => "local training",
            Self::Combine => "how updates are combined",
            Self::Server => "the server's step",
            Self::Selection => "client selection",
            Self::Sharing => "which tensors travel",
            Self::Personal => "which model a client itself uses",
            Self::Grouping => "which clients share a model",
            Self::Matching => "which units of the clients' networks correspond",
        })
    }
}

impl Recipe {
    /// The rules that it defines.
    pub fn rules(&self) -> Vec<Rule> {
        let brought = [
            self.weighting.is_some().then_some(Rule::Weighting),
            self.loss.is_some().then_some(Rule::Loss),
            self.local.is_some().then_some(Rule::Local),
            self.combine.is_some().then_some(Rule::Combine),
            self.server.is_some().then_some(Rule::Server),
            self.selection.is_some().then_some(Rule::Selection),
            self.sharing.is_some().then_some(Rule::Sharing),
            self.personal.is_some().then_some(Rule::Personal),
            self.grouping.is_some().then_some(Rule::Grouping),
            self.matching.is_some().then_some(Rule::Matching),
        ];
        brought.into_iter().flatten().collect()
    }

    /// The label statistic that it asks clients for.
    pub fn asks(&self) -> Ask {
        let selection = self.selection.as_ref().map_or(Ask::Nothing, |selection| selection.asks());
        if self.matching.is_some_and(|matching| matching.label_counts) {
            return Ask::Histogram;
        }
        let weighting = self.weighting.as_ref().map_or(Ask::Nothing, |weighting| weighting.asks());
        if selection == Ask::Nothing { weighting } else { selection }
    }

    /// Why clients must train with SGD, if one of its rules needs that.
    pub fn needs_sgd(&self) -> Option<&'static str> {
        let local = self.local.as_ref().and_then(|local| local.needs().sgd);
        local.or_else(|| self.combine.as_ref().and_then(|combine| combine.needs_sgd()))
    }

    /// The rules of both recipes; if both define a rule, `self` takes precedence.
    pub fn or(self, other: Self) -> Self {
        Self {
            weighting: self.weighting.or(other.weighting),
            loss: self.loss.or(other.loss),
            local: self.local.or(other.local),
            combine: self.combine.or(other.combine),
            server: self.server.or(other.server),
            selection: self.selection.or(other.selection),
            sharing: self.sharing.or(other.sharing),
            personal: self.personal.or(other.personal),
            grouping: self.grouping.or(other.grouping),
            matching: self.matching.or(other.matching),
            outside: [self.outside, other.outside].concat(),
        }
    }
}

/// A complete recipe with its name.
#[derive(Clone, Debug)]
pub struct Strategy {
    /// The name that parses to this strategy, such as `fedtvd:temperature=0.1+balanced`.
    pub label: String,
    /// The weight of each client.
    pub weighting: Arc<dyn Weighting>,
    /// What a client minimises.
    pub loss: Arc<dyn Loss>,
    /// How a client trains.
    pub local: Arc<dyn LocalRule>,
    /// How updates are combined.
    pub combine: Arc<dyn Combine>,
    /// How the server updates the global model.
    pub server: Arc<dyn ServerRule>,
    /// Who is asked in a round.
    pub selection: Arc<dyn Selection>,
    /// Which tensors travel.
    pub sharing: Arc<dyn Sharing>,
    /// Which model a client itself uses; `None` for the shared one, or the one that the local rule keeps.
    pub personal: Option<Arc<dyn Personal>>,
    /// Which clients share a model; `None` for one model for all.
    pub grouping: Option<Arc<dyn Grouping>>,
    /// The methods from outside that it is made of.
    pub outside: Vec<Outside>,
    /// Which units of the clients' networks correspond; `None` for those at the same place.
    pub matching: Option<Matching>,
}

impl Strategy {
    /// Why a rule from outside could not answer, if one could not: what it answered instead must not be used.
    pub fn failure(&self) -> Option<String> {
        self.outside.iter().find_map(Outside::failure)
    }

    /// The label statistic that clients report: what the weighting needs, or label counts if selection or matching need them.
    pub fn asks(&self) -> Ask {
        if self.matching.is_some_and(|matching| matching.label_counts) {
            return Ask::Histogram;
        }
        match self.selection.asks() {
            Ask::Nothing => self.weighting.asks(),
            more => more,
        }
    }

    /// What the round must know about local training; clients that keep tensors of their own remember them.
    pub fn needs(&self) -> Needs {
        let needs = self.local.needs();
        let remembers = needs.remembers || self.sharing.stays().is_some() || self.matching.is_some();
        Needs { remembers, ..needs }
    }

    /// The parts of a model: what travels, and what stays at each client.
    pub fn parts(&self, whole: &Arc<Layout>) -> Parts {
        Parts::new(whole, |tensor| self.sharing.travels(whole, tensor))
    }

    /// Whether clients use models of their own.
    pub fn is_personal(&self) -> bool {
        self.personal.is_some()
            || self.sharing.stays().is_some()
            || self.local.needs().own_model
            || self.grouping.is_some()
    }

    /// Number of models before the first round.
    pub fn models(&self) -> usize {
        self.grouping.as_ref().map_or(1, |grouping| grouping.models())
    }

    /// Whether each client chooses the model that it trains.
    pub fn clients_choose(&self) -> bool {
        self.grouping.as_ref().is_some_and(|grouping| grouping.clients_choose())
    }

    /// Whether all clients must be enrolled before the first round, because sums over all of them are kept.
    pub fn needs_roster(&self) -> bool {
        !self.local.needs().carries.is_empty() || self.server.sums_clients()
    }

    /// Why clients must train with SGD, if one of its rules needs that.
    pub fn needs_sgd(&self) -> Option<&'static str> {
        self.local.needs().sgd.or_else(|| self.combine.needs_sgd())
    }
}
