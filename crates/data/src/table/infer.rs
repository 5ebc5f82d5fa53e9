//! Makes a schema from what files hold, and says how each decision was made.

use super::distinct::Distinct;
use super::profile::{CATEGORIES, Profile, Profiles};
use super::schema::{
    Categories, Category, Column, Decimal, Kind, Label, MISSING, MissingCategory, MissingNumber, NotNumbers,
    Number, Schema, Unknown,
};
use super::values::number;
use std::collections::{BTreeMap, BTreeSet};

/// What a user asks for in a schema that is made.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The column with the labels.
    pub label: String,
    /// Columns that are categories, even if they look like numbers.
    pub categories: Vec<String>,
    /// Columns that are left out.
    pub ignored: Vec<String>,
    /// Names of the columns of files without a line of names.
    pub header: Option<Vec<String>>,
}

/// A schema made from files.
#[derive(Clone, Debug)]
pub struct Inferred {
    /// The schema.
    pub schema: Schema,
    /// Lines about each column, by name.
    pub comments: BTreeMap<String, Vec<String>>,
    /// Sentences for those who use the schema without having read it.
    pub notes: Vec<String>,
    /// Why the commas of its numbers may not be decimal ones, as it takes them to be.
    pub doubt: Option<String>,
}

/// A column is one of numbers if at least this part of its values are numbers.
const MOSTLY: f64 = 0.9;

/// The schema of these files. Fails if they cannot be one labelled table.
pub fn infer<'f>(files: &'f [Profiles], request: &Request) -> Result<Inferred, String> {
    let Some(first) = files.first() else { return Err("there is no file to make a schema from".to_owned()) };
    let rows: u64 = files.iter().map(|file| file.kept).sum();
    let (mut comments, mut notes) = (BTreeMap::new(), Vec::new());
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
    for (key, name) in [("--category", &request.categories), ("--ignore", &request.ignored)] {
        if let Some(name) = name.iter().find(|name| !seen.contains(name.as_str())) {
            return Err(format!("{key} {name:?} is not a column; the columns are {}", names.join(", ")));
        }
    }
    let (decimal, doubt) = decimal(files);
    let (mut label, mut columns) = (None, Vec::new());
    for name in names {
        let mut profiles =
            columns_of.iter().filter_map(|(_, own)| own.get(name)).map(|&profile| profile.clone());
        let Some(profile) = profiles.next() else { continue };
        let whole = profiles.fold(profile, |whole, part| whole.joined(&part));
        let all = if name == request.label { files.iter().map(|file| file.rows).sum() } else { rows };
        let mut about = describe(&whole, all, decimal);
        let lacking: Vec<&str> = columns_of
            .iter()
            .filter(|(_, own)| !own.contains_key(name))
            .map(|(file, _)| name_of(file))
            .collect();
        if name == request.label {
            if !lacking.is_empty() {
                return Err(format!("{} has no column {name:?}, which is the label", lacking.join(", ")));
            }
            let (found, merged) = classes(&whole, rows, decimal)?;
            notes.extend(merged.iter().map(|line| format!("{name}: {line}")));
            about.extend(merged);
            label = Some(found);
        } else {
            let kind = if !lacking.is_empty() {
                about.push(format!("left out: it is not in {}", lacking.join(", ")));
                Kind::Ignored
            } else {
                let odd = columns_of
                    .iter()
                    .find_map(|(file, own)| Some((*file, first_odd(own.get(name)?, decimal)?)));
                let odd = odd.map(|(file, (row, text))| match files.len() {
                    1 => format!("{text:?} in row {row}"),
                    _ => format!("{text:?} in row {row} of {}", name_of(file)),
                });
                kind(&whole, decimal, request, odd, &mut about)?
            };
            if matches!(kind, Kind::Number(_)) {
                notes.extend(identifier(&whole, &mut about));
            }
            columns.push(Column { name: name.to_owned(), kind });
        }
        comments.insert(name.to_owned(), about);
    }
    let Some(classes) = label else {
        let names: Vec<&str> = first.columns.iter().map(|column| column.name.as_str()).collect();
        return Err(format!(
            "data.label = {:?} is not a column; the columns are {}",
            request.label,
            names.join(", ")
        ));
    };
    if columns.is_empty() {
        return Err(format!("{:?} is the only column; there are no inputs to learn from", request.label));
    }
    let schema = Schema {
        separator: None,
        decimal,
        header: request.header.clone(),
        missing_values: MISSING.iter().map(|&text| text.to_owned()).collect(),
        label: Label { column: request.label.clone(), classes },
        columns,
    };
    let schema = schema.checked().map_err(|error| error.to_string())?;
    Ok(Inferred { schema, comments, notes, doubt })
}

