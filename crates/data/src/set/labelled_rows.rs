//! The rows of a table that have a label, and an owner if a column names one.

use super::load::LoadError;
use super::test_rows::{test_rows, train_first};
use crate::decode::table::Table;
use crate::split::Groups;
use crate::table::distinct::Distinct;
use crate::table::values::{Lookup, Missing};
use crate::table::{Columns, RowError, Schema, refusal};
use fedtvd_core::train::{Samples, Values};
use std::collections::BTreeMap;

/// The labelled rows of a table, those for training first.
pub(crate) struct Rows {
    pub(crate) columns: Columns,
    pub(crate) labels: Vec<u32>,
    pub(crate) train: usize,
    pub(crate) groups: Option<Groups>,
    pub(crate) rows: Vec<u64>,
    /// Notes on rows without a label or an owner, and on classes without rows.
    pub(crate) left_out: Vec<String>,
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
        let missing = Missing::new(schema.missing_values.iter(), schema.decimal);
        let missing = |text: &str| missing.any(text, schema.decimal);
        let names = || schema.class_names().join(", ");
        let labels = texts(&table, "label", &schema.label.column, &[], &mut left_out, |text| {
            match lookup.place(text) {
                Some(class) => Ok(Some(class)),
                // Only what is not listed: a class may be called NA.
                None if missing(text) => Ok(None),
                None => Err(format!("is not a class; the classes are {}", names())),
            }
        })?;
        let mut owners = Interner::default();
        let group_of = match group {
            None => labels.iter().map(|label| label.map(|_| 0)).collect(),
            Some(group) => texts(&table, "group", group, &labels, &mut left_out, |text| {
                Ok((!missing(text)).then(|| owners.number(text)))
            })?,
        };
        let Distinct { names, of, merged } =
            Distinct::of(owners.texts.iter().map(String::as_str), schema.decimal);
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
        left_out.extend(without_rows(schema, kept.iter().map(|(_, label, _)| *label)));
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

    pub(crate) fn samples(&self, schema: &Schema) -> Result<Samples, LoadError> {
        let values = Values::Floats(self.columns.inputs(schema)?);
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

/// A note on the classes of a schema that no row has.
fn without_rows(schema: &Schema, labels: impl Iterator<Item = u32>) -> Option<String> {
    let mut seen = vec![false; schema.label.classes.len()];
    labels.for_each(|label| seen[label as usize] = true);
    let absent = schema.label.classes.iter().zip(&seen).filter(|(_, seen)| !**seen);
    let absent: Vec<&str> = absent.map(|(class, _)| class.name.as_str()).collect();
    let more = absent.len().saturating_sub(NAMED);
    let named = absent[..absent.len() - more].join(", ");
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!absent.is_empty()).then(|| format!("{}: no row is of class {named}{more}", schema.label.column))
}

/// Number of classes that a note names.
const NAMED: usize = 10;

/// The number of each row's text in a column; `None` if it is missing, or if the row is `None` in `before`.
fn texts(
    table: &Table,
    key: &str,
    column: &str,
    before: &[Option<u32>],
    notes: &mut Vec<String>,
    mut number: impl FnMut(&str) -> Result<Option<u32>, String>,
) -> Result<Vec<Option<u32>>, LoadError> {
    let wrong = |reason: String| LoadError::Table { file: table.file().to_owned(), reason };
    let place = table.column(column).ok_or_else(|| {
        wrong(format!("data.{key} = {column:?} is not a column; the columns are {}", table.names.join(", ")))
    })?;
    let (mut numbers, mut rows, mut gone, mut all) = (Vec::new(), table.rows(), 0, 0);
    while let Some(row) = rows.next()? {
        if before.get(row.number as usize - 1).is_some_and(Option::is_none) {
            numbers.push(None);
            continue;
        }
        all += 1;
        let number = number(row.field(place)).map_err(|why| refusal(table, &row, place, why))?;
        gone += usize::from(number.is_none());
        numbers.push(number);
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
    use crate::set::table::tests::{TEXT, read};

    #[test]
    fn a_row_without_label_or_owner_is_left_out_with_a_note() {
        let text = "x,ward,sick\n1,a,1\n2,b,0\n3,a,\n4,b,?\n5,a,NA\n6,?,1\n7,b,1.0\n8,a,0\n9,,0\n";
        let loaded = read(text, "sick", Some("ward")).unwrap();
        assert_eq!(loaded.class_names, ["0", "1"]);
        assert_eq!(loaded.samples.rows(), 4);
        assert_eq!(loaded.groups.unwrap().names, ["a", "b"]);
        assert_eq!(
            loaded.notes[1..4],
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
}
