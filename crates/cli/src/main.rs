//! The `fedtvd` command; see the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(fedtvd_cli::main(std::env::args_os()))
}
