//! Any table with a column of labels; another column may name the owner of each row.

use super::load::{LoadError, Loaded};
use super::test_rows::{test_rows, train_first};
use crate::decode::table::{Layout, Table};
use crate::decode::{Flaw, Source};
use crate::split::Groups;
use crate::table::distinct::Distinct;
use crate::table::values::{Lookup, Missing};
use crate::table::{Column, Columns, Kind, Profiles, RowError, Schema, Standard, Wishes, infer, refusal};
use fedtvd_core::train::{Augment, Samples, Values};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Largest table, in bytes.
const LIMIT: usize = 1 << 30;

/// The table behind a data set.
#[derive(Clone, Debug)]
pub struct TableData {
    /// Its schema, as it was given or made.
    pub schema: Schema,
    /// The rows as the schema reads them, if centres and scales are still to be computed from the clients' rows. Until
    /// then the samples are standardised with those of all training rows.
    pub columns: Option<Columns>,
    /// The row in the file of each sample; the first one after the names is 1.
    pub rows: Vec<u64>,
}

impl Loaded {
    /// The same table with these centres and scales of its open columns.
    pub fn standardised(&self, standards: &[Standard]) -> Result<Self, LoadError> {
        let open = self.table.as_ref().and_then(|table| Some((table, table.columns.as_ref()?)));
        let Some((table, columns)) = open else { return Ok(self.clone()) };
        let schema = table.schema.with_standards(standards);
        let old = &self.samples;
        let values = Values::Floats(columns.inputs(&schema));
        let mut samples =
            Samples::new(old.shape(), old.classes(), values, old.labels().to_vec(), old.train_rows())?;
        if old.augments() {
            samples = samples.augmented(Augment { crop: 0, flip: true });
        }
        let table = TableData { schema, columns: None, rows: table.rows.clone() };
        Ok(Self { samples: Arc::new(samples), table: Some(Arc::new(table)), ..self.clone() })
    }
}

/// Opens a table; its layout is found in the file unless there is a schema.
pub fn open_table(path: &Path, layout: &Layout) -> Result<Table, Flaw> {
    Table::read(&mut Source::open(path)?, LIMIT, layout)
}

/// Reads a table with a schema that is made from it.
pub(crate) fn load(path: &Path, label: &str, group: Option<&str>, test: f64) -> Result<Loaded, LoadError> {
    let wrong = |reason: String| LoadError::Table { file: path.display().to_string(), reason };
    let table = open_table(path, &Layout::default())?;
    let profiles = Profiles::of(&table, label, group)?;
    let ignored = group.filter(|group| table.column(group).is_some());
    let ignored = ignored.map(str::to_owned).into_iter().collect();
    let wishes = Wishes { label: label.to_owned(), ignored, ..Wishes::default() };
    let (schema, comments) = infer(&[profiles], &wishes).map_err(wrong)?;
    let rows = Rows::read(table, &schema, group, test)?;
    let schema = schema.with_standards(&rows.columns.pooled(&schema, rows.train));
    let merged = comments.get(label).into_iter().flatten().filter(|line| line.contains("same number"));
    let mut notes: Vec<String> = decisions(&schema, group).into_iter().collect();
    notes.extend(rows.left_out.clone());
    notes.extend(merged.map(|line| format!("{label}: {line}")));
    notes.extend(rows.columns.notes());
    let samples = Arc::new(rows.samples(&schema)?);
    let Rows { groups, rows, .. } = rows;
    let class_names = schema.class_names();
    let table = Some(Arc::new(TableData { schema, columns: None, rows }));
    Ok(Loaded { samples, normal: Vec::new(), groups, class_names, notes, table })
}

/// Reads a table with a schema.
pub fn load_table(path: &Path, schema: &Schema, group: Option<&str>, test: f64) -> Result<Loaded, LoadError> {
    let rows = Rows::read(open_table(path, &schema.layout())?, schema, group, test)?;
    let standards = rows.columns.pooled(schema, rows.train);
    let samples = Arc::new(rows.samples(&schema.with_standards(&standards))?);
    let notes = [rows.left_out.as_slice(), &rows.columns.notes()].concat();
    let Rows { groups, rows, columns, .. } = rows;
    let columns = (!standards.is_empty()).then_some(columns);
    let table = Some(Arc::new(TableData { schema: schema.clone(), columns, rows }));
    Ok(Loaded { samples, normal: Vec::new(), groups, class_names: schema.class_names(), notes, table })
}

