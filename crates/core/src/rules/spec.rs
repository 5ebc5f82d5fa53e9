//! The definition of a method: name, paper, parameters with ranges, and its recipe.
//!
//! Command line, configuration, help, documentation, sweeps and tests all use these definitions and no others.

use crate::rules::{Origin, Outside, Recipe, Rule};
use crate::settings::{Param, ParamError, Value};
use std::collections::BTreeMap;
use std::fmt;

/// One method.
#[derive(Debug)]
pub struct Spec {
    /// The name that users type.
    pub name: &'static str,
    /// A description in one sentence.
    pub about: &'static str,
    /// Authors, title, venue, year.
    pub paper: &'static str,
    /// What a user should know before choosing it.
    pub guide: Guide,
    /// Its parameters.
    pub params: &'static [Param],
    /// A method whose rules it uses unless another name defines them.
    pub suggests: Option<&'static str>,
    /// Rules that no other method may define in a composition, with the reasons.
    pub keeps: &'static [(Rule, &'static str)],
    /// General properties that this method does not have, with the reason.
    pub lacks: &'static [(Property, &'static str)],
    /// Its rules under given settings.
    pub build: fn(&Settings) -> Recipe,
    /// Where its rules come from, if it is registered at run time.
    pub outside: Option<&'static Origin>,
}

impl Spec {
    /// A method without parameters, suggestions or exceptions, to start from.
    pub const fn new(
        name: &'static str,
        about: &'static str,
        paper: &'static str,
        build: fn(&Settings) -> Recipe,
    ) -> Self {
        let guide = Guide { formula: "", choose: "", avoid: "", cost: "" };
        Self {
            name,
            about,
            paper,
            guide,
            params: &[],
            suggests: None,
            keeps: &[],
            lacks: &[],
            build,
            outside: None,
        }
    }

    /// A method from outside, to be registered with [`register`](crate::strategy::register).
    pub fn outside(name: &'static str, about: &'static str, paper: &'static str, origin: Origin) -> Self {
        // Strategies refer to it for as long as the program runs.
        let origin = Box::leak(Box::new(origin));
        Self { outside: Some(origin), ..Self::new(name, about, paper, Settings::outside_recipe) }
    }
}

/// What a user should know before choosing a method.
#[derive(Clone, Copy, Debug)]
pub struct Guide {
    /// Its formula in plain text.
    pub formula: &'static str,
    /// When to choose it; completes "choose it …".
    pub choose: &'static str,
    /// When not to; completes "avoid it …".
    pub avoid: &'static str,
    /// What it costs in memory and communication.
    pub cost: &'static str,
}

/// A property that most methods have. Contract tests check it for every method that does not list it as lacking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// Equal clients with equal models yield that model, as in FedAvg.
    AgreesOnEqualClients,
    /// A client's local training is plain SGD on cross-entropy.
    TrainsPlainly,
    /// Clients of equal size and labels have equal weights.
    EqualWeightsForEqualClients,
    /// Each parameter of the next model lies within the range of the clients' models.
    StaysBetweenTheClients,
    /// Buffers are averaged over the clients with the weights of the round.
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
    /// Describes a method that lacks it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AgreesOnEqualClients => "identical clients do not simply yield their common model",
            Self::TrainsPlainly => "a client does not train by plain SGD on cross-entropy",
            Self::EqualWeightsForEqualClients => "equal clients can have unequal weights",
            Self::StaysBetweenTheClients => "the next model can lie outside the range of the clients' models",
            Self::AveragesBuffers => "buffers are not averaged with the clients' weights",
        })
    }
}

/// Checked values of a method's parameters.
#[derive(Clone, Debug)]
pub struct Settings {
    values: BTreeMap<&'static str, Value>,
    /// The method's name and origin, if it comes from outside.
    outside: Option<(&'static str, &'static Origin)>,
}

impl Settings {
    /// The default of every parameter.
    pub fn defaults(spec: &Spec) -> Self {
        let default = |param: &'static Param| Some((param.name, param.default()?));
        let outside = spec.outside.map(|origin| (spec.name, origin));
        Self { values: spec.params.iter().filter_map(default).collect(), outside }
    }

    /// Parses and sets one parameter.
    pub fn set(&mut self, param: &'static Param, text: &str) -> Result<(), ParamError> {
        self.values.insert(param.name, param.parse(text)?);
        Ok(())
    }

    /// The value of a numeric parameter.
    ///
    /// # Panics
    /// Panics if the spec declares no such number: a bug in the strategy's file.
    pub fn number(&self, name: &str) -> f64 {
        match self.values.get(name) {
            Some(Value::Number(value)) => *value,
            _ => panic!("the spec declares no number {name}"),
        }
    }

    /// The value of a whole number.
    ///
    /// # Panics
    /// Panics if the spec declares no such whole number: a bug in the strategy's file.
    pub fn whole(&self, name: &str) -> u64 {
        match self.values.get(name) {
            Some(Value::Whole(value)) => *value,
            _ => panic!("the spec declares no whole number {name}"),
        }
    }

    /// The value of a flag.
    ///
    /// # Panics
    /// Panics if the spec declares no such flag: a bug in the strategy's file.
    pub fn flag(&self, name: &str) -> bool {
        match self.values.get(name) {
            Some(Value::Flag(value)) => *value,
            _ => panic!("the spec declares no flag {name}"),
        }
    }

    /// The rules of a method from outside.
    fn outside_recipe(&self) -> Recipe {
        let Some((name, origin)) = self.outside else { return Recipe::default() };
        let outside = Outside::new(name, &origin.source);
        let recipe = (origin.build)(self, &outside);
        Recipe { outside: vec![outside], ..recipe }
    }

    /// The settings that differ from the defaults, as `:name=value`.
    pub(crate) fn changes(&self, spec: &Spec) -> String {
        let changed =
            spec.params.iter().filter(|param| self.values.get(param.name) != param.default().as_ref());
        changed.map(|param| format!(":{}={}", param.name, self.values[param.name].bare())).collect()
    }
}
