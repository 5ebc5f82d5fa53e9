//! `fedtvd report DIR…`: tables, figures and a page from runs that are done.

use crate::request::{Failure, Output, folder};
use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use fedtvd_lab::report::findings::{Report as Findings, Request};
use fedtvd_lab::report::json::Document;
use fedtvd_lab::report::markdown::terminal;
use fedtvd_lab::runs::collection::{Collection, CollectionError, run_directories};
use fedtvd_lab::stats::summary::{Deviation, Question};
use std::path::{Path, PathBuf};

/// Tables, figures, statistics and a page from run directories.
#[derive(Args)]
pub(crate) struct Report {
    /// Folders in or below which there are run directories
    #[arg(value_name = "DIR", required = true)]
    directories: Vec<PathBuf>,
    /// Folder for the report; DIR/report of the first DIR unless given
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The strategy that others are compared with; fedavg unless given, or the first one where there is no fedavg
    #[arg(long, value_name = "LABEL")]
    baseline: Option<String>,
    /// Report on these strategies only, in this order; separated by commas
    #[arg(long, value_delimiter = ',', value_name = "LABELS")]
    strategies: Vec<String>,
    /// Count rounds until this accuracy, from 0 to 1; the baseline's final accuracy unless given
    #[arg(long, value_name = "ACCURACY")]
    target: Option<f64>,
    /// What stands behind ±: the deviation of seeds' means, or of seeds in each round, averaged
    #[arg(long, value_enum, default_value_t)]
    deviation: DeviationOver,
    /// Leave out how long runs took and on which machine
    #[arg(long)]
    no_timing: bool,
    /// What the report is called
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Open the page when it is written
    #[arg(long)]
    open: bool,
    #[command(flatten)]
    output: Output,
}

/// What all others are compared with unless something else is asked for.
const DEFAULT_BASELINE: &str = "fedavg";

#[derive(Clone, Copy, Default, ValueEnum)]
enum DeviationOver {
    /// Over seeds, of the means over the last rounds
    #[default]
    Seeds,
    /// Over seeds in each of the last rounds, averaged over these
    Rounds,
}

impl Report {
    /// Answers.
    pub(crate) fn answer(&self) -> Result<(), Failure> {
        let request = self.request().map_err(Failure::Request)?;
        let directories = run_directories(&self.directories).map_err(Failure::request)?;
        let mut collection = Collection::read(&directories, &mut |error| {
            eprintln!("fedtvd: left out: {error}");
        })
        .map_err(|error| match error {
            CollectionError::Record(_) => Failure::work(error),
            _ => Failure::request(error),
        })?;
        if !self.strategies.is_empty() {
            collection.keep(&self.strategies).map_err(Failure::request)?;
        }
        if let Some(baseline) = &self.baseline {
            collection.check(baseline).map_err(Failure::request)?;
        }
        let report = Findings::new(collection, &request);
        let out = self.out.clone().unwrap_or_else(|| self.directories[0].join("report"));
        let files = report.files();
        folder(&out)?;
        write(&out, &files).map_err(Failure::Work)?;
        self.output.answer(&Document::new(&report, &files), || terminal(&report))?;
        let page = out.join("report.html");
        if !self.output.quiet && !self.output.json {
            eprintln!("Page:  {}", page.display());
        }
        if self.open { open(&page) } else { Ok(()) }
    }

    fn request(&self) -> anyhow::Result<Request> {
        if let Some(target) = self.target {
            ensure!(
                (0.0..=1.0).contains(&target),
                "--target {target} is no accuracy; it must be 0 to 1, such as 0.8"
            );
        }
        let deviation = match self.deviation {
            DeviationOver::Seeds => Deviation::Seeds,
            DeviationOver::Rounds => Deviation::Rounds,
        };
        let question = Question {
            baseline: self.baseline.clone().unwrap_or_else(|| DEFAULT_BASELINE.to_owned()),
            target: self.target,
            deviation,
        };
        Ok(Request {
            question,
            order: self.strategies.clone(),
            without_timing: self.no_timing,
            title: self.title.clone(),
        })
    }
}

/// Writes a report's files into a folder.
pub(crate) fn write(folder: &Path, files: &[(String, String)]) -> anyhow::Result<()> {
    for (name, text) in files {
        let path = folder.join(name);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent).with_context(|| format!("making {}", parent.display()))?;
        std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

/// Opens a page with what the system opens pages with.
pub(crate) fn open(page: &Path) -> Result<(), Failure> {
    let opener = if cfg!(target_os = "macos") {
        "open"
    } else if cfg!(windows) {
        "explorer"
    } else {
        "xdg-open"
    };
    let started = std::process::Command::new(opener).arg(page).spawn();
    started.with_context(|| format!("opening {} with {opener}", page.display())).map_err(Failure::Work)?;
    Ok(())
}
