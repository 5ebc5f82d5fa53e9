//! A report as a JSON document.

use crate::report::clients::{ClientLine, noteworthy};
use crate::report::findings::{Report, SettingReport};
use crate::report::timing::Timing;
use crate::runs::record::Unfinished;
use crate::runs::setting::shown;
use crate::stats::row::Row;
use serde::Serialize;

/// What `report --json` prints.
#[derive(Serialize)]
pub struct Document<'a> {
    verdict: &'a str,
    settings: Vec<SettingView<'a>>,
    unfinished: &'a [Unfinished],
    notes: &'a [String],
    versions: &'a [String],
    files: Vec<String>,
    timing: Option<&'a Timing>,
}

#[derive(Serialize)]
struct SettingView<'a> {
    title: &'a str,
    heading: &'a str,
    config: Vec<String>,
    seeds: Vec<u64>,
    baseline: Option<&'a str>,
    verdict: &'a str,
    test_set: Option<&'a str>,
    strategies: &'a [Row],
    clients: Vec<ClientLine<'a>>,
    notes: &'a [String],
    commands: &'a [String],
}

impl<'a> Document<'a> {
    /// The document of a report with these files.
    pub fn new(report: &'a Report, files: &[(String, String)]) -> Self {
        Self {
            verdict: &report.verdict,
            settings: report.parts.iter().map(setting).collect(),
            unfinished: &report.unfinished,
            notes: &report.notes,
            versions: &report.versions,
            files: files.iter().map(|(name, _)| name.clone()).collect(),
            timing: report.timing.as_ref(),
        }
    }
}

fn setting(part: &SettingReport) -> SettingView<'_> {
    let baseline = part.rows.iter().find(|row| row.pairs.is_none());
    SettingView {
        title: &part.setting.title,
        heading: &part.heading,
        config: part.setting.values.iter().map(|(path, value)| format!("{path}={}", shown(value))).collect(),
        seeds: part.setting.seeds(),
        baseline: baseline.map(|row| row.line.strategy.as_str()),
        verdict: &part.verdict,
        test_set: part.test_set.as_deref(),
        strategies: &part.rows,
        clients: noteworthy(part),
        notes: &part.setting.notes,
        commands: &part.commands,
    }
}
