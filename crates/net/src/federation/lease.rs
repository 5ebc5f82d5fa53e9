//! Which server of a run is the newest: every start takes a lease, a number that grows.
//!
//! The lock of the ledger keeps a second server out of the same directory. It cannot know of a copy of the directory, on
//! this machine or another, from which a second server would give other models to the same clients. Therefore a server
//! tells its lease with Hello, clients remember the largest one that they have seen in a run, and never work for a server
//! with a smaller one. The lease is the time of the start, so that a server that was restored from a backup has a larger
//! lease than the one that it replaces.

use fedtvd_run::directory::FileError;
use fedtvd_run::directory::files::write;
use std::path::Path;
use std::time::SystemTime;

/// A new lease for a server in this folder: milliseconds since 1970, and more than the last one in this folder even if
/// the clock went back.
pub(crate) fn take(folder: &Path) -> Result<u64, FileError> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(u64::MAX));
    let path = folder.join("lease");
    let last = known(&path).unwrap_or(0);
    let lease = now.max(last.saturating_add(1));
    write(&path, lease.to_string().as_bytes())?;
    Ok(lease)
}

/// The lease in this file, if there is one.
pub(crate) fn known(path: &Path) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_start_has_a_larger_lease_even_if_the_clock_went_back() {
        let folder = tempfile::tempdir().unwrap();
        let first = take(folder.path()).unwrap();
        assert!(take(folder.path()).unwrap() > first);
        std::fs::write(folder.path().join("lease"), "9000000000000000").unwrap();
        assert_eq!(take(folder.path()).unwrap(), 9_000_000_000_000_001);
    }
}
