//! Writes a schema as TOML: always the same text for the same schema, or with a comment above each column.

use super::schema::{
    Categories, Category, Column, Decimal, Kind, MissingCategory, MissingNumber, NotNumbers, Number, Schema,
    Standard, Unknown,
};
use std::fmt::Write as _;

impl Schema {
    /// The schema as TOML.
    pub fn text(&self) -> String {
        self.commented(&[], &|_| Vec::new())
    }

    /// The same with these lines of comment at the top, and above the label and each column.
    pub fn commented(&self, top: &[String], about: &dyn Fn(&str) -> Vec<String>) -> String {
        let mut text = String::new();
        let comment = |text: &mut String, lines: &[String]| {
            // A comment is one line, whatever a file's names and values hold.
            for line in lines {
                let _ = writeln!(text, "# {}", line.replace(char::is_control, " "));
            }
        };
        comment(&mut text, top);
        if let Some(separator) = self.separator {
            let _ = writeln!(text, "separator = {}", quoted(&char::from(separator).to_string()));
        }
        if self.decimal == Decimal::Comma {
            let _ = writeln!(text, "decimal = \",\"");
        }
        if let Some(header) = &self.header {
            let _ = writeln!(text, "header = {}", list(header));
        }
        let _ = writeln!(text, "missing_values = {}\n", list(&self.missing_values));
        comment(&mut text, &about(&self.label.column));
        let _ = writeln!(text, "[label]\ncolumn = {}", quoted(&self.label.column));
        let _ = writeln!(text, "classes = {}", categories(&self.label.classes));
        for Column { name, kind } in &self.columns {
            let _ = writeln!(text);
            comment(&mut text, &about(name));
            let _ = writeln!(text, "[[column]]\nname = {}", quoted(name));
            match kind {
                Kind::Number(column) => number(&mut text, column),
                Kind::Category(column) => category(&mut text, column),
                Kind::Ignored => text += "kind = \"ignored\"\n",
            }
        }
        text
    }
}

fn number(text: &mut String, number: &Number) {
    *text += "kind = \"number\"\n";
    if let Some([least, most]) = number.bounds {
        let _ = writeln!(text, "bounds = [{}, {}]", float(least), float(most));
    }
    if let Some(Standard { centre, scale }) = number.standard {
        let _ = writeln!(text, "centre = {}\nscale = {}", float(centre), float(scale));
    }
    let missing = match number.missing {
        MissingNumber::Centre => quoted("centre"),
        MissingNumber::Indicator => quoted("indicator"),
        MissingNumber::Refuse => quoted("refuse"),
        MissingNumber::Value(value) => float(value),
    };
    let _ = writeln!(text, "missing = {missing}");
    own_missing(text, &number.missing_values);
    if number.not_numbers == NotNumbers::Missing {
        *text += "not_numbers = \"missing\"\n";
    }
}

fn category(text: &mut String, column: &Categories) {
    let unknown = match column.unknown {
        Unknown::Zeros => "zeros",
        Unknown::Input => "input",
        Unknown::Refuse => "refuse",
    };
    let _ = writeln!(text, "kind = \"category\"\ncategories = {}", categories(&column.categories));
    let _ = writeln!(text, "unknown = \"{unknown}\"");
    if column.missing == MissingCategory::Refuse {
        *text += "missing = \"refuse\"\n";
    }
    own_missing(text, &column.missing_values);
}

fn own_missing(text: &mut String, values: &[String]) {
    if !values.is_empty() {
        let _ = writeln!(text, "missing_values = {}", list(values));
    }
}

fn categories(categories: &[Category]) -> String {
    let shown = |Category { name, values }: &Category| match values.as_slice() {
        [only] if only == name => quoted(name),
        values => format!("{{ name = {}, values = {} }}", quoted(name), list(values)),
    };
    format!("[{}]", categories.iter().map(shown).collect::<Vec<_>>().join(", "))
}

