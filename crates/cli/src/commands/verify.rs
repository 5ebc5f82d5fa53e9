//! `fedtvd verify DIR`: recomputes rounds of a run and checks that they are bit-identical.

use crate::commands::run::failure;
use crate::ignored;
use crate::request::{Failure, Output, Resources, eprint_line, plural};
use anyhow::{anyhow, ensure};
use clap::Args;
use fedtvd_data::set::{LoadError, Places};
use fedtvd_run::RunError;
use fedtvd_run::setup::SetupError;
use fedtvd_run::verify::{Verdict, VerifyError, verify};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Recompute rounds of a run and check that they are bit-identical.
#[derive(Args)]
pub(crate) struct Verify {
    /// The run directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Rounds to check, such as 3,7-9 [default: all]
    #[arg(long, value_name = "ROUNDS")]
    rounds: Option<String>,
    /// Folder with data sets [default: $FEDTVD_DATA]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    #[command(flatten)]
    resources: Resources,
    #[command(flatten)]
    output: Output,
}

impl Verify {
    pub(crate) fn answer(&self) -> Result<(), Failure> {
        let rounds = self.rounds.as_deref().map(parse).transpose().map_err(Failure::Request)?;
        let places = Places::new(self.data.clone());
        let quiet = self.output.quiet;
        let note = ignored::data_folder_of(self.data.as_deref(), &self.directory).filter(|_| !quiet);
        note.iter().for_each(|note| eprint_line(format_args!("note: {note}")));
        let mut show = |round: u32| {
            if !quiet {
                eprint_line(format_args!("round {round} recomputed"));
            }
        };
        let resources = self.resources.checked_for(&self.directory)?;
        let verdict = verify(&self.directory, &places, resources, rounds.as_ref(), &mut show);
        let verdict = verdict.map_err(|error| match error {
            VerifyError::Run(RunError::Setup(SetupError::Load(LoadError::Unknown { set }))) => {
                Failure::Request(anyhow!(
                    "{} cannot be recomputed here: its data (data.set = {set:?}) is not on this machine; verify needs the \
                     data of all clients in one data set, split as the configuration says",
                    self.directory.display()
                ))
            }
            VerifyError::Run(error) => failure(error),
            error @ VerifyError::Model { .. } => Failure::work(error),
            other => Failure::request(other),
        })?;
        self.output.answer(&verdict, || text(&verdict))?;
        match (&verdict.parting, verdict.same_bits) {
            (Some(parting), Some(false)) => {
                Err(Failure::Work(anyhow!("round {} differs, first in {}", parting.round, parting.tensor)))
            }
            _ => Ok(()),
        }
    }
}

/// The maximum number of rounds of a run.
const MOST_ROUNDS: u32 = 1_000_000;

/// `3,7-9` means rounds 3, 7, 8 and 9.
fn parse(text: &str) -> anyhow::Result<BTreeSet<u32>> {
    let mut rounds = BTreeSet::new();
    for part in text.split(',').map(str::trim) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |number: &str| {
            let wrong = || anyhow!("--rounds {text}: {number:?} is not a round; write rounds such as 3,7-9");
            number
                .trim()
                .parse::<u32>()
                .ok()
                .filter(|round| (1..=MOST_ROUNDS).contains(round))
                .ok_or_else(wrong)
        };
        let (first, last) = (number(first)?, number(last)?);
        ensure!(
            first <= last,
            "--rounds {part}: the first round is after the last; write the smaller one first"
        );
        rounds.extend(first..=last);
    }
    Ok(rounds)
}

fn text(verdict: &Verdict) -> String {
    let count = plural(verdict.rounds.len(), "round");
    let mut text = match (verdict.same_bits, &verdict.parting) {
        (Some(true), _) => format!("{count} recomputed: bit-identical\n"),
        (Some(false), Some(parting)) => {
            format!("{count} recomputed: round {} differs, first in {}\n", parting.round, parting.tensor)
        }
        _ => {
            let difference = verdict.difference.as_deref().unwrap_or("another machine");
            format!(
                "{count} recomputed with other arithmetic ({difference}): results may differ in the last bits\n"
            )
        }
    };
    let _ = writeln!(
        text,
        "largest difference in accuracy: {:.2} percentage points",
        100.0 * verdict.accuracy_difference
    );
    for (round, gap) in verdict.model_differences.iter().filter(|(_, gap)| *gap > 0.0) {
        let _ = writeln!(text, "relative difference of the checkpoint after round {round}: {gap:.1e}");
    }
    text
}
