//! Makes a schema from what files hold, and says how each decision was made.

use super::distinct::Distinct;
use super::profile::{CATEGORIES, Profile, Profiles};
use super::schema::{
    Categories, Category, Column, Decimal, Kind, Label, MISSING, MissingCategory, MissingNumber, NotNumbers,
    Number, Schema, Unknown,
};
use std::collections::{BTreeMap, BTreeSet};

/// What a user says about a schema that is made.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// The column with the labels.
    pub label: String,
    /// Columns that are categories, even if they look like numbers.
    pub categories: Vec<String>,
    /// Columns that are left out.
    pub ignored: Vec<String>,
    /// Names of the columns of files without a line of names.
    pub header: Option<Vec<String>>,
}

/// Lines about each column, by name.
pub type Comments = BTreeMap<String, Vec<String>>;

/// A column is one of numbers if at least this part of its values are numbers.
const MOSTLY: f64 = 0.9;

/// The schema of these files, and a comment for each column. Fails if they cannot be one labelled table.
pub fn infer<'f>(files: &'f [Profiles], wishes: &Wishes) -> Result<(Schema, Comments), String> {
    let Some(first) = files.first() else { return Err("there is no file to make a schema from".to_owned()) };
    let rows: u64 = files.iter().map(|file| file.kept).sum();
    let mut comments = Comments::new();
    let (mut names, mut seen) = (Vec::new(), BTreeSet::new());
    for column in files.iter().flat_map(|file| &file.columns) {
        if seen.insert(column.name.as_str()) {
            names.push(column.name.as_str());
        }
    }
    let by_name = |file: &'f Profiles| -> BTreeMap<&'f str, &'f Profile> {
        file.columns.iter().map(|column| (column.name.as_str(), column)).collect()
    };
    let columns_of: Vec<(&Profiles, BTreeMap<&str, &Profile>)> =
        files.iter().map(|file| (file, by_name(file))).collect();
    for (key, name) in [("--category", &wishes.categories), ("--ignore", &wishes.ignored)] {
        if let Some(name) = name.iter().find(|name| !seen.contains(name.as_str())) {
            return Err(format!("{key} {name:?} is not a column; the columns are {}", names.join(", ")));
        }
    }
    let decimal = decimal(files);
    let (mut label, mut columns) = (None, Vec::new());
    for name in names {
        let mut profiles =
            columns_of.iter().filter_map(|(_, own)| own.get(name)).map(|&profile| profile.clone());
        let Some(profile) = profiles.next() else { continue };
        let whole = profiles.fold(profile, |whole, part| whole.joined(&part));
        let all = if name == wishes.label { files.iter().map(|file| file.rows).sum() } else { rows };
        let mut about = describe(&whole, all, decimal);
        let lacking: Vec<&str> = columns_of
            .iter()
            .filter(|(_, own)| !own.contains_key(name))
            .map(|(file, _)| file.file.rsplit(['/', '\\']).next().unwrap_or_default())
            .collect();
        if name == wishes.label {
            if !lacking.is_empty() {
                return Err(format!("{} has no column {name:?}, which is the label", lacking.join(", ")));
            }
            label = Some(classes(&whole, rows, &mut about)?);
        } else {
            let kind = if !lacking.is_empty() {
                about.push(format!("left out: it is not in {}", lacking.join(", ")));
                Kind::Ignored
            } else {
                kind(&whole, decimal, wishes, &mut about)?
            };
            columns.push(Column { name: name.to_owned(), kind });
        }
        comments.insert(name.to_owned(), about);
    }
    let Some(classes) = label else {
        let names: Vec<&str> = first.columns.iter().map(|column| column.name.as_str()).collect();
        return Err(format!(
            "data.label = {:?} is not a column; the columns are {}",
            wishes.label,
            names.join(", ")
        ));
    };
    if columns.is_empty() {
        return Err(format!("{:?} is the only column; there are no inputs to learn from", wishes.label));
    }
    let schema = Schema {
        separator: None,
        decimal,
        header: wishes.header.clone(),
        missing_values: MISSING.iter().map(|&text| text.to_owned()).collect(),
        label: Label { column: wishes.label.clone(), classes },
        columns,
    };
    Ok((schema.checked().map_err(|error| error.to_string())?, comments))
}

/// A decimal comma, if numbers with one occur, no number has a point, and commas do not separate the fields.
fn decimal(files: &[Profiles]) -> Decimal {
    let all = || files.iter().flat_map(|file| &file.columns);
    let comma = |column: &Profile| column.commas > 0 && column.texts == 0;
    let point = |column: &Profile| column.with_point;
    let separated = files.iter().any(|file| file.separator == b',');
    if !separated && all().any(comma) && !all().any(point) { Decimal::Comma } else { Decimal::Point }
}

