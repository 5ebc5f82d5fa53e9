//! Conversion of TOML values.

use crate::configuration::ConfigError;
use fedtvd_core::settings::ParamError;
pub use fedtvd_core::settings::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Parses TOML.
pub(crate) fn table(text: &str) -> Result<Spanned<DeTable<'_>>, ConfigError> {
    DeTable::parse(text).map_err(|error| ConfigError::Syntax(error.to_string().trim_end().to_owned()))
}

/// Converts a TOML value; `None` for dates and tables, which no key takes.
pub(crate) fn parsed(value: &DeValue<'_>) -> Option<Value> {
    Some(match value {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Float(float) => Value::Number(float.as_str().parse().ok()?),
        DeValue::Integer(integer) => match u64::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(whole) => Value::Whole(whole),
            // Negative or beyond 64 bits: no key takes it, but the message can show it.
            Err(_) => Value::Number(integer.as_str().parse().ok()?),
        },
        DeValue::Array(items) => {
            Value::List(items.iter().map(|item| parsed(item.get_ref())).collect::<Option<_>>()?)
        }
        DeValue::Datetime(_) | DeValue::Table(_) => return None,
    })
}

/// The error for a TOML value other than expected.
pub(crate) fn refusal(path: &str, value: &DeValue<'_>, expected: &str) -> ParamError {
    match parsed(value) {
        Some(value) => ParamError::new(path, &value, expected),
        None => ParamError {
            name: path.to_owned(),
            value: "a date or a table".to_owned(),
            expected: expected.to_owned(),
        },
    }
}

/// A value from the command line: TOML if it parses as such, otherwise text.
pub(crate) fn typed(text: &str) -> Value {
    let value = DeValue::parse(text).ok().and_then(|value| parsed(value.get_ref()));
    value.unwrap_or_else(|| Value::Text(text.to_owned()))
}
