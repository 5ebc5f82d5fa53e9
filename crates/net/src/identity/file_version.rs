//! What was read from files that may change at any time: the last usable version stays in force, and files that cannot be
//! used are tried again every second, since a change of their owner or mode does not show in their stamps.

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// How long files that could not be used are left alone if they seem unchanged.
const RETRY: Duration = Duration::from_secs(1);

/// The date of the last change, the size and the number of a file, by which a changed one is recognised; `None` if there is none.
pub(crate) type Stamp = Option<(Option<SystemTime>, u64, u64)>;

/// The current version of a file.
pub(crate) fn stamp(path: &Path) -> Stamp {
    let data = std::fs::metadata(path).ok()?;
    #[cfg(unix)]
    let number = std::os::unix::fs::MetadataExt::ino(&data);
    #[cfg(not(unix))]
    let number = 0;
    Some((data.modified().ok(), data.len(), number))
}

/// A value, the version of the files that it was read from, and what is wrong with a newer version.
#[derive(Debug)]
pub(crate) struct FileVersion<S, T> {
    stamp: S,
    value: Arc<T>,
    unusable: Option<Unusable<S>>,
}

/// A version of files that cannot be used.
#[derive(Debug)]
struct Unusable<S> {
    stamp: S,
    tried: Instant,
    why: String,
}

/// What a reader of the log should know.
#[derive(Debug, PartialEq)]
pub(crate) enum Change {
    /// The files changed and cannot be used, for this reason.
    Unusable(String),
    /// They can be used again.
    Usable,
}

impl<S: PartialEq, T> FileVersion<S, T> {
    pub(crate) fn new(stamp: S, value: Arc<T>) -> Self {
        Self { stamp, value, unusable: None }
    }

    /// The last usable version.
    pub(crate) fn value(&self) -> Arc<T> {
        Arc::clone(&self.value)
    }

    /// Why the files cannot be used, if they cannot.
    pub(crate) fn unusable(&self) -> Option<&str> {
        self.unusable.as_ref().map(|unusable| unusable.why.as_str())
    }

    /// Reads the files if they have another version than the last usable one; each problem is returned once.
    pub(crate) fn refresh<E: Display>(
        &mut self,
        stamp: S,
        now: Instant,
        read: impl FnOnce(&T) -> Result<Arc<T>, E>,
    ) -> Option<Change> {
        let waiting = |unusable: &Unusable<S>| {
            unusable.stamp == stamp && now.saturating_duration_since(unusable.tried) < RETRY
        };
        if self.stamp == stamp {
            return self.unusable.take().map(|_| Change::Usable);
        }
        if self.unusable.as_ref().is_some_and(waiting) {
            return None;
        }
        self.reload(stamp, now, read)
    }

    /// Reads the files in any case.
    pub(crate) fn reload<E: Display>(
        &mut self,
        stamp: S,
        now: Instant,
        read: impl FnOnce(&T) -> Result<Arc<T>, E>,
    ) -> Option<Change> {
        match read(&self.value) {
            Ok(value) => {
                (self.stamp, self.value) = (stamp, value);
                self.unusable.take().map(|_| Change::Usable)
            }
            Err(error) => {
                let why = error.to_string();
                let before = self.unusable.replace(Unusable { stamp, tried: now, why: why.clone() });
                let known = before.is_some_and(|before| before.why == why);
                (!known).then_some(Change::Unusable(why))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_cannot_be_used_are_tried_again_every_second_even_if_they_seem_unchanged() {
        let start = Instant::now();
        let mut version = FileVersion::new(1, Arc::new("old"));
        let denied = |_: &&str| Err("permission denied");
        let read = |_: &&str| Ok::<_, &str>(Arc::new("new"));
        assert_eq!(version.refresh(1, start, denied), None);
        assert_eq!(version.refresh(2, start, denied), Some(Change::Unusable("permission denied".to_owned())));
        assert_eq!((*version.value(), version.unusable()), ("old", Some("permission denied")));
        // Not at every request, and without another line in the log.
        assert_eq!(version.refresh(2, start + RETRY / 2, read), None);
        assert_eq!((*version.value(), version.refresh(2, start + RETRY, denied)), ("old", None));
        assert_eq!(version.refresh(2, start + 2 * RETRY, read), Some(Change::Usable));
        assert_eq!((*version.value(), version.unusable()), ("new", None));
    }

    #[test]
    fn another_version_is_tried_at_once_and_the_last_usable_one_needs_no_reading() {
        let start = Instant::now();
        let mut version = FileVersion::new(1, Arc::new("old"));
        assert!(version.refresh(2, start, |_| Err("broken")).is_some());
        assert_eq!(version.refresh(3, start, |_| Ok::<_, &str>(Arc::new("new"))), Some(Change::Usable));
        assert!(version.refresh(4, start, |_| Err("broken")).is_some());
        assert_eq!(version.refresh(3, start, |_| Err("not read")), Some(Change::Usable));
        assert_eq!(*version.value(), "new");
    }
}
