//! Tables: a schema that says how columns become inputs of a model, made from files, written as TOML, and applied by
//! column name wherever rows are read.

mod clipping;
mod column_reader;
mod columns;
pub(crate) mod distinct;
#[cfg(test)]
pub(crate) mod example;
mod infer;
mod moments;
mod overflow;
mod profile;
mod schema;
mod schema_file;
mod schema_text;
mod standards;
pub(crate) mod values;

pub(crate) use columns::refusal;
pub use columns::{Columns, Entries, RowError};
pub use infer::{Inferred, Request, infer};
pub use moments::{LEAST_VALUES, Moments};
pub use profile::{Profile, Profiles};
pub use schema::{
    Categories, Category, Column, Decimal, Kind, Label, MissingCategory, MissingNumber, NotNumbers, Number,
    Schema, SchemaError, Standard, Unknown,
};
pub use standards::{Remark, StandardsError, standards};