/// The labelled rows of a table, those for training first.
pub(crate) struct Rows {
    pub(crate) columns: Columns,
    pub(crate) labels: Vec<u32>,
    pub(crate) train: usize,
    groups: Option<Groups>,
    pub(crate) rows: Vec<u64>,
    /// Notes on rows without a label or an owner.
    left_out: Vec<String>,
}

impl Rows {
    /// Reads all rows that have a label, and an owner if there is a column of owners.
    pub(crate) fn read(
        table: Table,
        schema: &Schema,
        group: Option<&str>,
        test: f64,
    ) -> Result<Self, LoadError> {
        let mut left_out = Vec::new();
        let lookup = Lookup::new(&schema.label.classes, schema.decimal);
        let names = || schema.class_names().join(", ");
        let labels = texts(&table, schema, "label", &schema.label.column, &[], &mut left_out, |text| {
            lookup.place(text).ok_or_else(|| format!("is not a class; the classes are {}", names()))
        })?;
        let mut owners = Interner::default();
        let group_of = match group {
            None => labels.iter().map(|label| label.map(|_| 0)).collect(),
            Some(group) => {
                texts(&table, schema, "group", group, &labels, &mut left_out, |text| Ok(owners.number(text)))?
            }
        };
        let Distinct { names, of, merged } = Distinct::of(owners.texts.iter().map(String::as_str));
        let group_name = group.unwrap_or_default();
        left_out.extend(merged.iter().map(|spellings| {
            format!("{group_name}: {} are the same number and are treated as one value", spellings.join(", "))
        }));
        let owner = |number: u32| of.get(number as usize).copied().unwrap_or(0);
        let kept: Vec<(usize, u32, usize)> = labels
            .iter()
            .zip(&group_of)
            .enumerate()
            .filter_map(|(row, (label, group))| Some((row, (*label)?, owner((*group)?))))
            .collect();
        drop(group_of);
        let classes = schema.label.classes.len();
        let strata: Vec<usize> =
            kept.iter().map(|(_, label, owner)| owner * classes + *label as usize).collect();
        let (order, train) = train_first(&test_rows(&strata, test));
        let mut places = vec![None; labels.len()];
        order.iter().zip(0..).for_each(|(kept_row, place)| places[kept[*kept_row].0] = Some(place));
        let columns = Columns::read(&table, schema, &places, order.len())?;
        let groups = group
            .map(|_| Groups { names, of: order[..train].iter().map(|row| kept[*row].2 as u32).collect() });
        let labels = order.iter().map(|row| kept[*row].1).collect();
        let rows = order.iter().map(|row| kept[*row].0 as u64 + 1).collect();
        Ok(Self { columns, labels, train, groups, rows, left_out })
    }

    fn samples(&self, schema: &Schema) -> Result<Samples, LoadError> {
        let values = Values::Floats(self.columns.inputs(schema));
        let shape = [schema.inputs(), 1, 1];
        Ok(Samples::new(shape, schema.label.classes.len(), values, self.labels.clone(), self.train)?)
    }
}

/// Numbers for texts, in the order of their first occurrence.
#[derive(Default)]
struct Interner {
    numbers: BTreeMap<String, u32>,
    texts: Vec<String>,
}

impl Interner {
    fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.texts.len() as u32;
        self.numbers.insert(text.to_owned(), number);
        self.texts.push(text.to_owned());
        number
    }
}

/// The number of each row's text in a column; `None` if it is missing, or if the row is `None` in `before`.
fn texts(
    table: &Table,
    schema: &Schema,
    key: &str,
    column: &str,
    before: &[Option<u32>],
    notes: &mut Vec<String>,
    mut number: impl FnMut(&str) -> Result<u32, String>,
) -> Result<Vec<Option<u32>>, LoadError> {
    let wrong = |reason: String| LoadError::Table { file: table.file().to_owned(), reason };
    let place = table.column(column).ok_or_else(|| {
        wrong(format!("data.{key} = {column:?} is not a column; the columns are {}", table.names.join(", ")))
    })?;
    let missing = Missing::new(schema.missing_values.iter(), schema.decimal);
    let (mut numbers, mut rows, mut gone, mut all) = (Vec::new(), table.rows(), 0, 0);
    while let Some(row) = rows.next()? {
        let field = row.field(place);
        if before.get(row.number as usize - 1).is_some_and(Option::is_none) {
            numbers.push(None);
            continue;
        }
        all += 1;
        if missing.any(field, schema.decimal) {
            gone += 1;
            numbers.push(None);
        } else {
            numbers.push(Some(number(field).map_err(|why| refusal(table, &row, place, why))?));
        }
    }
    if gone == all {
        return Err(wrong(format!("the column {column:?} for data.{key} is empty in every row")));
    }
    if gone > 0 {
        notes.push(format!(
            "{column}: {gone} of {all} are missing; these rows are left out, since it is data.{key}"
        ));
    }
    Ok(numbers)
}

