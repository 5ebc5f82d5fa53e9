//! A client never goes back from a server to one that was started earlier: it may be serving a copy of the run directory.

use crate::client::ConnectionError;
use crate::federation::lease::known;
use crate::wire;
use fedtvd_run::directory::files::{make_folder, write};
use fedtvd_run::directory::{FileError, sha256};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The file with the largest lease that this client has seen in a run.
fn file(folder: &Path, welcome: &wire::Welcome) -> PathBuf {
    // The name that the server gave to the run must not lead to another folder.
    folder.join(&sha256(welcome.run.as_bytes())[..16]).join(format!("lease-{}", welcome.client))
}

/// The largest lease that this client has seen in this run.
pub(crate) fn largest(folder: &Path, welcome: &wire::Welcome) -> Option<u64> {
    known(&file(folder, welcome))
}

/// Remembers the lease of a server that is worked for.
pub(crate) fn remember(folder: &Path, welcome: &wire::Welcome, lease: u64) -> Result<(), FileError> {
    let path = file(folder, welcome);
    let folders: Vec<&Path> = path.ancestors().skip(1).take(2).collect();
    folders.into_iter().rev().try_for_each(make_folder)?;
    write(&path, lease.to_string().as_bytes())
}

/// How far the clocks of server and client may differ.
const A_DAY: Duration = Duration::from_secs(24 * 3600);

/// Whether a lease, the time of the server's start in milliseconds since 1970, lies more than a day ahead: it would lock the
/// client out of every later server.
pub(crate) fn from_the_future(lease: u64) -> bool {
    let latest = (SystemTime::now() + A_DAY).duration_since(SystemTime::UNIX_EPOCH);
    latest.is_ok_and(|latest| u128::from(lease) > latest.as_millis())
}

/// The refusal of a server that claims to have been started in the future.
pub(crate) fn wrong_clock(lease: u64) -> ConnectionError {
    let why = format!(
        "the server claims to have been started more than a day from now ({lease} ms after 1970); the clock of the server or of \
         this machine is wrong"
    );
    ConnectionError::Refused { code: "outdated-server".to_owned(), why, passing: true }
}

/// The refusal of a server that was started before another one of the same run.
pub(crate) fn outdated(folder: &Path, welcome: &wire::Welcome) -> ConnectionError {
    let why = format!(
        "this server was started before another one of run {}, which this client has worked for; it may be a copy. Stop one \
         of them and restart the other; if it should be trusted all the same, remove {}",
        welcome.run,
        file(folder, welcome).display()
    );
    ConnectionError::Refused { code: "outdated-server".to_owned(), why, passing: true }
}