fn describe(column: &Profile, rows: u64, decimal: Decimal) -> Vec<String> {
    let mut text = format!("{} of {rows} are missing", column.missing);
    if let Some([least, most]) = column.range.filter(|_| numbers(column, decimal) > 0) {
        text += &format!("; numbers from {least} to {most}");
    }
    if !column.many && (1..=12).contains(&column.distinct.len()) {
        let values: Vec<String> =
            column.distinct.iter().map(|(value, count)| format!("{value} ({count})")).collect();
        text += &format!("; {}", values.join(", "));
    } else if !column.examples.is_empty() {
        text += &format!("; such as {}", column.examples.join(", "));
    }
    vec![text]
}

fn numbers(column: &Profile, decimal: Decimal) -> u64 {
    column.points + if decimal == Decimal::Comma { column.commas } else { 0 }
}

fn kind(
    column: &Profile,
    decimal: Decimal,
    wishes: &Wishes,
    about: &mut Vec<String>,
) -> Result<Kind, String> {
    if wishes.ignored.contains(&column.name) {
        return Ok(Kind::Ignored);
    }
    let (numbers, present) = (numbers(column, decimal), column.present());
    let wished = wishes.categories.contains(&column.name);
    if !wished && numbers as f64 >= MOSTLY * present as f64 {
        if numbers < present {
            let (row, text) = column.first_text.clone().unwrap_or_default();
            about.push(format!(
                "{} of {present} are not numbers, the first is {:?} in row {row}; correct them, or set not_numbers = \
                 \"missing\" or kind = \"category\"",
                present - numbers,
                text.chars().take(40).collect::<String>()
            ));
        }
        let missing = if column.missing > 0 { MissingNumber::Indicator } else { MissingNumber::Centre };
        let not_numbers = NotNumbers::Refuse;
        return Ok(Kind::Number(Number {
            bounds: None,
            standard: None,
            missing,
            missing_values: Vec::new(),
            not_numbers,
        }));
    }
    if column.many || column.distinct.len() > CATEGORIES {
        if wished {
            return Err(format!(
                "column {:?} was declared a category, but has more than {CATEGORIES} different values; leave it out, or \
                 group its values by hand in the schema",
                column.name
            ));
        }
        let with_commas = if column.commas > 0 { "; some are numbers with a decimal comma" } else { "" };
        about.push(format!("left out: it has more than {CATEGORIES} different texts{with_commas}"));
        return Ok(Kind::Ignored);
    }
    let category = |value: &String| Category { name: value.clone(), values: vec![value.clone()] };
    // Numbers that were declared to be categories are merged if they are equal; texts are as they are.
    let categories = match wished {
        true => Distinct::of(column.distinct.keys().map(String::as_str)).names.iter().map(category).collect(),
        false => column.distinct.keys().map(category).collect(),
    };
    let (unknown, missing) = (Unknown::Zeros, MissingCategory::Zeros);
    Ok(Kind::Category(Categories { categories, unknown, missing, missing_values: Vec::new() }))
}

fn classes(column: &Profile, rows: u64, about: &mut Vec<String>) -> Result<Vec<Category>, String> {
    let name = &column.name;
    let Distinct { names, merged, .. } = Distinct::of(column.distinct.keys().map(String::as_str));
    if column.many {
        return Err(format!(
            "the column {name:?} has more than {} different values; labels must be classes, and regression is not \
             supported",
            super::profile::CLASSES
        ));
    }
    if column.present() == 0 {
        return Err(format!("the column {name:?} for data.label is empty in every row"));
    }
    if names.len() < 2 {
        return Err(format!("the column {name:?} has only one value; labels need at least two"));
    }
    let fractional =
        names.iter().find(|name| name.parse().is_ok_and(|x: f64| x.is_finite() && x.fract() != 0.0));
    if let Some(fractional) = fractional.filter(|_| 2 * names.len() as u64 > rows) {
        return Err(format!(
            "the column {name:?} has {} different values in {rows} rows, such as {fractional}; labels must be classes, \
             and regression is not supported",
            names.len()
        ));
    }
    about.extend(merged.iter().map(|spellings| {
        format!("{} are the same number and are treated as one value", spellings.join(", "))
    }));
    Ok(names.into_iter().map(|name| Category { values: vec![name.clone()], name }).collect())
}
