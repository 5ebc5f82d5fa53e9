//! `fedtvd completions SHELL`: a shell completion script.

use crate::request::{Failure, print};
use clap::{Args, Command};
use clap_complete::{Shell, generate};

/// Print a completion script for a shell.
#[derive(Args)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn answer(&self, mut command: Command) -> Result<(), Failure> {
        let mut script = Vec::new();
        generate(self.shell, &mut command, "fedtvd", &mut script);
        print(&script)
    }
}
