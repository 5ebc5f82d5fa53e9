//! `fedtvd predict MODEL FILE`: the predictions of a trained model for a user's own rows or images.

use crate::ignored;
use crate::output::predictions::{image_rows, table_rows};
use crate::output::trained_model::TrainedModel;
use crate::request::{
    DeviceOption, Failure, Output, eprint_line, plural, print, print_with, refuse_overwriting,
};
use anyhow::{Context, anyhow};
use clap::Args;
use fedtvd_data::set::Places;
use serde::Serialize;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// Predict classes and probabilities for the rows of a table, or for images.
#[derive(Args)]
pub(crate) struct Predict {
    /// Model file (safetensors) or run directory
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// A table with the columns that the model was trained on (a label is not needed), a PNG image, or a folder of them
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write to a CSV file instead of stdout; an existing file is replaced, unless it is the input, the model or another file of a run
    #[arg(long, value_name = "CSV")]
    out: Option<PathBuf>,
    /// Folder with data sets [default: $FEDTVD_DATA]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceOption,
    #[command(flatten)]
    output: Output,
}

#[derive(Serialize)]
struct View<'a> {
    model: &'a Path,
    file: &'a Path,
    out: Option<&'a Path>,
    class_names: &'a [String],
    predictions: Vec<One<'a>>,
}

#[derive(Serialize)]
struct One<'a> {
    row: usize,
    prediction: &'a str,
    probabilities: &'a [f64],
}

impl Predict {
    pub(crate) fn answer(&self) -> Result<(), Failure> {
        let mut model = TrainedModel::read(&self.model, None, &Places::new(self.data.clone()))?;
        model.device = self.device.device_for(&self.model)?;
        if let Some(out) = &self.out {
            refuse_overwriting(out, &[&self.file, &model.file])?;
        }
        let image =
            self.file.is_dir() || self.file.extension().is_some_and(|end| end.eq_ignore_ascii_case("png"));
        let predicted = match &model.schema {
            Some(schema) if !image => table_rows(&model, schema, &self.file)?,
            None if image => image_rows(&model, &self.file)?,
            Some(_) => return Err(self.wrong("is for tables", "a table")),
            None => return Err(self.wrong("is for images", "a PNG image, or a folder of PNG images")),
        };
        if !self.output.quiet {
            let note = ignored::data_folder_of(self.data.as_deref(), &self.model);
            note.iter().for_each(|note| eprint_line(format_args!("note: {note}")));
            predicted.notes.iter().for_each(|note| eprint_line(format_args!("note: {note}")));
        }
        if let Some(out) = &self.out {
            let written = File::create(out).and_then(|file| {
                let mut file = BufWriter::new(file);
                predicted.write(&model, &mut file)?;
                file.flush()
            });
            written.with_context(|| format!("writing {}", out.display())).map_err(Failure::Work)?;
        }
        if self.output.json {
            let one =
                |(row, probabilities)| One { row, prediction: model.best(probabilities), probabilities };
            let view = View {
                model: &self.model,
                file: &self.file,
                out: self.out.as_deref(),
                class_names: &model.class_names,
                predictions: (1..)
                    .zip(&predicted.probabilities)
                    .map(|(row, p)| one((row, p.as_slice())))
                    .collect(),
            };
            return self.output.answer(&view, String::new);
        }
        match &self.out {
            None => print_with(|out| predicted.write(&model, out)),
            Some(out) => {
                let rows = plural(predicted.probabilities.len(), "prediction");
                print(format!("{rows} written to {}\n", out.display()).as_bytes())
            }
        }
    }

    fn wrong(&self, is: &str, needs: &str) -> Failure {
        let (model, file) = (self.model.display(), self.file.display());
        Failure::Request(anyhow!("{model} {is}, and {file} is not {needs}"))
    }
}
