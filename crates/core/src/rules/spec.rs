//! The definition of a method: name, paper, parameters with ranges, and how to make its recipe.
//!
//! Command line, configuration, help, documentation, sweeps and tests all read these and nothing else.

use crate::rules::{Recipe, Rule};
use crate::settings::{Param, ParamError, Value};
use std::collections::BTreeMap;
use std::fmt;

/// One method.
#[derive(Debug)]
pub struct Spec {
    /// The name that users type.
    pub name: &'static str,
    /// One sentence.
    pub about: &'static str,
    /// Authors, title, venue, year.
    pub paper: &'static str,
    /// What can be set.
    pub params: &'static [Param],
    /// A method whose rules it takes unless another name brings them.
    pub suggests: Option<&'static str>,
    /// A rule that must stay its own or FedAvg's, with the reason.
    pub keeps: Option<(Rule, &'static str)>,
    /// General properties that this method does not have, with the reason.
    pub lacks: &'static [(Property, &'static str)],
    /// Its rules under given settings.
    pub build: fn(&Settings) -> Recipe,
}

impl Spec {
    /// A method without parameters, suggestions or exceptions, to start from.
    pub const fn new(
        name: &'static str,
        about: &'static str,
        paper: &'static str,
        build: fn(&Settings) -> Recipe,
    ) -> Self {
        Self { name, about, paper, params: &[], suggests: None, keeps: None, lacks: &[], build }
    }
}

/// What most methods have in common; the contract tests run each over every method that does not lack it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// Equal clients with equal models give that model back, as FedAvg does.
    AgreesOnEqualClients,
    /// A client's local model is that of plain SGD on cross-entropy.
    TrainsPlainly,
    /// Clients of equal size and labels have equal weights.
    EqualWeightsForEqualClients,
    /// The next model lies within the range of the clients' models, number by number.
    StaysBetweenTheClients,
    /// Buffers become the clients' mean, with the weights of the round.
    AveragesBuffers,
}

impl Property {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::AgreesOnEqualClients,
        Self::TrainsPlainly,
        Self::EqualWeightsForEqualClients,
        Self::StaysBetweenTheClients,
        Self::AveragesBuffers,
    ];
}

impl fmt::Display for Property {
    /// What a method without it is like.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AgreesOnEqualClients => "identical clients do not simply give back their common model",
            Self::TrainsPlainly => "a client does not train by plain SGD on cross-entropy",
            Self::EqualWeightsForEqualClients => "equal clients can have unequal weights",
            Self::StaysBetweenTheClients => "the next model can lie outside the range of the clients' models",
            Self::AveragesBuffers => "buffers are not averaged with the clients' weights",
        })
    }
}

/// Checked values of a method's parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings(BTreeMap<&'static str, Value>);

impl Settings {
    /// The default of every parameter.
    pub fn defaults(spec: &Spec) -> Self {
        let default = |param: &'static Param| Some((param.name, param.default()?));
        Self(spec.params.iter().filter_map(default).collect())
    }

    /// Sets one parameter from its text.
    pub fn set(&mut self, param: &'static Param, text: &str) -> Result<(), ParamError> {
        self.0.insert(param.name, param.parse(text)?);
        Ok(())
    }

    /// A number that the spec declares.
    ///
    /// # Panics
    /// When the spec declares no such number: a mistake in the strategy's file.
    pub fn number(&self, name: &str) -> f64 {
        match self.0.get(name) {
            Some(Value::Number(value)) => *value,
            _ => panic!("the spec declares no number {name}"),
        }
    }

    /// A flag that the spec declares.
    ///
    /// # Panics
    /// When the spec declares no such flag: a mistake in the strategy's file.
    pub fn flag(&self, name: &str) -> bool {
        match self.0.get(name) {
            Some(Value::Flag(value)) => *value,
            _ => panic!("the spec declares no flag {name}"),
        }
    }

    /// What differs from the defaults, as `:name=value`.
    pub(crate) fn changes(&self, spec: &Spec) -> String {
        let changed = spec.params.iter().filter(|param| self.0.get(param.name) != param.default().as_ref());
        changed.map(|param| format!(":{}={}", param.name, self.0[param.name].bare())).collect()
    }
}
