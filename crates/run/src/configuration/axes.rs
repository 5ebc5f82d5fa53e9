//! The `[sweep]` and `[tune]` tables of a configuration: lists of values for any keys.
//!
//! ```toml
//! [sweep]
//! "strategy.name" = ["fedavg", "fedtvd"]
//! seed = [1, 2, 3]
//! split = [{ alpha = 0.1 }, { kind = "iid" }]                              # keys of one table that change together
//! together = [{ "data.set" = "cifar10", "model.name" = "resnet18" }]       # any keys that change together
//! ```

use crate::configuration::config::line_of;
use crate::configuration::{ConfigError, Value};
use crate::configuration::{lookup, value};
use toml::de::{DeTable, DeValue};

/// One list of a sweep: a key, or several that change together, with their values.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The key, or the table that holds several.
    pub path: String,
    /// Its line in the file.
    pub line: usize,
    /// The choices, each a list of keys and values.
    pub choices: Vec<Vec<(String, Value)>>,
}

/// Keys of this axis are written with their tables.
const TOGETHER: &str = "together";

/// The tables that hold axes, and no keys of a run.
pub(super) const TABLES: [&str; 2] = ["sweep", "tune"];

/// The axes of a configuration's `[sweep]` table, in the order of the file.
pub fn axes(text: &str) -> Result<Vec<Axis>, ConfigError> {
    axes_in(TABLES[0], text)
}

/// The axes of its `[tune]` table.
pub fn tuned_axes(text: &str) -> Result<Vec<Axis>, ConfigError> {
    axes_in(TABLES[1], text)
}

fn axes_in(name: &str, text: &str) -> Result<Vec<Axis>, ConfigError> {
    let table = value::table(text)?;
    let mut axes = Vec::new();
    if let Some(DeValue::Table(lists)) = table.get_ref().get(name).map(|value| value.get_ref()) {
        collect(text, (name, ""), lists, &mut axes)?;
    }
    axes.sort_by_key(|axis: &Axis| axis.line);
    Ok(axes)
}

impl Axis {
    /// One key with its values, from `key=value,value`.
    pub fn of(text: &str) -> Result<Self, ConfigError> {
        let (path, list) = text.split_once('=').ok_or_else(|| ConfigError::NoSetting(text.to_owned()))?;
        let path = lookup::full_path(path.trim())?;
        let choice = |text: &str| vec![(path.clone(), value::typed(text.trim()))];
        let choices = list.split(',').map(choice).collect();
        Ok(Self { path, line: 0, choices })
    }
}

fn collect(
    text: &str,
    (name_of_table, prefix): (&str, &str),
    table: &DeTable<'_>,
    axes: &mut Vec<Axis>,
) -> Result<(), ConfigError> {
    for (name, value) in table {
        let path = format!("{prefix}{}", name.get_ref());
        let line = line_of(text, name.span().start);
        let wrong = |value: &DeValue<'_>| {
            let why =
                value::refusal(&format!("{name_of_table}.{path}"), value, "a list of at least one value");
            ConfigError::Value { place: format!("line {line}: "), why }
        };
        match value.get_ref() {
            DeValue::Table(inner) => collect(text, (name_of_table, &format!("{path}.")), inner, axes)?,
            DeValue::Array(items) if !items.is_empty() => {
                let choice = |item: &DeValue<'_>| choice(&path, item).ok_or_else(|| wrong(item));
                let choices = items.iter().map(|item| choice(item.get_ref())).collect::<Result<_, _>>()?;
                axes.push(Axis { path, line, choices });
            }
            other => return Err(wrong(other)),
        }
    }
    Ok(())
}

/// The keys and values that one item of a list sets; `None` if a value is of a kind that no key takes.
fn choice(path: &str, item: &DeValue<'_>) -> Option<Vec<(String, Value)>> {
    let DeValue::Table(table) = item else { return Some(vec![(path.to_owned(), value::parsed(item)?)]) };
    let mut settings = Vec::new();
    for (name, value) in table {
        let inner =
            if path == TOGETHER { name.get_ref().to_string() } else { format!("{path}.{}", name.get_ref()) };
        settings.extend(choice(&inner, value.get_ref())?);
    }
    Some(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> Value {
        Value::Text(value.to_owned())
    }

    #[test]
    fn lists_become_axes_in_the_order_of_the_file() {
        let axes = axes("seed = 1\n[sweep]\n\"strategy.name\" = [\"fedavg\"]\nseed = [1, 2]\n").unwrap();
        let shown: Vec<_> =
            axes.iter().map(|axis| (axis.path.as_str(), axis.line, axis.choices.len())).collect();
        assert_eq!(shown, [("strategy.name", 3, 1), ("seed", 4, 2)]);
        assert_eq!(axes[0].choices[0], [("strategy.name".to_owned(), text("fedavg"))]);
    }

    #[test]
    fn an_axis_is_read_from_a_key_and_its_values() {
        let axis = Axis::of("lambda=0, 0.5").unwrap();
        let choice = |value| vec![("strategy.lambda".to_owned(), value)];
        assert_eq!(axis.choices, [choice(Value::Whole(0)), choice(Value::Number(0.5))]);
        assert!(Axis::of("local.lr").is_err() && Axis::of("lrr=1").is_err());
    }

    #[test]
    fn keys_may_change_together() {
        let axes = axes(
            "[sweep]\nsplit = [{ kind = \"iid\" }]\ntogether = [{ \"data.set\" = \"mnist\", model.name = \"mlp\" }]\n",
        )
        .unwrap();
        assert_eq!(axes[0].choices, [[("split.kind".to_owned(), text("iid"))]]);
        let both = [("data.set".to_owned(), text("mnist")), ("model.name".to_owned(), text("mlp"))];
        assert_eq!(axes[1].choices, [both]);
    }

    #[test]
    fn a_value_that_is_not_a_list_is_refused_with_its_line() {
        for (text, value) in [("[sweep]\nseed = 3", "3"), ("[sweep]\nseed = []", "[]")] {
            let error = axes(text).unwrap_err().to_string();
            let expected = format!(
                "line 2: sweep.seed = {value} is not allowed; it must be a list of at least one value"
            );
            assert_eq!(error, expected);
        }
        assert_eq!(axes("seed = 1").unwrap(), []);
    }
}
