//! Reads the fields of one column as its schema says, and counts what is missing, unknown or clipped.

use super::columns::Entries;
use super::schema::{
    Categories, Column, Kind, MissingCategory, MissingNumber, NotNumbers, Number, Schema, Unknown,
};
use super::values::{Lookup, Missing, number};
use std::collections::BTreeSet;

/// The code of a missing category.
pub(super) const MISSING_CODE: u32 = u32::MAX;
/// The code of an unknown category.
pub(super) const UNKNOWN_CODE: u32 = u32::MAX - 1;

/// What became of a column's values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) name: String,
    pub(super) missing: u64,
    pub(super) clipped: u64,
    pub(super) unknown: u64,
    /// Some of the unknown categories.
    pub(super) such_as: BTreeSet<String>,
    /// What is done about missing values.
    pub(super) instead: &'static str,
}

/// Unknown categories that are named.
const SUCH_AS: usize = 5;

/// Reads one column.
pub(super) enum Reader<'s> {
    Number {
        number: &'s Number,
        numbers: Vec<f64>,
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
                        "the mean replaces them, and a missing-value indicator is added"
                    }
                    MissingNumber::Centre => "the mean replaces them",
                    MissingNumber::Value(_) => "the schema's value replaces them",
                    MissingNumber::Refuse => "",
                };
                let (numbers, missing) = (vec![f64::NAN; rows], missing(&number.missing_values));
                Some(Self::Number { number, numbers, missing, report: named(instead), schema })
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

    /// Reads a field into a place, or says what would have been right.
    pub(super) fn add(&mut self, field: &str, place: usize) -> Result<(), String> {
        match self {
            Self::Number { number: column, numbers, missing, report, schema } => {
                let x = number(field, schema.decimal).filter(|x| !missing.number(*x));
                let Some(mut x) = x else {
                    let known = missing.any(field, schema.decimal);
                    if !known && column.not_numbers == NotNumbers::Refuse {
                        return Err(
                            "is not a number; correct it, or say in the schema that the column is a \
                                    category or that not_numbers = \"missing\""
                                .to_owned(),
                        );
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

    pub(super) fn done(self) -> (Entries, Report) {
        match self {
            Self::Number { numbers, report, .. } => (Entries::Numbers(numbers), report),
            Self::Category { codes, report, .. } => (Entries::Codes(codes), report),
        }
    }
}