/// What was decided about the columns of a table without a schema; nothing if all of them are numbers.
fn decisions(schema: &Schema, group: Option<&str>) -> Option<String> {
    let decided =
        |column: &Column| !matches!(column.kind, Kind::Number(_)) && group != Some(column.name.as_str());
    if !schema.columns.iter().any(decided) {
        return None;
    }
    let named = |wanted: fn(&Kind) -> bool| {
        let names: Vec<&str> =
            schema.columns.iter().filter(|c| wanted(&c.kind)).map(|c| c.name.as_str()).collect();
        let more = if names.len() > 10 { format!(" and {} more", names.len() - 10) } else { String::new() };
        (names.len(), names.iter().take(10).copied().collect::<Vec<_>>().join(", ") + &more)
    };
    let parts = [
        ("numbers", named(|kind| matches!(kind, Kind::Number(_)))),
        ("categories", named(|kind| matches!(kind, Kind::Category(_)))),
        ("left out", named(|kind| *kind == Kind::Ignored)),
    ];
    let parts = parts.into_iter().filter(|(_, (count, _))| *count > 0);
    let parts: Vec<String> = parts.map(|(what, (_, names))| format!("{what}: {names}")).collect();
    Some(format!(
        "data.schema is not set, so a schema was made; {}; label: {} ({} classes)",
        parts.join("; "),
        schema.label.column,
        schema.label.classes.len()
    ))
}

