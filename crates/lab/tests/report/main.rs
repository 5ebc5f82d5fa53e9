//! What a report makes of runs.

mod comparisons;
mod files;
mod runs;
mod settings;

use fedtvd_lab::collection::Collection;
use fedtvd_lab::record::Record;
use fedtvd_lab::report::{Report, Request};
use fedtvd_lab::summary::Question;

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
