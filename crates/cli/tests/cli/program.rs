//! The program as a user meets it: arguments in, exit code and both outputs out.

use std::process::Command;

/// What came of a call.
pub(crate) struct Answer {
    /// The exit code.
    pub(crate) code: i32,
    /// What stands on stdout.
    pub(crate) out: String,
    /// What stands on stderr.
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
