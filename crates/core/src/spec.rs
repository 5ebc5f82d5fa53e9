//! What a method says of itself: name, paper, parameters with ranges, and how to make its recipe.
//!
//! Command line, configuration, help, documentation, sweeps and tests all read these and nothing else.

use crate::recipe::{Part, Recipe};
use std::collections::BTreeMap;
use std::fmt;
use thiserror::Error;

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
    /// A method whose parts it takes unless another name brings them.
    pub suggests: Option<&'static str>,
    /// A part that must stay its own or FedAvg's, with the reason.
    pub keeps: Option<(Part, &'static str)>,
    /// General properties that this method does not have, with the reason.
    pub lacks: &'static [(Property, &'static str)],
    /// Its parts under given settings.
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
            Self::AgreesOnEqualClients => "equal clients do not simply give their model back",
            Self::TrainsPlainly => "a client's model is not that of plain SGD on cross-entropy",
            Self::EqualWeightsForEqualClients => "equal clients can have unequal weights",
            Self::StaysBetweenTheClients => "the next model can lie outside the range of the clients' models",
            Self::AveragesBuffers => "buffers are not averaged with the clients' weights",
        })
    }
}

/// A number or a yes-or-no that can be set.
#[derive(Debug)]
pub struct Param {
    /// Its name.
    pub name: &'static str,
    /// What it may be.
    pub kind: Kind,
    /// One line of help.
    pub about: &'static str,
}

/// What a parameter may be, and what it is when nothing is said.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A number within a range.
    Number {
        /// What it is unless set.
        default: f64,
        /// Where it may lie.
        range: Range,
    },
    /// Yes or no.
    Flag {
        /// What it is unless set.
        default: bool,
    },
}

/// From low to high, both included unless `open`, which leaves out the low end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The low end.
    pub low: f64,
    /// The high end; infinity, which is never included, for none.
    pub high: f64,
    /// Whether the low end is left out.
    pub open: bool,
}

impl Range {
    /// From 0 to 1.
    pub const UNIT: Self = Self { low: 0.0, high: 1.0, open: false };
    /// Any number that is not negative.
    pub const NOT_NEGATIVE: Self = Self { low: 0.0, high: f64::INFINITY, open: false };
    /// From 0 to anything below 1.
    pub const BELOW_ONE: Self = Self { low: 0.0, high: 1f64.next_down(), open: false };
    /// Any number above 0.
    pub const POSITIVE: Self = Self { low: 0.0, high: f64::INFINITY, open: true };

    /// Whether a value lies in it.
    pub fn contains(&self, value: f64) -> bool {
        value.is_finite() && value <= self.high && (value > self.low || !self.open && value == self.low)
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.open, self.high == f64::INFINITY) {
            (true, true) => write!(f, "above {}", self.low),
            (false, true) => write!(f, "{} or more", self.low),
            (true, false) => write!(f, "above {} and up to {}", self.low, self.high),
            (false, false) if *self == Self::BELOW_ONE => f.write_str("0 to below 1"),
            (false, false) => write!(f, "{} to {}", self.low, self.high),
        }
    }
}

/// A parameter's value that cannot be.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SettingError {
    /// A number outside its range.
    #[error("{param} = {value} is not allowed; it must be {range}")]
    OutOfRange {
        /// Which parameter.
        param: &'static str,
        /// What was given.
        value: f64,
        /// What would have been right.
        range: Range,
    },
    /// Something that is no number.
    #[error("{param} = {value} is no number; it must be {range}")]
    NoNumber {
        /// Which parameter.
        param: &'static str,
        /// What was given.
        value: String,
        /// What would have been right.
        range: Range,
    },
    /// Something that is neither true nor false.
    #[error("{param} = {value} is neither true nor false")]
    NoFlag {
        /// Which parameter.
        param: &'static str,
        /// What was given.
        value: String,
    },
}

/// Checked values of a method's parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings(BTreeMap<&'static str, Setting>);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Setting {
    Number(f64),
    Flag(bool),
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(value) => value.fmt(f),
            Self::Flag(value) => value.fmt(f),
        }
    }
}

impl Settings {
    /// What the parameters are when nothing is said.
    pub fn defaults(spec: &Spec) -> Self {
        Self(spec.params.iter().map(|param| (param.name, param.default())).collect())
    }

    /// Sets one parameter from its text.
    pub fn set(&mut self, param: &'static Param, text: &str) -> Result<(), SettingError> {
        let setting = match param.kind {
            Kind::Flag { .. } => Setting::Flag(
                text.parse()
                    .map_err(|_| SettingError::NoFlag { param: param.name, value: text.to_owned() })?,
            ),
            Kind::Number { range, .. } => {
                let value: f64 = text.parse().map_err(|_| SettingError::NoNumber {
                    param: param.name,
                    value: text.to_owned(),
                    range,
                })?;
                if !range.contains(value) {
                    return Err(SettingError::OutOfRange { param: param.name, value, range });
                }
                Setting::Number(value)
            }
        };
        self.0.insert(param.name, setting);
        Ok(())
    }

    /// A number that the spec declares.
    ///
    /// # Panics
    /// When the spec declares no such number: a mistake in the strategy's file.
    pub fn number(&self, name: &str) -> f64 {
        match self.0.get(name) {
            Some(Setting::Number(value)) => *value,
            _ => panic!("the spec declares no number {name}"),
        }
    }

    /// A flag that the spec declares.
    ///
    /// # Panics
    /// When the spec declares no such flag: a mistake in the strategy's file.
    pub fn flag(&self, name: &str) -> bool {
        match self.0.get(name) {
            Some(Setting::Flag(value)) => *value,
            _ => panic!("the spec declares no flag {name}"),
        }
    }

    /// What differs from the defaults, as `:name=value`.
    pub(crate) fn changes(&self, spec: &Spec) -> String {
        let mut text = String::new();
        for param in spec.params {
            let setting = &self.0[param.name];
            if *setting != param.default() {
                text += &format!(":{}={setting}", param.name);
            }
        }
        text
    }
}

impl Param {
    fn default(&self) -> Setting {
        match self.kind {
            Kind::Number { default, .. } => Setting::Number(default),
            Kind::Flag { default } => Setting::Flag(default),
        }
    }
}
