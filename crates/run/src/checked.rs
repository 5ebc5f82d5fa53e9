//! What a key takes: its default, and the check of a value.

use crate::keys::{Key, Kind};
use crate::value::Value;

impl Key {
    /// What it is unless set; `None` for a seed, which follows `seed`.
    pub(crate) fn default(&self) -> Option<Value> {
        Some(match self.kind {
            Kind::Text { default } | Kind::Word { default, .. } => Value::Text(default.to_owned()),
            Kind::Count { default, .. } => Value::Whole(default),
            Kind::Number { default, .. } => Value::Number(default),
            Kind::Flag { default } => Value::Flag(default),
            Kind::Lines => Value::List(Vec::new()),
            Kind::Reference => Value::Text("uniform".to_owned()),
            Kind::Seed => return None,
        })
    }

    /// The value as this key keeps it, or the value and what would have been right.
    pub(crate) fn checked(&self, value: Value) -> Result<Value, (Value, String)> {
        match (self.kind, value) {
            (Kind::Text { .. }, value @ Value::Text(_)) => Ok(value),
            (Kind::Text { .. }, value) => Err((value, "text".to_owned())),
            (Kind::Word { words, .. }, value) => match &value {
                Value::Text(word) if words.contains(&word.as_str()) => Ok(value),
                _ => Err((value, words.join(" or "))),
            },
            (Kind::Count { low, high, .. }, value) => match value {
                Value::Whole(whole) if (low..=high).contains(&whole) => Ok(value),
                // 1e3 is a float to TOML and a thousand to everyone else.
                Value::Number(number)
                    if (number as u64) as f64 == number && (low..=high).contains(&(number as u64)) =>
                {
                    Ok(Value::Whole(number as u64))
                }
                _ => Err((value, format!("a whole number from {low} to {high}"))),
            },
            (Kind::Seed, value @ Value::Whole(_)) => Ok(value),
            (Kind::Seed, value) => Err((value, "a whole number that is not negative".to_owned())),
            (Kind::Number { range, .. }, value) => match value {
                Value::Whole(whole) if range.contains(whole as f64) => Ok(Value::Number(whole as f64)),
                Value::Number(number) if range.contains(number) => Ok(value),
                Value::Number(_) | Value::Whole(_) => Err((value, range.to_string())),
                _ => Err((value, format!("a number, {range}"))),
            },
            (Kind::Flag { .. }, value @ Value::Flag(_)) => Ok(value),
            (Kind::Flag { .. }, value) => Err((value, "true or false".to_owned())),
            (Kind::Lines, value) => match &value {
                Value::List(lines) if lines.iter().all(|line| matches!(line, Value::Text(_))) => Ok(value),
                _ => Err((value, "a list of texts, one per layer".to_owned())),
            },
            (Kind::Reference, value) => match &value {
                Value::Text(word) if ["uniform", "aggregated"].contains(&word.as_str()) => Ok(value),
                Value::List(numbers)
                    if numbers.iter().all(|n| matches!(n, Value::Number(_) | Value::Whole(_))) =>
                {
                    Ok(value)
                }
                _ => Err((value, "uniform, aggregated, or a list of numbers, one per class".to_owned())),
            },
        }
    }
}
