//! Predictions as CSV: the user's own rows and columns, or the names of images, then the class and the probabilities.

use crate::output::trained_model::TrainedModel;
use crate::request::Failure;
use anyhow::anyhow;
use fedtvd_core::train::{Samples, Values};
use fedtvd_data::decode::Source;
use fedtvd_data::decode::picture::picture;
use fedtvd_data::set::{images, open_table};
use fedtvd_data::table::{Columns, Schema};
use std::path::{Path, PathBuf};

/// The predictions of a file.
pub(crate) struct Predicted {
    /// The text to write.
    pub(crate) csv: String,
    /// Of each row, the probability of each class.
    pub(crate) probabilities: Vec<Vec<f64>>,
    /// Notes on how the rows were read.
    pub(crate) notes: Vec<String>,
}

/// The predictions of all rows of a table.
pub(crate) fn table_rows(model: &TrainedModel, schema: &Schema, path: &Path) -> Result<Predicted, Failure> {
    let table = open_table(path, &schema.layout()).map_err(Failure::request)?;
    let columns = Columns::all(&table, schema).map_err(Failure::request)?;
    let values = Values::Floats(columns.inputs(schema).map_err(Failure::request)?);
    let (rows, classes) = (columns.rows(), schema.label.classes.len());
    let samples = Samples::new([schema.inputs(), 1, 1], classes, values, vec![0; rows], rows);
    let probabilities = model.probabilities(samples.map_err(Failure::request)?)?;
    let mut csv = Csv::new(table.separator);
    csv.row(table.names.iter().map(String::as_str), &added(&table.names, &model.class_names));
    let mut lines = table.rows();
    for of in &probabilities {
        let Some(row) = lines.next().map_err(Failure::request)? else { break };
        csv.row(row.fields(), &shown(model, of));
    }
    Ok(Predicted { csv: csv.text, probabilities, notes: columns.notes() })
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
        if one.shape != model.network.input {
            let ([c, h, w], [channels, height, width]) = (one.shape, model.network.input);
            return Err(Failure::Request(anyhow!(
                "{} is {c}x{h}x{w} (channels, height, width); the model is for {channels}x{height}x{width}",
                file.display()
            )));
        }
        pixels.extend(one.pixels);
    }
    let values = Values::bytes(pixels, &model.normal);
    let classes = model.class_names.len();
    let samples = Samples::new(model.network.input, classes, values, vec![0; files.len()], files.len());
    let probabilities = model.probabilities(samples.map_err(Failure::request)?)?;
    let mut csv = Csv::new(b',');
    csv.row(["file"].into_iter(), &added(&["file".to_owned()], &model.class_names));
    for (file, of) in files.iter().zip(&probabilities) {
        csv.row([file.display().to_string().as_str()].into_iter(), &shown(model, of));
    }
    Ok(Predicted { csv: csv.text, probabilities, notes: Vec::new() })
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

fn shown(model: &TrainedModel, probabilities: &[f64]) -> Vec<String> {
    let best = model.best(probabilities).to_owned();
    std::iter::once(best).chain(probabilities.iter().map(|p| format!("{p:.6}"))).collect()
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
    pub(crate) fn row<'a>(&mut self, own: impl Iterator<Item = &'a str>, further: &'a [String]) {
        for (place, field) in own.chain(further.iter().map(String::as_str)).enumerate() {
            if place > 0 {
                self.text.push(self.separator);
            }
            let quotes = field.contains([self.separator, '"', '\n', '\r']);
            match quotes {
                true => self.text.extend(["\"", &field.replace('"', "\"\""), "\""]),
                false => self.text += field,
            }
        }
        self.text.push('\n');
    }
}
