//! `fedtvd report DIR…`: tables, figures and an HTML page from finished runs.

use crate::request::{Failure, Output, eprint_line, folder};
use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use fedtvd_lab::report::findings::{Report as Findings, ReportOptions};
use fedtvd_lab::report::json::Document;
use fedtvd_lab::report::markdown::terminal;
use fedtvd_lab::runs::collection::{Collection, CollectionError, run_directories};
use fedtvd_lab::stats::summary::{Deviation, SummaryOptions};
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

/// Create tables, figures, statistics and an HTML page from finished runs.
#[derive(Args)]
pub(crate) struct Report {
    /// Run directories, or folders that contain them at any depth
    #[arg(value_name = "DIR", required = true)]
    directories: Vec<PathBuf>,
    /// Folder for the report [default: DIR/report in the first DIR]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Strategy that the others are compared with [default: fedavg, or the first one]
    #[arg(long, value_name = "LABEL")]
    baseline: Option<String>,
    /// Include only these strategies, in this order; separated by commas
    #[arg(long, value_delimiter = ',', value_name = "LABELS")]
    strategies: Vec<String>,
    /// Target accuracy, from 0 to 1, for the column of rounds [default: the baseline's final accuracy]
    #[arg(long, value_name = "ACCURACY")]
    target: Option<f64>,
    /// Which standard deviation to show after ±
    #[arg(long, value_enum, default_value_t)]
    deviation: DeviationOver,
    /// Leave out timing and machine
    #[arg(long)]
    no_timing: bool,
    /// Title of the report
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Open the HTML page in a browser
    #[arg(long)]
    open: bool,
    #[command(flatten)]
    output: Output,
}

/// The default baseline.
const DEFAULT_BASELINE: &str = "fedavg";

#[derive(Clone, Copy, Default, ValueEnum)]
enum DeviationOver {
    /// Over seeds, of the mean accuracy of the last rounds
    #[default]
    Seeds,
    /// Over seeds in each of the last rounds, averaged over these rounds
    Rounds,
}

impl Report {
    pub(crate) fn answer(&self) -> Result<(), Failure> {
        let options = self.options().map_err(Failure::Request)?;
        let directories = run_directories(&self.directories).map_err(Failure::request)?;
        let mut collection = Collection::read(&directories, &mut |error| {
            eprint_line(format_args!("fedtvd: run left out: {error}"));
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
        let report = Findings::new(collection, &options);
        let out = self.out.clone().unwrap_or_else(|| self.directories[0].join("report"));
        let files = report.files();
        folder(&out)?;
        write(&out, &files).map_err(Failure::Work)?;
        self.output
            .answer(&Document::new(&report, &files), || terminal(&report, std::io::stdout().is_terminal()))?;
        let page = out.join("report.html");
        if !self.output.quiet && !self.output.json {
            eprintln!("Page:  {}", page.display());
        }
        if self.open { open(&page) } else { Ok(()) }
    }

    fn options(&self) -> anyhow::Result<ReportOptions> {
        if let Some(target) = self.target {
            ensure!(
                (0.0..=1.0).contains(&target),
                "--target {target} is not an accuracy; it must be from 0 to 1, such as 0.8"
            );
        }
        let deviation = match self.deviation {
            DeviationOver::Seeds => Deviation::Seeds,
            DeviationOver::Rounds => Deviation::Rounds,
        };
        let summary = SummaryOptions {
            baseline: self.baseline.clone().unwrap_or_else(|| DEFAULT_BASELINE.to_owned()),
            target: self.target,
            deviation,
        };
        Ok(ReportOptions {
            summary,
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

/// Opens a page with the system's default program.
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
