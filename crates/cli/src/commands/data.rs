//! `fedtvd data list|fetch|verify|path`: the data sets, and getting the full ones.

use crate::request::{Failure, Output};
use anyhow::anyhow;
use clap::{Args, Subcommand};
use fedtvd_data::set::{ALL, Entry, Places, Verdict, fetch, named, verify};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::PathBuf;

/// List, fetch, verify and find data sets.
#[derive(Args)]
pub(crate) struct Data {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// What there is, and where it is on this machine
    List(List),
    /// Download a data set from its official address, or go on with a download
    Fetch(Fetch),
    /// Compare checksums and class counts with the published ones
    Verify(Verify),
    /// Where a data set is on this machine
    Path(Path),
}

#[derive(Args)]
struct Folder {
    /// Folder with data sets; FEDTVD_DATA unless given
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
    /// The data set
    name: String,
    /// Another address whose files have the official names
    #[arg(long, value_name = "URL")]
    from: Option<String>,
    #[command(flatten)]
    folder: Folder,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
struct Verify {
    /// The data sets; all that are on this machine unless given
    names: Vec<String>,
    #[command(flatten)]
    folder: Folder,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
struct Path {
    /// The data set
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
    /// Answers.
    pub(crate) fn answer(&self) -> Result<(), Failure> {
        match &self.verb {
            Verb::List(list) => list.answer(),
            Verb::Fetch(fetch) => fetch.answer(),
            Verb::Verify(verify) => verify.answer(),
            Verb::Path(path) => path.answer(),
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
    named(name).ok_or_else(|| Failure::Request(anyhow!("{name} is no data set; there are {}", all())))
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
                    (_, true) => "inside the program".to_owned(),
                    (Some(path), _) => path.display().to_string(),
                    (None, _) => format!("not on this machine: fedtvd data fetch {}", set.name),
                };
                let [channels, height, width] = set.shape;
                let _ = writeln!(
                    text,
                    "{:12} {}\n{:12} {} + {} rows, {} classes, {channels}x{height}x{width} · {}\n{:12} {place}",
                    set.name, set.about, "", set.train, set.test, set.classes, set.licence, ""
                );
            }
            text + "Beside these: any folder of PNG images by class, any CSV with a column of labels.\n"
        })
    }
}

impl Fetch {
    fn answer(&self) -> Result<(), Failure> {
        let entry = entry(&self.name)?;
        if entry.parts.is_empty() {
            let name = entry.name;
            return Err(Failure::Request(anyhow!("{name} is inside the program; there is nothing to fetch")));
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
            (wrong, missing) => {
                Err(Failure::Work(anyhow!("{}: not as published{}", wrong.join(", "), also(missing))))
            }
        }
    }
}

fn text(verdict: &Verdict) -> String {
    let mut text = format!("{}: {}\n", verdict.set, verdict.path);
    for check in &verdict.files {
        let mark = if check.right { "right" } else { "WRONG" };
        let found = match (&check.found, &check.flaw) {
            (Some(found), _) => format!("SHA-256 {found}"),
            (None, Some(flaw)) => flaw.clone(),
            (None, None) => "missing".to_owned(),
        };
        let _ = writeln!(text, "  {mark}  {:28} {found}", check.file);
    }
    if let Some(flaw) = &verdict.flaw {
        let _ = writeln!(text, "  WRONG  rows cannot be counted: {flaw}");
        return text;
    }
    for (part, counts, expected) in [("training", 0), ("test", 1)]
        .map(|(part, place)| (part, &verdict.counts[place], &verdict.expected_counts[place]))
    {
        let mark = if counts == expected { "right" } else { "WRONG" };
        let same = counts.iter().all(|count| *count == counts[0]);
        let shown = match same {
            true => format!("{} of each of {} classes", counts[0], counts.len()),
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
            return Err(Failure::Request(anyhow!("{name} is inside the program; it has no path")));
        }
        let path = self.folder.places().path(entry).map_err(Failure::request)?;
        let view = PathView { name: entry.name, path };
        self.output.answer(&view, || format!("{}\n", view.path.display()))
    }
}
