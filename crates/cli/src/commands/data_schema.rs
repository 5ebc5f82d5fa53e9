//! `fedtvd data schema FILE…`: writes a schema for tables, for people to read and edit.

use crate::request::{Failure, Output, eprint_line};
use clap::Args;
use fedtvd_data::set::MadeSchema;
use fedtvd_data::table::Request;
use serde::Serialize;
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct DataSchema {
    /// Tables (CSV, TSV, or with semicolons) with the same columns
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Name of the label column
    #[arg(long, value_name = "COLUMN", default_value = "label")]
    label: String,
    /// Columns that are categories although they hold numbers
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',')]
    category: Vec<String>,
    /// Columns to leave out
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',')]
    ignore: Vec<String>,
    /// Names of the columns, for files whose first line is already a row
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',')]
    header: Vec<String>,
    /// Write the centre and scale of these files' numbers, instead of leaving both to the training rows of a run
    #[arg(long)]
    fixed: bool,
    /// Leave out the comments, which hold counts, ranges and examples of the files' values, so that the schema can be sent to others
    #[arg(long)]
    no_comments: bool,
    #[command(flatten)]
    output: Output,
}

#[derive(Serialize)]
struct View<'a> {
    schema: &'a str,
    rows: u64,
    inputs: usize,
    classes: Vec<String>,
}

impl DataSchema {
    pub(crate) fn answer(&self) -> Result<(), Failure> {
        let request = Request {
            label: self.label.clone(),
            categories: self.category.clone(),
            ignored: self.ignore.clone(),
            header: (!self.header.is_empty()).then(|| self.header.clone()),
        };
        let made = MadeSchema::of(&self.files, &request, self.fixed).map_err(Failure::request)?;
        if let Some(doubt) = made.doubt.as_ref().filter(|_| !self.output.quiet) {
            eprint_line(format_args!(
                "note: {doubt}; the schema takes it for the former: read it before you use it"
            ));
        }
        let schema = if self.no_comments { made.schema.text() } else { made.text.clone() };
        let view = View {
            schema: &schema,
            rows: made.rows,
            inputs: made.schema.inputs(),
            classes: made.schema.class_names(),
        };
        self.output.answer(&view, || schema.clone())
    }
}
