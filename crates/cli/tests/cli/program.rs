//! Runs the program with arguments and returns exit code, stdout and stderr.

use std::process::Command;

/// The result of a call.
pub(crate) struct Answer {
    /// The exit code.
    pub(crate) code: i32,
    /// The text on stdout.
    pub(crate) out: String,
    /// The text on stderr.
    pub(crate) err: String,
}

/// Calls the program.
pub(crate) fn fedtvd(arguments: &[&str]) -> Answer {
    let output = Command::new(env!("CARGO_BIN_EXE_fedtvd"))
        .args(arguments)
        .env_remove("FEDTVD_DATA")
        .output()
        .expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("the program writes UTF-8");
    Answer { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
}
