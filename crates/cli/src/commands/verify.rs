//! `fedtvd verify DIR`: recomputes rounds of a run and compares the bits.

use crate::commands::run::failure;
use crate::request::{Failure, Output, Resources, tell};
use anyhow::{anyhow, ensure};
use clap::Args;
use fedtvd_data::set::Places;
use fedtvd_run::verify::{Verdict, VerifyError, verify};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Recompute rounds and compare the bits.
#[derive(Args)]
pub(crate) struct Verify {
    /// The run directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Rounds to compare, such as 3,7-9; all unless given
    #[arg(long, value_name = "ROUNDS")]
    rounds: Option<String>,
    /// Folder with data sets; FEDTVD_DATA unless given
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    #[command(flatten)]
    resources: Resources,
    #[command(flatten)]
    output: Output,
}

impl Verify {
    /// Answers.
    pub(crate) fn answer(&self) -> Result<(), Failure> {
        let rounds = self.rounds.as_deref().map(parse).transpose().map_err(Failure::Request)?;
        let places = Places::new(self.data.clone());
        let quiet = self.output.quiet;
        let mut show = |round: u32| {
            if !quiet {
                tell(format_args!("round {round} recomputed"));
            }
        };
        let verdict = verify(&self.directory, &places, self.resources.checked()?, rounds.as_ref(), &mut show);
        let verdict = verdict.map_err(|error| match error {
            VerifyError::Run(error) => failure(error),
            error @ VerifyError::Model { .. } => Failure::work(error),
            other => Failure::request(other),
        })?;
        self.output.answer(&verdict, || text(&verdict))?;
        match (&verdict.parting, verdict.same_bits) {
            (Some(parting), Some(false)) => Err(Failure::Work(anyhow!(
                "the bits part in round {}, first in {}",
                parting.round,
                parting.tensor
            ))),
            _ => Ok(()),
        }
    }
}

/// No run has more rounds.
const MOST_ROUNDS: u32 = 1_000_000;

/// `3,7-9` is rounds 3, 7, 8 and 9.
fn parse(text: &str) -> anyhow::Result<BTreeSet<u32>> {
    let mut rounds = BTreeSet::new();
    for part in text.split(',').map(str::trim) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |number: &str| {
            let wrong = || anyhow!("--rounds {text}: {number:?} is no round; write rounds such as 3,7-9");
            number
                .trim()
                .parse::<u32>()
                .ok()
                .filter(|round| (1..=MOST_ROUNDS).contains(round))
                .ok_or_else(wrong)
        };
        let (first, last) = (number(first)?, number(last)?);
        ensure!(first <= last, "--rounds {part} goes backwards; write the smaller round first");
        rounds.extend(first..=last);
    }
    Ok(rounds)
}

fn text(verdict: &Verdict) -> String {
    let count = verdict.rounds.len();
    let mut text = match (verdict.same_bits, &verdict.parting) {
        (Some(true), _) => format!("{count} rounds recomputed: every bit is the same\n"),
        (Some(false), Some(parting)) => {
            format!(
                "{count} rounds recomputed: the bits part in round {}, first in {}\n",
                parting.round, parting.tensor
            )
        }
        _ => format!("{count} rounds recomputed on another kind of machine, so bits are not judged\n"),
    };
    let _ =
        writeln!(text, "largest difference of accuracy: {:.2} points", 100.0 * verdict.accuracy_difference);
    for (round, gap) in &verdict.model_differences {
        let _ = writeln!(text, "relative difference of the checkpoint after round {round}: {gap:.1e}");
    }
    text
}