impl From<RowError> for LoadError {
    fn from(error: RowError) -> Self {
        match error {
            RowError::Flaw(flaw) => Self::Flaw(flaw),
            other => Self::Row(Box::new(other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn read(text: &str, label: &str, group: Option<&str>) -> Result<Loaded, LoadError> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        load(file.path(), label, group, 0.5)
    }

    const TEXT: &str =
        "age,ward,town,sick\n1,a,Ulm,yes\n3,a,Rio,no\n5,b,Ulm,yes\n7,b,?,no\n9,a,Ulm,yes\n2,a,Rio,no\n";

    #[test]
    fn labels_owners_numbers_and_categories_are_distinguished() {
        let loaded = read(TEXT, "sick", Some("ward")).unwrap();
        assert_eq!(loaded.class_names, ["no", "yes"]);
        assert_eq!(
            loaded.groups.unwrap(),
            Groups { names: vec!["a".into(), "b".into()], of: vec![0, 0, 1, 1] }
        );
        // Of ward a the second of each class is for testing: ages 9 and 2.
        assert_eq!(loaded.samples.labels(), [1, 0, 1, 0, 1, 0]);
        assert_eq!((loaded.samples.train_rows(), loaded.samples.shape()), (4, [3, 1, 1]));
        let mut row = [0.0; 3];
        loaded.samples.read(4, &mut row);
        // Training ages 1, 3, 5, 7: mean 4, deviation sqrt(5); then Rio, Ulm.
        assert_eq!(row, [(5.0 / 5.0_f64.sqrt()) as f32, 0.0, 1.0]);
        assert_eq!(
            loaded.notes,
            [
                "data.schema is not set, so a schema was made; numbers: age; categories: town; left out: ward; label: \
                 sick (2 classes)",
                "town: 1 of 6 are missing; their one-hot inputs are all 0"
            ]
        );
        assert_eq!(loaded.table.unwrap().rows, [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn numbers_as_labels_are_in_the_order_of_numbers() {
        let text = format!("x,label\n{}", (0..12).map(|i| format!("{i},{i}\n")).collect::<String>());
        assert_eq!(read(&text, "label", None).unwrap().class_names[9..], ["9", "10", "11"]);
    }

    #[test]
    fn a_row_without_label_or_owner_is_left_out_with_a_note() {
        let text = "x,ward,sick\n1,a,1\n2,b,0\n3,a,\n4,b,?\n5,a,NA\n6,?,1\n7,b,1.0\n8,a,0\n9,,0\n";
        let loaded = read(text, "sick", Some("ward")).unwrap();
        assert_eq!(loaded.class_names, ["0", "1"]);
        assert_eq!(loaded.samples.rows(), 4);
        assert_eq!(loaded.groups.unwrap().names, ["a", "b"]);
        assert_eq!(
            loaded.notes[..3],
            [
                "sick: 3 of 9 are missing; these rows are left out, since it is data.label",
                "ward: 2 of 6 are missing; these rows are left out, since it is data.group",
                "sick: 1, 1.0 are the same number and are treated as one value",
            ]
        );
        let without = read("x,sick\n1,?\n2,\n", "sick", None).unwrap_err().to_string();
        assert!(without.ends_with("the column \"sick\" for data.label is empty in every row"), "{without}");
    }

    #[test]
    fn a_table_without_labels_says_what_it_has() {
        let complaint = |label, group| read(TEXT, label, group).unwrap_err().to_string();
        assert!(
            complaint("label", None)
                .ends_with("data.label = \"label\" is not a column; the columns are age, ward, town, sick")
        );
        assert!(complaint("sick", Some("x")).contains("data.group = \"x\" is not a column"));
        let rows: String = (0..10).map(|row| format!("{row},{}.5\n", row / 2 + row % 4)).collect();
        let target = read(&format!("x,price\n{rows}"), "price", None).unwrap_err().to_string();
        assert!(
            target.ends_with(
                "the column \"price\" has 7 different values in 10 rows, such as 0.5; labels must be classes, and \
                 regression is not supported"
            ),
            "{target}"
        );
        let one = read("a,label\n1,x\n2,x\n", "label", None).unwrap_err().to_string();
        assert!(one.ends_with("the column \"label\" has only one value; labels need at least two"), "{one}");
    }

    #[test]
    fn one_typo_does_not_turn_a_column_of_numbers_into_categories() {
        let text = |typo: &str| {
            let age = |row: usize| if row == 16 { typo.to_owned() } else { (20 + row % 50).to_string() };
            let rows: String = (0..200).map(|row| format!("{},{}\n", age(row), row % 2)).collect();
            format!("age,label\n{rows}")
        };
        assert_eq!(read(&text("45"), "label", None).unwrap().samples.shape(), [1, 1, 1]);
        let error = read(&text("45y"), "label", None).unwrap_err().to_string();
        let end = ": row 17 (line 18), column \"age\": \"45y\" is not a number; correct it, or say in the schema \
                   that the column is a category or that not_numbers = \"missing\"";
        assert!(error.ends_with(end), "{error}");
    }

    #[test]
    fn a_column_of_identifiers_is_left_out_with_a_note() {
        let rows: String = (0..99).map(|row| format!("p{row},{},{}\n", row % 7, row % 2)).collect();
        let loaded = read(&format!("id,x,label\n{rows}"), "label", None).unwrap();
        assert_eq!(loaded.samples.shape(), [1, 1, 1]);
        assert!(loaded.notes[0].contains("; left out: id;"), "{:?}", loaded.notes);
    }

    #[test]
    fn semicolons_and_decimal_commas_read_as_commas_and_points_do() {
        let points = "x,town,label\n1.5,a,0\n2.5,b,1\n4,a,0\n8,b,1\n";
        let commas = "x;town;label\n1,5;a;0\n2,5;b;1\n4;a;0\n8;b;1\n";
        let values = |text: &str| {
            let loaded = read(text, "label", None).unwrap();
            let Values::Floats(floats) = loaded.samples.values().clone() else {
                panic!("a table has floats")
            };
            floats
        };
        assert_eq!(values(points), values(commas));
    }

    /// Reads a table with a schema, all rows for training.
    fn with(schema: &str, text: &str) -> Result<Loaded, LoadError> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        load_table(file.path(), &schema.parse().unwrap(), None, 0.0)
    }

    fn inputs(loaded: &Loaded) -> Vec<f32> {
        match loaded.samples.values() {
            Values::Floats(floats) => floats.clone(),
            Values::Bytes(..) => panic!("a table has floats"),
        }
    }

    const SCHEMA: &str = r#"
[label]
column = "sick"
classes = ["no", { name = "yes", values = ["yes", "1"] }]
[[column]]
name = "age"
kind = "number"
bounds = [0, 100]
centre = 50
scale = 10
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

    #[test]
    fn rows_are_matched_by_the_names_of_columns() {
        let one = with(SCHEMA, "age,town,id,sick\n60,Rio,7,no\n40,Ulm,8,yes\n").unwrap();
        let other = with(SCHEMA, "sick;extra;town;age\nno;x;Rio;60.0\n1.0;y;Ulm;40\n").unwrap();
        assert_eq!(inputs(&one), [1.0, 0.0, 1.0, 0.0, 0.0, -1.0, 0.0, 0.0, 1.0, 0.0]);
        assert_eq!(inputs(&one), inputs(&other));
        assert_eq!((one.samples.labels(), other.samples.labels()), ([0, 1].as_slice(), [0, 1].as_slice()));
        assert_eq!(other.notes, ["columns that the schema does not have are left out: extra"]);
    }

    #[test]
    fn missing_unknown_and_clipped_values_are_where_the_schema_puts_them() {
        let text = "age,town,sick\n-1,Oslo,no\n,Rio,no\n170,?,no\n50,Ulm,yes\n";
        let loaded = with(SCHEMA, text).unwrap();
        assert_eq!(
            inputs(&loaded),
            [
                [0.0, 1.0, 0.0, 0.0, 1.0],
                [0.0, 1.0, 1.0, 0.0, 0.0],
                [5.0, 0.0, 0.0, 0.0, 0.0],
                [0.0, 0.0, 0.0, 1.0, 0.0]
            ]
            .concat()
        );
        assert_eq!(
            loaded.notes,
            [
                "age: 2 of 4 are missing; the mean replaces them, and a missing-value indicator is added",
                "age: 1 of 4 are outside the bounds and are clipped",
                "town: 1 of 4 are missing; their one-hot inputs are all 0",
                "town: 1 of 4 are unknown, such as \"Oslo\"",
            ]
        );
    }

    #[test]
    fn what_a_schema_does_not_allow_is_refused_with_row_column_and_value() {
        let refused = |schema: &str, text: &str| with(schema, text).unwrap_err().to_string();
        let strict = SCHEMA.replace("\"input\"", "\"refuse\"").replace("\"indicator\"", "\"refuse\"");
        for (schema, text, end) in [
            (
                SCHEMA,
                "age,town,sick\n1,Rio,no\n4x,Rio,no\n",
                "row 2 (line 3), column \"age\": \"4x\" is not a number; correct it, or say in the schema that the column is a category or that not_numbers = \"missing\"",
            ),
            (
                SCHEMA,
                "age,town,sick\n1,Rio,maybe\n",
                "row 1 (line 2), column \"sick\": \"maybe\" is not a class; the classes are no, yes",
            ),
            (
                SCHEMA,
                "town,sick,id\nRio,no,3\n",
                "there is no column \"age\"; its columns are town, sick, id",
            ),
            (
                &strict,
                "age,town,sick\n1,Oslo,no\n",
                "column \"town\": \"Oslo\" is unknown; the categories are Rio, Ulm",
            ),
            (
                &strict,
                "age,town,sick\n?,Rio,no\n",
                "column \"age\": \"?\" is a missing value, which the schema does not allow here",
            ),
        ] {
            let error = refused(schema, text);
            assert!(error.ends_with(end), "{error}");
        }
        let lenient = SCHEMA.replace("scale = 10", "scale = 10\nnot_numbers = \"missing\"");
        assert_eq!(inputs(&with(&lenient, "age,town,sick\n4x,Rio,no\n").unwrap())[..2], [0.0, 1.0]);
    }

    #[test]
    fn open_columns_are_standardised_later_with_given_centres_and_scales() {
        let open = SCHEMA.replace("centre = 50\nscale = 10\n", "");
        let text = "age,town,sick\n60,Rio,no\n40,Ulm,yes\n";
        let loaded = with(&open, text).unwrap();
        // Until then with those of all rows: mean 50, deviation 10.
        assert_eq!(inputs(&loaded), inputs(&with(SCHEMA, text).unwrap()));
        let fixed = loaded.standardised(&[Standard { centre: 20.0, scale: 20.0 }]).unwrap();
        assert_eq!((inputs(&fixed)[0], inputs(&fixed)[5]), (2.0, 1.0));
        assert_eq!(fixed.table.unwrap().schema.open().count(), 0);
    }
}
