//! What can stand behind a key.

use std::fmt;
use toml::de::DeValue;

/// A value as TOML knows it.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Text.
    Text(String),
    /// A number, whole or not.
    Number(f64),
    /// A whole number.
    Whole(u64),
    /// Yes or no.
    Flag(bool),
    /// Several of them.
    List(Vec<Value>),
}

impl Value {
    /// The value of a parsed TOML value; `None` for dates and tables, which no key takes.
    pub(crate) fn of(parsed: &DeValue<'_>) -> Option<Self> {
        Some(match parsed {
            DeValue::String(text) => Self::Text(text.to_string()),
            DeValue::Boolean(flag) => Self::Flag(*flag),
            DeValue::Float(float) => Self::Number(float.as_str().parse().ok()?),
            DeValue::Integer(integer) => match u64::from_str_radix(integer.as_str(), integer.radix()) {
                Ok(whole) => Self::Whole(whole),
                // Negative, or beyond 64 bits: no key takes it, but the message can show it.
                Err(_) => Self::Number(integer.as_str().parse().ok()?),
            },
            DeValue::Array(items) => {
                Self::List(items.iter().map(|item| Self::of(item.get_ref())).collect::<Option<_>>()?)
            }
            DeValue::Datetime(_) | DeValue::Table(_) => return None,
        })
    }

    /// A value from the command line: TOML where it is TOML, otherwise text.
    pub(crate) fn typed(text: &str) -> Self {
        let parsed = DeValue::parse(text).ok().and_then(|parsed| Self::of(parsed.get_ref()));
        parsed.unwrap_or_else(|| Self::Text(text.to_owned()))
    }

    /// As a message shows it.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            other => other.to_string(),
        }
    }

    /// As a strategy's parameter: the text that its spec parses.
    pub(crate) fn bare(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Value {
    /// As TOML.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "{}", toml::Value::from(text.as_str())),
            // A float keeps its point, so that it is a float again when read.
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
