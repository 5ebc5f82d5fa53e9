//! Any CSV with a column of labels; another column may say whose a row is.

use super::features::{Column, Entries, Features, test_rows, train_first};
use super::load::{LoadError, Loaded};
use crate::decode::Source;
use crate::decode::table::{Table, table};
use crate::split::Groups;
use fedtvd_core::samples::Samples;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const LIMIT: usize = 1 << 30;
/// More values than this make a column of text an identifier, not a category.
const CATEGORIES: usize = 64;

pub(crate) fn load(path: &Path, label: &str, group: Option<&str>, test: f64) -> Result<Loaded, LoadError> {
    let wrong = |reason: String| LoadError::Table { file: path.display().to_string(), reason };
    let table = table(&mut Source::open(path)?, LIMIT)?;
    let place = |key: &str, name: &str| {
        let unknown =
            || format!("there is no column {name:?} for data.{key}: it has {}", table.names.join(", "));
        table.names.iter().position(|column| column == name).ok_or_else(|| wrong(unknown()))
    };
    let label_place = place("label", label)?;
    let group_place = group.map(|group| place("group", group)).transpose()?;
    let (class_names, classes) = numbered(&table, label_place);
    if class_names.len() < 2 {
        return Err(wrong(format!("the column {label:?} has one value only; labels need at least two")));
    }
    let (owners, of) = group_place.map(|place| numbered(&table, place)).unwrap_or_default();
    let owner = |row: usize| of.get(row).copied().unwrap_or(0);
    let strata: Vec<usize> =
        classes.iter().enumerate().map(|(row, class)| owner(row) * class_names.len() + class).collect();
    let (order, train) = train_first(&test_rows(&strata, test));
    let inputs =
        (0..table.names.len()).filter(|column| ![Some(label_place), group_place].contains(&Some(*column)));
    let columns: Result<Vec<Column>, String> = inputs.map(|place| column(&table, place, &order)).collect();
    let features = Features::of(&columns.map_err(wrong)?, train);
    if features.width == 0 {
        return Err(wrong(format!("there is no column beside {label:?} to learn from")));
    }
    let notes = features.notes.clone();
    let labels = order.iter().map(|row| classes[*row] as u32).collect();
    let shape = [features.width, 1, 1];
    let samples = Samples::new(shape, class_names.len(), features.into_values(), labels, train)?;
    let groups = group_place
        .map(|_| Groups { names: owners, of: order[..train].iter().map(|row| of[*row] as u32).collect() });
    Ok(Loaded { samples: Arc::new(samples), normal: Vec::new(), groups, class_names, notes })
}

/// The values of a column in order, and for each row the place of its value.
fn numbered(table: &Table, column: usize) -> (Vec<String>, Vec<usize>) {
    let mut names: Vec<String> = table.rows.iter().map(|row| row[column].clone()).collect();
    names.sort_by(|a, b| match (a.parse::<f64>(), b.parse::<f64>()) {
        // 10 comes after 9.
        (Ok(x), Ok(y)) => x.total_cmp(&y).then(a.cmp(b)),
        (Ok(_), Err(_)) => std::cmp::Ordering::Less,
        (Err(_), Ok(_)) => std::cmp::Ordering::Greater,
        (Err(_), Err(_)) => a.cmp(b),
    });
    names.dedup();
    let places: BTreeMap<&str, usize> =
        names.iter().enumerate().map(|(place, name)| (name.as_str(), place)).collect();
    let of = table.rows.iter().map(|row| places[row[column].as_str()]).collect();
    (names, of)
}

fn column(table: &Table, place: usize, order: &[usize]) -> Result<Column, String> {
    let name = table.names[place].clone();
    let fields = || order.iter().map(|row| table.rows[*row][place].as_str());
    let present = |field: &&str| !["", "?", "NA", "NaN", "nan", "null"].contains(field);
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
            "the column {name:?} has {} different texts; leave it out, or use numbers or at most {CATEGORIES} categories",
            values.len()
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
    fn labels_owners_numbers_and_categories_are_told_apart() {
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
        assert_eq!(loaded.notes, ["town: 1 of 6 are missing; none of its categories is set"]);
    }

    #[test]
    fn numbers_as_labels_are_in_the_order_of_numbers() {
        let text = format!("x,label\n{}", (0..12).map(|i| format!("{i},{i}\n")).collect::<String>());
        assert_eq!(read(&text, "label", None).unwrap().class_names[9..], ["9", "10", "11"]);
    }

    #[test]
    fn a_table_without_labels_says_what_it_has() {
        let complaint = |label, group| read(TEXT, label, group).unwrap_err().to_string();
        assert!(
            complaint("label", None)
                .ends_with("there is no column \"label\" for data.label: it has age, ward, town, sick")
        );
        assert!(complaint("sick", Some("x")).contains("there is no column \"x\" for data.group"));
        let one = read("a,label\n1,x\n2,x\n", "label", None).unwrap_err().to_string();
        assert!(one.ends_with("the column \"label\" has one value only; labels need at least two"), "{one}");
    }
}