/// A file's name without its folder.
fn name_of(file: &Profiles) -> &str {
    file.file.rsplit(['/', '\\']).next().unwrap_or_default()
}

/// A decimal comma, if numbers with one occur, no number has a point, and commas do not separate the fields; and why the
/// commas may not be decimal ones, if all of them may separate thousands.
fn decimal(files: &[Profiles]) -> (Decimal, Option<String>) {
    let all = || files.iter().flat_map(|file| &file.columns);
    let commas: Vec<&Profile> = all().filter(|column| column.commas > 0 && column.texts == 0).collect();
    let separated = files.iter().any(|file| file.separator == b',');
    if separated || commas.is_empty() || all().any(|column| column.with_point) {
        return (Decimal::Point, None);
    }
    let doubtful = commas.iter().all(|column| column.grouped == column.commas);
    let doubt = commas.first().filter(|_| doubtful).map(|column| {
        let text = column.first_comma.as_ref().map_or("", |(_, text)| text);
        let [decimal, whole] = [".", ""].map(|mark| text.replace(',', mark));
        format!(
            "column {:?}: {text:?} may be {decimal} with a decimal comma or {whole} with a thousands separator",
            column.name
        )
    });
    (Decimal::Comma, doubt)
}

/// Row and text of the first value that is not a number.
fn first_odd(column: &Profile, decimal: Decimal) -> Option<(u64, String)> {
    let comma = column.first_comma.as_ref().filter(|_| decimal == Decimal::Point);
    let odd = [comma, column.first_text.as_ref()].into_iter().flatten().min_by_key(|(row, _)| *row);
    odd.map(|(row, text)| (*row, text.chars().take(40).collect()))
}

/// A note on a column of numbers that may be an index or identify people; a comment is added, too.
fn identifier(column: &Profile, about: &mut Vec<String>) -> Option<String> {
    let (said, comment) = match (column.identifies(), column.name.is_empty()) {
        (true, _) => (
            "has a different whole number in every row; if these identify rows",
            "a different whole number in every row: if these identify rows, set kind = \"ignored\"",
        ),
        (false, true) => (
            "is an input; if it is an index",
            "a column without a name: if it is an index, set kind = \"ignored\"",
        ),
        (false, false) => return None,
    };
    about.push(comment.to_owned());
    let subject = match column.name.as_str() {
        "" => "the column without a name".to_owned(),
        name => format!("the column {name:?}"),
    };
    Some(format!(
        "{subject} {said}, leave it out: kind = \"ignored\" in a schema (data.schema; fedtvd data schema --ignore makes one)"
    ))
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
    request: &Request,
    odd: Option<String>,
    about: &mut Vec<String>,
) -> Result<Kind, String> {
    if request.ignored.contains(&column.name) {
        return Ok(Kind::Ignored);
    }
    let (numbers, present) = (numbers(column, decimal), column.present());
    let requested = request.categories.contains(&column.name);
    if !requested && numbers as f64 >= MOSTLY * present as f64 {
        if numbers < present {
            about.push(format!(
                "{} of {present} are not numbers, the first is {}; correct them, or set not_numbers = \"missing\" or kind = \
                 \"category\"",
                present - numbers,
                odd.unwrap_or_default()
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
        if requested {
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
    let categories = match requested {
        true => {
            let distinct = Distinct::of(column.distinct.keys().map(String::as_str), decimal);
            distinct.names.iter().map(category).collect()
        }
        false => column.distinct.keys().map(category).collect(),
    };
    let (unknown, missing) = (Unknown::Zeros, MissingCategory::Zeros);
    Ok(Kind::Category(Categories { categories, unknown, missing, missing_values: Vec::new() }))
}

/// The classes of a label, and a line about each number that is written in several ways.
fn classes(column: &Profile, rows: u64, decimal: Decimal) -> Result<(Vec<Category>, Vec<String>), String> {
    let name = &column.name;
    let Distinct { names, merged, .. } = Distinct::of(column.distinct.keys().map(String::as_str), decimal);
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
    let fractional = names.iter().find(|name| number(name, decimal).is_some_and(|x| x.fract() != 0.0));
    if let Some(fractional) = fractional.filter(|_| 2 * names.len() as u64 > rows) {
        return Err(format!(
            "the column {name:?} has {} different values in {rows} rows, such as {fractional}; labels must be classes, \
             and regression is not supported",
            names.len()
        ));
    }
    let same = |spellings: &Vec<String>| {
        format!("{} are the same number and are treated as one value", spellings.join(", "))
    };
    let classes = names.into_iter().map(|name| Category { values: vec![name.clone()], name }).collect();
    Ok((classes, merged.iter().map(same).collect()))
}
