//! What a server's schema reads of a site's table, and of which columns statistics are sent: for the site's people to see
//! before anything leaves, and to limit.

use crate::client::SiteError;
use fedtvd_data::table::{Kind, Moments, Schema};
use std::fmt;

/// What is read of a table, and what is sent about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableUse {
    /// The columns that become inputs.
    pub columns: Vec<String>,
    /// The column with the label.
    pub label: String,
    /// The columns of which count, mean and squared deviations are sent.
    pub statistics: Vec<String>,
}

/// More categories than people would write down; they may be a list of identifiers.
const MANY: usize = 64;
/// Number of names that are printed.
const PRINTED: usize = 50;

impl TableUse {
    /// What is read with a schema, and what is sent, given the moments of its open columns.
    pub(crate) fn of(schema: &Schema, moments: &[Moments]) -> Self {
        let sent = schema.open().zip(moments).filter(|(_, moments)| moments.count > 0);
        Self {
            columns: schema.used().map(|column| column.name.clone()).collect(),
            label: schema.label.column.clone(),
            statistics: sent.map(|((name, _), _)| name.to_owned()).collect(),
        }
    }
}

/// Fails if a schema reads a column that the site does not allow.
pub(crate) fn check_allowed(schema: &Schema, allowed: Option<&[String]>) -> Result<(), SiteError> {
    let Some(allowed) = allowed else { return Ok(()) };
    let other = schema.used().filter(|column| !allowed.contains(&column.name));
    let other: Vec<String> = other.map(|column| column.name.clone()).collect();
    if other.is_empty() { Ok(()) } else { Err(SiteError::NotAllowed(names(&other))) }
}

/// A warning for each column with very many categories.
pub(crate) fn warnings(schema: &Schema) -> Vec<String> {
    let many = schema.used().filter_map(|column| match &column.kind {
        Kind::Category(of) if of.categories.len() > MANY => Some((&column.name, of.categories.len())),
        _ => None,
    });
    many.map(|(name, count)| {
        format!(
            "{name}: the server's schema has {count} categories; make sure that they do not identify people"
        )
    })
    .collect()
}

fn names(all: &[String]) -> String {
    let more = all.len().saturating_sub(PRINTED);
    let shown = all[..all.len() - more].join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

impl fmt::Display for TableUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { columns, label, statistics } = self;
        write!(f, "the server's schema reads the columns {} and the label {label}; ", names(columns))?;
        match statistics.as_slice() {
            [] => write!(f, "no statistics of them are sent"),
            sent => write!(f, "count, mean and squared deviations are sent of {}", names(sent)),
        }
    }
}
