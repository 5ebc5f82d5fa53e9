//! A schema that the tests of several modules read.

/// A number with bounds and an indicator of missing values, a category with a place for unknown ones, an ignored column.
pub(crate) const SCHEMA: &str = r#"
missing_values = ["", "?"]

[label]
column = "sick"
classes = ["no", { name = "yes", values = ["yes", "1"] }]

[[column]]
name = "age"
kind = "number"
bounds = [0.0, 120.0]
centre = 50.0
scale = 10.0
missing = "indicator"
missing_values = ["-1"]

[[column]]
name = "town"
kind = "category"
categories = ["Rio", "Ulm"]
unknown = "input"

[[column]]
name = "id"
kind = "ignored"
"#;
