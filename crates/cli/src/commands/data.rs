//! `fedtvd data list|fetch|verify|path|schema`: lists and downloads data sets, and describes tables.

use crate::commands::data_schema::DataSchema;
use crate::request::{Failure, Output};
use anyhow::anyhow;
use clap::{Args, Subcommand};
use fedtvd_data::set::{ALL, Entry, Places, Verdict, fetch, named, verify};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::PathBuf;

/// List, download, verify and locate data sets, and describe tables.
#[derive(Args)]
pub(crate) struct Data {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List the data sets and where they are on this machine
    List(List),
    /// Download a data set, or resume a download
    Fetch(Fetch),
    /// Compare checksums and class counts with the published ones
    Verify(Verify),
    /// Print the path of a data set on this machine
    Path(Path),
    /// Print a schema for tables: what each column is and how it becomes inputs of a model
    Schema(DataSchema),
}

#[derive(Args)]
struct Folder {
    /// Folder with data sets [default: $FEDTVD_DATA]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

#[derive(Args)]
struct List {
    #[command(flatten)]
    folder: Folder,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
struct Fetch {
    /// Name of the data set
    name: String,
    /// Mirror with the original file names [default: the official address]
    #[arg(long, value_name = "URL")]
    from: Option<String>,
    #[command(flatten)]
    folder: Folder,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
struct Verify {
    /// Names of the data sets [default: all on this machine]
    names: Vec<String>,
    #[command(flatten)]
    folder: Folder,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
struct Path {
    /// Name of the data set
    name: String,
    #[command(flatten)]
    folder: Folder,
    #[command(flatten)]
    output: Output,
}

#[derive(Serialize)]
struct SetView {
    name: &'static str,
    about: &'static str,
    licence: &'static str,
    shape: [usize; 3],
    classes: usize,
    train: u64,
    test: u64,
    embedded: bool,
    path: Option<PathBuf>,
}

#[derive(Serialize)]
struct PathView {
    name: &'static str,
    path: PathBuf,
}

impl Data {
    pub(crate) fn answer(&self) -> Result<(), Failure> {
        match &self.action {
            Action::List(list) => list.answer(),
            Action::Fetch(fetch) => fetch.answer(),
            Action::Verify(verify) => verify.answer(),
            Action::Path(path) => path.answer(),
            Action::Schema(schema) => schema.answer(),
        }
    }
}

impl Folder {
    fn places(&self) -> Places {
        Places::new(self.data.clone())
    }
}

fn entry(name: &str) -> Result<&'static Entry, Failure> {
    let all = || ALL.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ");
    named(name).ok_or_else(|| Failure::Request(anyhow!("{name} is not a data set; available: {}", all())))
}

impl List {
    fn answer(&self) -> Result<(), Failure> {
        let places = self.folder.places();
        let view = |entry: &'static Entry| SetView {
            name: entry.name,
            about: entry.about,
            licence: entry.licence,
            shape: entry.shape,
            classes: entry.train.len(),
            train: entry.train.iter().sum(),
            test: entry.test.iter().sum(),
            embedded: entry.parts.is_empty(),
            path: (!entry.parts.is_empty()).then(|| places.path(entry).ok()).flatten(),
        };
        let sets: Vec<SetView> = ALL.iter().map(view).collect();
        self.output.answer(&sets, || {
            let mut text = String::new();
            for set in &sets {
                let place = match (&set.path, set.embedded) {
                    (_, true) => "embedded in the program".to_owned(),
                    (Some(path), _) => path.display().to_string(),
                    (None, _) => format!("not on this machine: fedtvd data fetch {}", set.name),
                };
                let [channels, height, width] = set.shape;
                let _ = writeln!(
                    text,
                    "{:12} {}\n{:12} {} training + {} test rows, {} classes, {channels}x{height}x{width} · {}\n{:12} {place}",
                    set.name, set.about, "", set.train, set.test, set.classes, set.licence, ""
                );
            }
            text + "You can also use a folder of PNG images with a subfolder per class, or a CSV file with a label column.\n"
        })
    }
}

impl Fetch {
    fn answer(&self) -> Result<(), Failure> {
        let entry = entry(&self.name)?;
        if entry.parts.is_empty() {
            let name = entry.name;
            return Err(Failure::Request(anyhow!(
                "{name} is embedded in the program and need not be downloaded"
            )));
        }
        let bar = if self.output.quiet { ProgressBar::hidden() } else { ProgressBar::no_length() };
        let style =
            ProgressStyle::with_template("{msg} {bar:30} {bytes} of {total_bytes} · {bytes_per_sec} · {eta}");
        bar.set_style(style.map_err(Failure::work)?);
        let path = fetch(entry, &self.folder.places(), self.from.as_deref(), &mut |progress| {
            bar.set_message(progress.file.to_owned());
            bar.set_length(progress.total.unwrap_or(progress.done));
            bar.set_position(progress.done);
        });
        bar.finish_and_clear();
        let path = path.map_err(Failure::work)?;
        let view = PathView { name: entry.name, path };
        self.output.answer(&view, || format!("{}\n", view.path.display()))
    }
}

impl Verify {
    fn answer(&self) -> Result<(), Failure> {
        let places = self.folder.places();
        let entries: Vec<&Entry> = match self.names.as_slice() {
            [] => ALL.iter().filter(|entry| entry.parts.is_empty() || places.path(entry).is_ok()).collect(),
            names => names.iter().map(|name| entry(name)).collect::<Result<_, _>>()?,
        };
        let (mut verdicts, mut missing) = (Vec::new(), Vec::new());
        for entry in entries {
            match verify(entry, &places) {
                Ok(verdict) => verdicts.push(verdict),
                Err(error) => missing.push(error.to_string()),
            }
        }
        if !verdicts.is_empty() {
            self.output.answer(&verdicts, || verdicts.iter().map(text).collect())?;
        }
        let wrong: Vec<&str> =
            verdicts.iter().filter(|verdict| !verdict.right).map(|verdict| verdict.set.as_str()).collect();
        let also = |missing: &[String]| missing.iter().map(|error| format!("; {error}")).collect::<String>();
        match (wrong.as_slice(), missing.as_slice()) {
            ([], []) => Ok(()),
            ([], missing) => Err(Failure::Request(anyhow!("{}", missing.join("; ")))),
            (wrong, missing) => Err(Failure::Work(anyhow!(
                "{}: different from the published data{}",
                wrong.join(", "),
                also(missing)
            ))),
        }
    }
}

fn text(verdict: &Verdict) -> String {
    let mut text = format!("{}: {}\n", verdict.set, verdict.path);
    for check in &verdict.files {
        let mark = if check.right { "ok   " } else { "WRONG" };
        let found = match (&check.found, &check.flaw) {
            (Some(found), _) => format!("SHA-256 {found}"),
            (None, Some(flaw)) => flaw.clone(),
            (None, None) => "missing".to_owned(),
        };
        let _ = writeln!(text, "  {mark}  {:28} {found}", check.file);
    }
    if let Some(flaw) = &verdict.flaw {
        let _ = writeln!(text, "  WRONG  cannot count the rows: {flaw}");
        return text;
    }
    for (part, counts, expected) in [("training", 0), ("test", 1)]
        .map(|(part, place)| (part, &verdict.counts[place], &verdict.expected_counts[place]))
    {
        let mark = if counts == expected { "ok   " } else { "WRONG" };
        let same = counts.iter().all(|count| *count == counts[0]);
        let shown = match same {
            true => format!("{} in each of {} classes", counts[0], counts.len()),
            false => format!("{counts:?}"),
        };
        let _ = writeln!(text, "  {mark}  {part} rows: {shown}");
    }
    text
}

impl Path {
    fn answer(&self) -> Result<(), Failure> {
        let entry = entry(&self.name)?;
        if entry.parts.is_empty() {
            let name = entry.name;
            return Err(Failure::Request(anyhow!("{name} is embedded in the program and has no path")));
        }
        let path = self.folder.places().path(entry).map_err(Failure::request)?;
        let view = PathView { name: entry.name, path };
        self.output.answer(&view, || format!("{}\n", view.path.display()))
    }
}
