//! `fedtvd completions SHELL`: shell completions.

use crate::request::{Failure, print};
use clap::{Args, Command};
use clap_complete::{Shell, generate};

/// Print completions for a shell.
#[derive(Args)]
pub(crate) struct Completions {
    /// Which shell
    shell: Shell,
}

impl Completions {
    /// Answers.
    pub(crate) fn answer(&self, mut command: Command) -> Result<(), Failure> {
        let mut script = Vec::new();
        generate(self.shell, &mut command, "fedtvd", &mut script);
        print(&script)
    }
}
