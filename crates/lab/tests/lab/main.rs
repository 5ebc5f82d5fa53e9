//! Reports on made-up runs, and statistics against SciPy; one binary, so that it is linked once.

mod comparisons;
mod files;
mod runs;
mod settings;
mod statistics;

use fedtvd_lab::report::findings::{Report, Request};
use fedtvd_lab::runs::collection::Collection;
use fedtvd_lab::runs::record::Record;
use fedtvd_lab::stats::summary::Question;

fn question() -> Question {
    Question { baseline: "fedavg".to_owned(), ..Question::default() }
}

fn report_with(records: Vec<Record>, question: Question) -> Report {
    let request = Request { question, without_timing: true, ..Request::default() };
    Report::new(Collection::of(records, Vec::new(), 0), &request)
}

fn report(records: Vec<Record>) -> Report {
    report_with(records, question())
}
