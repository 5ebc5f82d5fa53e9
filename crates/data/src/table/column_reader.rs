//! Reads the fields of one column as its schema says, and counts what is missing, unknown or clipped.

use super::columns::Entries;
use super::schema::{
    Categories, Column, Decimal, Kind, MissingCategory, MissingNumber, NotNumbers, Number, Schema, Unknown,
};
use super::values::{Lookup, Missing, number};
use crate::decode::table::Row;
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// The code of a missing category.
pub(super) const MISSING_CODE: u32 = u32::MAX;
/// The code of an unknown category.
pub(super) const UNKNOWN_CODE: u32 = u32::MAX - 1;

/// What became of a column's values.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Report {
    pub(super) name: String,
    pub(super) missing: u64,
    pub(super) clipped: u64,
    pub(super) unknown: u64,
    /// Some of the unknown categories.
    pub(super) such_as: BTreeSet<String>,
    /// What is done about missing values.
    pub(super) instead: &'static str,
    /// The least and the greatest number: if any input is infinite, one of theirs is.
    pub(super) extremes: [Option<Extreme>; 2],
}

impl Report {
    /// Adds what became of the same column in another file.
    pub(super) fn add(&mut self, other: Self) {
        self.missing += other.missing;
        self.clipped += other.clipped;
        self.unknown += other.unknown;
        self.such_as.extend(other.such_as);
        let [least, most] = other.extremes;
        let beyond = |own: &Option<Extreme>, other: &Extreme, order: Ordering| {
            own.as_ref().is_none_or(|own| other.x.total_cmp(&own.x) == order)
        };
        if let Some(least) = least.filter(|least| beyond(&self.extremes[0], least, Ordering::Less)) {
            self.extremes[0] = Some(least);
        }
        if let Some(most) = most.filter(|most| beyond(&self.extremes[1], most, Ordering::Greater)) {
            self.extremes[1] = Some(most);
        }
    }
}

/// A number, and where it is.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Extreme {
    pub(super) x: f64,
    pub(super) file: String,
    pub(super) row: u64,
}

/// Unknown categories that are named.
const SUCH_AS: usize = 5;

/// Reads one column.
pub(super) enum Reader<'s> {
    Number {
        number: &'s Number,
        numbers: Vec<f64>,
        /// The least and the greatest one, each with its row.
        range: Option<[(f64, u64); 2]>,
        missing: Missing,
        report: Report,
        schema: &'s Schema,
    },
    Category {
        of: &'s Categories,
        codes: Vec<u32>,
        missing: Missing,
        lookup: Lookup,
        report: Report,
        schema: &'s Schema,
    },
}

impl<'s> Reader<'s> {
    pub(super) fn new(schema: &'s Schema, column: &'s Column, rows: usize) -> Option<Self> {
        let named = |instead| Report { name: column.name.clone(), instead, ..Report::default() };
        let missing =
            |own: &'s [String]| Missing::new(schema.missing_values.iter().chain(own), schema.decimal);
        match &column.kind {
            Kind::Number(number) => {
                let instead = match number.missing {
                    MissingNumber::Indicator => {
                        "the centre replaces them, and a missing-value indicator is added"
                    }
                    MissingNumber::Centre => "the centre replaces them",
                    MissingNumber::Value(_) => "the schema's value replaces them",
                    MissingNumber::Refuse => "",
                };
                let (numbers, missing) = (vec![f64::NAN; rows], missing(&number.missing_values));
                Some(Self::Number { number, numbers, range: None, missing, report: named(instead), schema })
            }
            Kind::Category(of) => {
                let missing = missing(&of.missing_values);
                let lookup = Lookup::new(&of.categories, schema.decimal);
                let report = named("their one-hot inputs are all 0");
                Some(Self::Category { of, codes: vec![MISSING_CODE; rows], missing, lookup, report, schema })
            }
            Kind::Ignored => None,
        }
    }

    /// Reads the field of a row into a place, or says what would have been right.
    pub(super) fn add(&mut self, row: &Row<'_>, column: usize, place: usize) -> Result<(), String> {
        let field = row.field(column);
        match self {
            Self::Number { number: column, numbers, range, missing, report, schema } => {
                let x = number(field, schema.decimal).filter(|x| !missing.number(*x));
                let Some(mut x) = x else {
                    let known = missing.any(field, schema.decimal);
                    if !known && column.not_numbers == NotNumbers::Refuse {
                        return Err(not_a_number(field, schema.decimal));
                    }
                    if column.missing == MissingNumber::Refuse {
                        return Err("is a missing value, which the schema does not allow here".to_owned());
                    }
                    report.missing += 1;
                    return Ok(());
                };
                if let Some([least, most]) = column.bounds
                    && !(least..=most).contains(&x)
                {
                    report.clipped += 1;
                    x = x.clamp(least, most);
                }
                numbers[place] = x;
                let [least, most] = range.get_or_insert([(x, row.number); 2]);
                if x < least.0 {
                    *least = (x, row.number);
                } else if x > most.0 {
                    *most = (x, row.number);
                }
            }
            Self::Category { of, codes, missing, lookup, report, schema } => {
                codes[place] = match lookup.place(field) {
                    Some(category) => category,
                    None if missing.any(field, schema.decimal) => {
                        if of.missing == MissingCategory::Refuse {
                            return Err("is a missing value, which the schema does not allow here".to_owned());
                        }
                        report.missing += 1;
                        MISSING_CODE
                    }
                    None if of.unknown == Unknown::Refuse => {
                        let names: Vec<&str> = of.categories.iter().map(|one| one.name.as_str()).collect();
                        return Err(format!("is unknown; the categories are {}", names.join(", ")));
                    }
                    None => {
                        report.unknown += 1;
                        if report.such_as.len() < SUCH_AS {
                            report.such_as.insert(field.chars().take(80).collect());
                        }
                        UNKNOWN_CODE
                    }
                };
            }
        }
        Ok(())
    }

    /// The entries of the column, and what became of its values in this file.
    pub(super) fn done(self, file: &str) -> (Entries, Report) {
        match self {
            Self::Number { numbers, range, mut report, .. } => {
                let extreme = |(x, row): (f64, u64)| Some(Extreme { x, file: file.to_owned(), row });
                report.extremes = range.map_or([None, None], |range| range.map(extreme));
                (Entries::Numbers(numbers), report)
            }
            Self::Category { codes, report, .. } => (Entries::Codes(codes), report),
        }
    }
}

/// What to do about a text in a column of numbers.
fn not_a_number(text: &str, decimal: Decimal) -> String {
    let (own, other, mark, others) = match decimal {
        Decimal::Point => ("point", "comma", ",", Decimal::Comma),
        Decimal::Comma => ("comma", "point", ".", Decimal::Point),
    };
    if number(text, others).is_some() {
        return format!(
            "is not a number with a decimal {own}; if it has a decimal {other}, set decimal = {mark:?} in the schema"
        );
    }
    "is not a number; correct it, or say in the schema that the column is a category or that not_numbers = \"missing\""
        .to_owned()
}
