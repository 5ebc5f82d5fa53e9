//! A parameter of a strategy or a configuration, defined once: name, kind, default, range and one line of help.
//!
//! A strategy's spec and the table of configuration keys are lists of these. `--set`, files, sweeps, `fedtvd init`,
//! `fedtvd strategies` and the documentation all read and print parameters through this module.

use crate::settings::{Range, Value};

use std::fmt;
use thiserror::Error;

/// One parameter of a strategy, or one key of a configuration.
#[derive(Debug)]
pub struct Param {
    /// Its name; that of a key includes its table, such as `split.alpha`.
    pub name: &'static str,
    /// Its kind of value and its default.
    pub kind: ParamKind,
    /// One line of help.
    pub about: &'static str,
}

/// A kind of value, with the default.
#[derive(Clone, Copy, Debug)]
pub enum ParamKind {
    /// Any text.
    Text {
        /// The default.
        default: &'static str,
    },
    /// One of a set of words.
    Choice {
        /// The default.
        default: &'static str,
        /// The allowed words.
        choices: &'static [&'static str],
    },
    /// A whole number.
    Whole {
        /// The default.
        default: u64,
        /// The minimum.
        low: u64,
        /// The maximum.
        high: u64,
    },
    /// A seed that follows the run's seed unless set.
    Seed,
    /// A number within a range.
    Number {
        /// The default.
        default: f64,
        /// The allowed range.
        range: Range,
    },
    /// True or false.
    Flag {
        /// The default.
        default: bool,
    },
    /// A list of strings, one per layer of a model; empty by default.
    Layers,
    /// One number per class, or a word.
    PerClass {
        /// The default, one of the words.
        default: &'static str,
        /// The allowed words.
        words: &'static [&'static str],
    },
}

/// A value that a parameter does not allow.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{name} = {value} is not allowed; it must be {expected}")]
pub struct ParamError {
    /// The parameter.
    pub name: String,
    /// The value given.
    pub value: String,
    /// What is allowed.
    pub expected: String,
}

impl ParamError {
    /// The error for an unexpected value; numbers are shown without a trailing `.0`.
    pub fn new(name: &str, value: &Value, expected: impl fmt::Display) -> Self {
        let value = if let Value::Number(number) = value { number.to_string() } else { value.to_string() };
        Self { name: name.to_owned(), value, expected: expected.to_string() }
    }
}

impl Param {
    /// Any text.
    pub const fn text(name: &'static str, default: &'static str, about: &'static str) -> Self {
        Self { name, kind: ParamKind::Text { default }, about }
    }

    /// A whole number from `low` to `high`.
    pub const fn whole(
        name: &'static str,
        default: u64,
        (low, high): (u64, u64),
        about: &'static str,
    ) -> Self {
        Self { name, kind: ParamKind::Whole { default, low, high }, about }
    }

    /// A number within a range.
    pub const fn number(name: &'static str, default: f64, range: Range, about: &'static str) -> Self {
        Self { name, kind: ParamKind::Number { default, range }, about }
    }

    /// True or false.
    pub const fn flag(name: &'static str, default: bool, about: &'static str) -> Self {
        Self { name, kind: ParamKind::Flag { default }, about }
    }

    /// The default; `None` for a seed, which follows the run's seed.
    pub fn default(&self) -> Option<Value> {
        Some(match self.kind {
            ParamKind::Text { default }
            | ParamKind::Choice { default, .. }
            | ParamKind::PerClass { default, .. } => Value::Text(default.to_owned()),
            ParamKind::Whole { default, .. } => Value::Whole(default),
            ParamKind::Number { default, .. } => Value::Number(default),
            ParamKind::Flag { default } => Value::Flag(default),
            ParamKind::Layers => Value::List(Vec::new()),
            ParamKind::Seed => return None,
        })
    }

    /// Parses unquoted text and converts it as [`Param::check`] does.
    pub fn parse(&self, text: &str) -> Result<Value, ParamError> {
        self.check(match self.kind {
            ParamKind::Text { .. } | ParamKind::Choice { .. } => Value::Text(text.to_owned()),
            _ => Value::of_text(text),
        })
    }

