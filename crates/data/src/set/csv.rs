//! Any CSV with a column of labels; another column may name the owner of each row.

use super::distinct::{Distinct, present};
use super::features::{Column, Entries, Features, test_rows, train_first};
use super::load::{LoadError, Loaded};
use crate::decode::Source;
use crate::decode::table::{Table, table};
use crate::split::Groups;
use fedtvd_core::train::Samples;
use std::path::Path;
use std::sync::Arc;

const LIMIT: usize = 1 << 30;
/// More values than this make a column of text an identifier, not a category.
const CATEGORIES: usize = 64;

pub(crate) fn load(path: &Path, label: &str, group: Option<&str>, test: f64) -> Result<Loaded, LoadError> {
    let wrong = |reason: String| LoadError::Table { file: path.display().to_string(), reason };
    let mut table = table(&mut Source::open(path)?, LIMIT)?;
    let place = |key: &str, name: &str| {
        let unknown =
            || format!("data.{key} = {name:?} is not a column; the columns are {}", table.names.join(", "));
        table.names.iter().position(|column| column == name).ok_or_else(|| wrong(unknown()))
    };
    let label_place = place("label", label)?;
    let group_place = group.map(|group| place("group", group)).transpose()?;
    let mut notes = Vec::new();
    for (key, place) in [("label", Some(label_place)), ("group", group_place)] {
        let Some(place) = place else { continue };
        notes.extend(without_missing(&mut table, place, key).map_err(wrong)?);
    }
    let Distinct { names: class_names, of: classes, merged } = distinct(&table, label_place);
    if class_names.len() < 2 {
        return Err(wrong(format!("the column {label:?} has only one value; labels need at least two")));
    }
    if let Some(why) = regression(&class_names, table.rows.len()) {
        return Err(wrong(format!("the column {label:?} {why}")));
    }
    notes.extend(merged.iter().map(|spellings| one_class(label, spellings)));
    let owners = group_place.map(|place| distinct(&table, place)).unwrap_or_default();
    notes.extend(owners.merged.iter().map(|spellings| one_class(group.unwrap_or_default(), spellings)));
    let Distinct { names: owners, of, .. } = owners;
    let owner = |row: usize| of.get(row).copied().unwrap_or(0);
    let strata: Vec<usize> =
        classes.iter().enumerate().map(|(row, class)| owner(row) * class_names.len() + class).collect();
    let (order, train) = train_first(&test_rows(&strata, test));
    let inputs =
        (0..table.names.len()).filter(|column| ![Some(label_place), group_place].contains(&Some(*column)));
    let columns: Result<Vec<Column>, String> = inputs.map(|place| column(&table, place, &order)).collect();
    let features = Features::of(&columns.map_err(wrong)?, train);
    if features.width == 0 {
        return Err(wrong(format!("{label:?} is the only column; there are no inputs to learn from")));
    }
    notes.extend(features.notes.iter().cloned());
    let labels = order.iter().map(|row| classes[*row] as u32).collect();
    let shape = [features.width, 1, 1];
    let samples = Samples::new(shape, class_names.len(), features.into_values(), labels, train)?;
    let groups = group_place
        .map(|_| Groups { names: owners, of: order[..train].iter().map(|row| of[*row] as u32).collect() });
    Ok(Loaded { samples: Arc::new(samples), normal: Vec::new(), groups, class_names, notes })
}

/// Leaves out the rows without a value in a column, and says how many.
fn without_missing(table: &mut Table, place: usize, key: &str) -> Result<Option<String>, String> {
    let (name, before) = (&table.names[place], table.rows.len());
    table.rows.retain(|row| present(&row[place]));
    match before - table.rows.len() {
        0 => Ok(None),
        all if all == before => Err(format!("the column {name:?} for data.{key} is empty in every row")),
        missing => Ok(Some(format!(
            "{name}: {missing} of {before} are missing; these rows are left out, since it is data.{key}"
        ))),
    }
}

fn distinct(table: &Table, place: usize) -> Distinct {
    Distinct::of(table.rows.iter().map(|row| row[place].as_str()))
}

fn one_class(column: &str, spellings: &[String]) -> String {
    format!("{column}: {} are the same number and are treated as one value", spellings.join(", "))
}

/// Why labels are not classes: fractional numbers, most of which occur once.
fn regression(classes: &[String], rows: usize) -> Option<String> {
    let fractional =
        classes.iter().find(|name| name.parse().is_ok_and(|x: f64| x.is_finite() && x.fract() != 0.0))?;
    (2 * classes.len() > rows).then(|| {
        format!(
            "has {} different values in {rows} rows, such as {fractional}; labels must be classes, and regression is \
             not supported",
            classes.len()
        )
    })
}

fn column(table: &Table, place: usize, order: &[usize]) -> Result<Column, String> {
    let name = table.names[place].clone();
    let fields = || order.iter().map(|row| table.rows[*row][place].as_str());
    let present = |field: &&str| present(field);
    let number = |field: &str| field.parse::<f64>().ok().filter(|number| number.is_finite());
    if fields().filter(present).all(|field| number(field).is_some()) {
        let numbers = fields().map(|field| Some(field).filter(|f| present(f)).and_then(number)).collect();
        return Ok(Column { name, entries: Entries::Numbers(numbers) });
    }
    let mut values: Vec<&str> = fields().filter(present).collect();
    values.sort_unstable();
    values.dedup();
    if values.len() > CATEGORIES {
        return Err(format!(
            "the column {name:?} has {} different values, and {:?} is not a number; remove the column, or use only \
             numbers or at most {CATEGORIES} categories",
            values.len(),
            values.iter().find(|value| number(value).is_none()).unwrap_or(&""),
        ));
    }
    let categories = fields().map(|field| values.iter().position(|value| *value == field)).collect();
    Ok(Column { name, entries: Entries::Categories(categories, values.len()) })
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
        assert_eq!(loaded.notes, ["town: 1 of 6 are missing; their one-hot inputs are all 0"]);
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
        let rows: String = (0..99).map(|row| format!("{row}{},{}\n", ["", "y"][row / 98], row % 2)).collect();
        let typo = read(&format!("age,label\n{rows}"), "label", None).unwrap_err().to_string();
        assert!(
            typo.contains("the column \"age\" has 99 different values, and \"98y\" is not a number; remove"),
            "{typo}"
        );
        let one = read("a,label\n1,x\n2,x\n", "label", None).unwrap_err().to_string();
        assert!(one.ends_with("the column \"label\" has only one value; labels need at least two"), "{one}");
    }
}
