//! Reports on synthetic runs, and statistics compared with SciPy, in one binary to link only once.

mod clients;
mod collapses;
mod comparisons;
mod error_rates;
mod files;
mod metrics;
mod runs;
mod settings;
mod statistics;
mod test_sets;
mod verdicts;

use fedtvd_lab::report::findings::{Report, ReportOptions};
use fedtvd_lab::runs::collection::Collection;
use fedtvd_lab::runs::record::Record;
use fedtvd_lab::stats::summary::SummaryOptions;

fn summary_options() -> SummaryOptions {
    SummaryOptions { baseline: "fedavg".to_owned(), ..SummaryOptions::default() }
}

fn report_with(records: Vec<Record>, summary: SummaryOptions) -> Report {
    let options = ReportOptions { summary, without_timing: true, ..ReportOptions::default() };
    Report::new(Collection::of(records, Vec::new(), 0), &options)
}

fn report(records: Vec<Record>) -> Report {
    report_with(records, summary_options())
}