    /// Converts a value to the parameter's kind, for instance 1 to 1.0 or 1e3 to 1000, or refuses it.
    pub fn check(&self, value: Value) -> Result<Value, ParamError> {
        let list = |fits: fn(&Value) -> bool| matches!(&value, Value::List(items) if items.iter().all(fits));
        let word = |words: &[&str]| matches!(&value, Value::Text(word) if words.contains(&word.as_str()));
        let fits = match self.kind {
            ParamKind::Text { .. } => matches!(value, Value::Text(_)),
            ParamKind::Choice { choices, .. } => word(choices),
            ParamKind::Whole { low, high, .. } => match whole(&value) {
                Some(whole) if (low..=high).contains(&whole) => return Ok(Value::Whole(whole)),
                _ => false,
            },
            ParamKind::Seed => matches!(value, Value::Whole(_)),
            ParamKind::Number { range, .. } => match value.number() {
                Some(number) if range.contains(number) => return Ok(Value::Number(number)),
                _ => false,
            },
            ParamKind::Flag { .. } => matches!(value, Value::Flag(_)),
            ParamKind::Layers => list(|item| matches!(item, Value::Text(_))),
            ParamKind::PerClass { words, .. } => word(words) || list(|item| item.number().is_some()),
        };
        if fits { Ok(value) } else { Err(self.refusal(&value)) }
    }

    fn refusal(&self, value: &Value) -> ParamError {
        match self.kind {
            ParamKind::Number { range, .. } if value.number().is_none() => {
                ParamError::new(self.name, value, format_args!("a number, {range}"))
            }
            kind => ParamError::new(self.name, value, kind),
        }
    }
}

/// The whole number that a value represents. 1e3 is a float in TOML and a thousand to everyone else.
fn whole(value: &Value) -> Option<u64> {
    match *value {
        Value::Whole(whole) => Some(whole),
        Value::Number(number) => Some(number as u64).filter(|whole| *whole as f64 == number),
        _ => None,
    }
}

impl fmt::Display for ParamKind {
    /// Describes what is allowed, for messages.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text { .. } => f.write_str("text"),
            Self::Choice { choices: [others @ .., last], .. } => write!(f, "{} or {last}", others.join(", ")),
            Self::Choice { choices: [], .. } => f.write_str("nothing"),
            Self::Whole { low, high, .. } => write!(f, "a whole number from {low} to {high}"),
            Self::Seed => f.write_str("a whole number that is not negative"),
            Self::Number { range, .. } => range.fmt(f),
            Self::Flag { .. } => f.write_str("true or false"),
            Self::Layers => f.write_str("a list of strings, one per layer"),
            Self::PerClass { words, .. } => {
                write!(f, "{}, or a list of numbers, one per class", words.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_converted_to_its_kind_or_refused_with_what_is_allowed() {
        let lambda = Param::number("lambda", 0.5, Range::UNIT, "a share");
        let rounds = Param::whole("rounds", 50, (1, 1000), "a count");
        let mode = ParamKind::Choice { default: "a", choices: &["a", "b", "c"] };
        let mode = Param { name: "mode", kind: mode, about: "a choice" };
        assert_eq!(lambda.parse("1"), Ok(Value::Number(1.0)));
        assert_eq!(rounds.parse("1e3"), Ok(Value::Whole(1000)));
        assert_eq!(mode.parse("b"), Ok(Value::Text("b".to_owned())));
        for (param, text, message) in [
            (&lambda, "1.5", "lambda = 1.5 is not allowed; it must be 0 to 1"),
            (&lambda, "NaN", "lambda = NaN is not allowed; it must be 0 to 1"),
            (&lambda, "much", "lambda = \"much\" is not allowed; it must be a number, 0 to 1"),
            (&rounds, "-1", "rounds = -1 is not allowed; it must be a whole number from 1 to 1000"),
            (&mode, "1", "mode = \"1\" is not allowed; it must be a, b or c"),
        ] {
            assert_eq!(param.parse(text).unwrap_err().to_string(), message);
        }
    }
}
