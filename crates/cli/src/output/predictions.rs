//! Predictions as CSV: the user's own rows and columns, or the names of images, then the class and the probabilities.

use crate::output::trained_model::TrainedModel;
use crate::request::Failure;
use anyhow::anyhow;
use fedtvd_core::train::{Samples, Values};
use fedtvd_data::decode::Source;
use fedtvd_data::decode::picture::picture;
use fedtvd_data::decode::table::Table;
use fedtvd_data::set::{images, open_table};
use fedtvd_data::table::{Columns, Decimal, Schema};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The predictions of a file.
pub(crate) struct Predicted {
    subjects: Subjects,
    /// Of each row, the probability of each class.
    pub(crate) probabilities: Vec<Vec<f64>>,
    /// Notes on how the rows were read.
    pub(crate) notes: Vec<String>,
    /// How probabilities are written.
    decimal: Decimal,
}

/// What is predicted.
enum Subjects {
    Rows(Table),
    Images(Vec<PathBuf>),
}

impl Predicted {
    /// Writes CSV, row by row: a table may be too large for a second copy of its text.
    pub(crate) fn write(&self, model: &TrainedModel, out: &mut dyn Write) -> io::Result<()> {
        let mut csv =
            Csv::new(if let Subjects::Rows(table) = &self.subjects { table.separator } else { b',' });
        let mut row = |own: &mut dyn Iterator<Item = &str>, further: &[String]| {
            csv.text.clear();
            csv.row(own, further);
            out.write_all(csv.text.as_bytes())
        };
        let shown = |of: &[f64]| shown(model, of, self.decimal);
        match &self.subjects {
            Subjects::Rows(table) => {
                row(&mut table.names.iter().map(String::as_str), &added(&table.names, &model.class_names))?;
                let mut lines = table.rows();
                for of in &self.probabilities {
                    let Some(line) = lines.next().map_err(io::Error::other)? else { break };
                    row(&mut line.fields(), &shown(of))?;
                }
            }
            Subjects::Images(files) => {
                row(&mut ["file"].into_iter(), &added(&["file".to_owned()], &model.class_names))?;
                for (file, of) in files.iter().zip(&self.probabilities) {
                    row(&mut [file.display().to_string().as_str()].into_iter(), &shown(of))?;
                }
            }
        }
        Ok(())
    }
}

/// The predictions of all rows of a table.
pub(crate) fn table_rows(model: &TrainedModel, schema: &Schema, path: &Path) -> Result<Predicted, Failure> {
    let table = open_table(path, &schema.layout()).map_err(Failure::request)?;
    let (values, rows, notes) = {
        let columns = Columns::all(&table, schema).map_err(Failure::request)?;
        (columns.inputs(schema).map_err(Failure::request)?, columns.rows(), columns.notes())
    };
    let classes = schema.label.classes.len();
    let samples = Samples::new([schema.inputs(), 1, 1], classes, Values::Floats(values), vec![0; rows], rows);
    let probabilities = model.probabilities(samples.map_err(Failure::request)?)?;
    Ok(Predicted { subjects: Subjects::Rows(table), probabilities, notes, decimal: schema.decimal })
}

/// The predictions of an image, or of all images in a folder and its subfolders.
pub(crate) fn image_rows(model: &TrainedModel, path: &Path) -> Result<Predicted, Failure> {
    let files: Vec<PathBuf> = match path.is_dir() {
        true => images(path).map_err(Failure::request)?,
        false => vec![path.to_owned()],
    };
    let mut pixels = Vec::new();
    for file in &files {
        let one = Source::open(file).and_then(|mut source| picture(&mut source)).map_err(Failure::request)?;
        if one.shape != model.definition.input() {
            let ([c, h, w], [channels, height, width]) = (one.shape, model.definition.input());
            return Err(Failure::Request(anyhow!(
                "{} is {c}x{h}x{w} (channels, height, width); the model is for {channels}x{height}x{width}",
                file.display()
            )));
        }
        pixels.extend(one.pixels);
    }
    let values = Values::bytes(pixels, &model.normal);
    let classes = model.class_names.len();
    let samples = Samples::new(model.definition.input(), classes, values, vec![0; files.len()], files.len());
    let probabilities = model.probabilities(samples.map_err(Failure::request)?)?;
    let subjects = Subjects::Images(files);
    Ok(Predicted { subjects, probabilities, notes: Vec::new(), decimal: Decimal::Point })
}

/// `prediction` and `p_CLASS`, with underscores where the user's columns have the same names.
fn added(own: &[String], classes: &[String]) -> Vec<String> {
    let wanted =
        std::iter::once("prediction".to_owned()).chain(classes.iter().map(|class| format!("p_{class}")));
    let free = |mut name: String| {
        while own.contains(&name) {
            name.push('_');
        }
        name
    };
    wanted.map(free).collect()
}

fn shown(model: &TrainedModel, probabilities: &[f64], decimal: Decimal) -> Vec<String> {
    let best = model.best(probabilities).to_owned();
    let written = |p: &f64| match decimal {
        Decimal::Point => format!("{p:.6}"),
        Decimal::Comma => format!("{p:.6}").replace('.', ","),
    };
    std::iter::once(best).chain(probabilities.iter().map(written)).collect()
}

/// CSV as it is written.
pub(crate) struct Csv {
    separator: char,
    pub(crate) text: String,
}

impl Csv {
    pub(crate) fn new(separator: u8) -> Self {
        Self { separator: char::from(separator), text: String::new() }
    }

    /// A row of the user's fields and further ones.
    pub(crate) fn row<'a>(&mut self, own: impl Iterator<Item = &'a str>, further: &[String]) {
        let start = self.text.len();
        own.for_each(|field| self.field(field));
        further.iter().for_each(|field| self.field(field));
        // Every field begins with a separator, and the first one must not.
        if self.text.len() > start {
            self.text.remove(start);
        }
        self.text.push('\n');
    }

    fn field(&mut self, field: &str) {
        self.text.push(self.separator);
        match field.contains([self.separator, '"', '\n', '\r']) {
            true => self.text.extend(["\"", &field.replace('"', "\"\""), "\""]),
            false => self.text += field,
        }
    }
}