fn list(texts: &[String]) -> String {
    format!("[{}]", texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(", "))
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\t' => quoted += "\\t",
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", c as u32);
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// A float with all its digits, and a point or an exponent as TOML wants it.
fn float(x: f64) -> String {
    format!("{x:?}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Label, SchemaError};
    use proptest::prelude::*;

    fn category() -> impl Strategy<Value = Vec<Category>> {
        let one = (any::<String>(), any::<bool>());
        proptest::collection::vec(one, 2..5).prop_map(|names| {
            let category = |(place, (name, full)): (usize, (String, bool))| {
                let name = format!("{place}{name}");
                let values = if full { vec![format!("v{name}"), name.clone()] } else { vec![name.clone()] };
                Category { name, values }
            };
            names.into_iter().enumerate().map(category).collect()
        })
    }

    fn kind() -> impl Strategy<Value = Kind> {
        let missing = prop_oneof![
            Just(MissingNumber::Centre),
            Just(MissingNumber::Indicator),
            Just(MissingNumber::Refuse),
            (-1e9..1e9).prop_map(MissingNumber::Value),
        ];
        let standard = proptest::option::of((-1e300..1e300, 0.0..1e300))
            .prop_map(|given| given.map(|(centre, scale)| Standard { centre, scale }));
        let bounds =
            proptest::option::of((-1e9..0.0, 1e-9..1e9)).prop_map(|given| given.map(|(a, b)| [a, b]));
        let texts = proptest::collection::vec(any::<String>(), 0..3);
        let not = prop_oneof![Just(NotNumbers::Refuse), Just(NotNumbers::Missing)];
        let number = (bounds, standard, missing, texts.clone(), not).prop_map(
            |(bounds, standard, missing, missing_values, not_numbers)| {
                Kind::Number(Number { bounds, standard, missing, missing_values, not_numbers })
            },
        );
        let unknown = prop_oneof![Just(Unknown::Zeros), Just(Unknown::Input), Just(Unknown::Refuse)];
        let missing = prop_oneof![Just(MissingCategory::Zeros), Just(MissingCategory::Refuse)];
        let category = (category(), unknown, missing, texts).prop_map(
            |(categories, unknown, missing, missing_values)| {
                Kind::Category(Categories { categories, unknown, missing, missing_values })
            },
        );
        prop_oneof![number, category, Just(Kind::Ignored)]
    }

    proptest! {
        #[test]
        fn a_written_schema_reads_back_as_it_was(
            kinds in proptest::collection::vec((any::<String>(), kind()), 1..4),
            classes in category(),
            missing_values in proptest::collection::vec(any::<String>(), 0..3),
            comma in any::<bool>(),
            separator in proptest::option::of(prop_oneof![Just(b';'), Just(b'\t'), Just(b'|')]),
        ) {
            let column = |(place, (name, kind)): (usize, (String, Kind))| Column { name: format!("{place}{name}"), kind };
            let columns: Vec<Column> = kinds.into_iter().enumerate().map(column).collect();
            let header: Vec<String> = columns.iter().map(|column| column.name.clone()).chain(["y".to_owned()]).collect();
            let label = Label { column: "y".to_owned(), classes };
            let decimal = if comma { Decimal::Comma } else { Decimal::Point };
            let header = comma.then_some(header);
            let schema = Schema { separator, decimal, header, missing_values, label, columns };
            match schema.checked() {
                Ok(schema) => {
                    let text = schema.commented(&["top\n[x]".to_owned()], &|name| vec![name.to_owned()]);
                    prop_assert_eq!(&text.parse::<Schema>().unwrap(), &schema, "{}", text);
                    prop_assert_eq!(schema.text().parse::<Schema>(), Ok(schema));
                }
                Err(error) => prop_assert!(matches!(error, SchemaError::Whole(_)), "{}", error),
            }
        }
    }
}
