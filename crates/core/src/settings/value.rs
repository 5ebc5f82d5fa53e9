//! The value of a parameter.

use std::fmt;
use toml_writer::ToTomlValue as _;

/// A TOML value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Text.
    Text(String),
    /// A number, whole or not.
    Number(f64),
    /// A whole number.
    Whole(u64),
    /// True or false.
    Flag(bool),
    /// A list.
    List(Vec<Value>),
}

impl Value {
    /// Parses unquoted text: true or false, a number, otherwise the text itself.
    pub fn of_text(text: &str) -> Self {
        let flag = || text.parse().ok().map(Self::Flag);
        let whole = || text.parse().ok().map(Self::Whole);
        let number = || text.parse().ok().map(Self::Number);
        flag().or_else(whole).or_else(number).unwrap_or_else(|| Self::Text(text.to_owned()))
    }

    /// Its numeric value, whole or not.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Whole(whole) => Some(*whole as f64),
            _ => None,
        }
    }

    /// Without quotation marks, as in a strategy's name or after `--set`.
    pub fn bare(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) => number.to_string(),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Value {
    /// As TOML.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(&text.to_toml_value()),
            // A float keeps its decimal point, so that it is read back as a float.
            Self::Number(number) => write!(f, "{number:?}"),
            Self::Whole(whole) => whole.fmt(f),
            Self::Flag(flag) => flag.fmt(f),
            Self::List(items) => {
                let items: Vec<String> = items.iter().map(Self::to_string).collect();
                write!(f, "[{}]", items.join(", "))
            }
        }
    }
}
