//! How long a round waits for answers.
//!
//! ```text
//! round 1, or nothing measured yet    no limit
//! later rounds                        max(10 min, 3 · the slowest site's time in the last ten rounds)
//! ```
//!
//! A site's time runs from the moment at which its job was first sent until its update was accepted. In later rounds it counts
//! as at most twice the slowest time of the first measured round. So no limit exceeds six times that first time, however often
//! a site answers just before the limit; the model and the data of a run stay the same, and so do the times of honest sites.
//!
//! If clients evaluate the model after a round, they have as long again as the next round would have.

use fedtvd_run::directory::FileError;
use fedtvd_run::directory::files::{read_text, write};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

/// The least time limit that follows from measurements.
const LEAST: Duration = Duration::from_secs(600);
/// The time limit as a multiple of the slowest site's time.
const FACTOR: u32 = 3;
/// The slowest site's time of a round counts as at most this multiple of the first one that was measured.
const GROWTH: u32 = 2;
/// Number of rounds whose slowest site is remembered.
const ROUNDS: usize = 10;

/// The operator's choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deadline {
    /// From the times that sites needed in earlier rounds.
    #[default]
    Measured,
    /// Always this long.
    After(Duration),
    /// No limit.
    Never,
}

impl Deadline {
    /// How long a round (counted from 0) waits for answers; `slowest` are the times of the slowest sites of earlier
    /// rounds. `None` for no limit.
    pub fn of_round(self, round: u32, slowest: impl IntoIterator<Item = Duration>) -> Option<Duration> {
        match self {
            Self::After(limit) => Some(limit),
            Self::Never => None,
            Self::Measured if round == 0 => None,
            Self::Measured => {
                slowest.into_iter().max().map(|slowest| LEAST.max(slowest.saturating_mul(FACTOR)))
            }
        }
    }

    /// How long clients may take to evaluate the model after a round: as long as the next round waits for updates, and ten
    /// minutes if nothing was measured. `None` for no limit.
    pub(crate) fn of_evaluation(
        self,
        round: u32,
        slowest: impl IntoIterator<Item = Duration>,
    ) -> Option<Duration> {
        let limit = self.of_round(round.saturating_add(1), slowest);
        if self == Self::Measured { limit.or(Some(LEAST)) } else { limit }
    }
}

impl FromStr for Deadline {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self::Never);
        }
        let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        seconds
            .map(Self::After)
            .ok_or_else(|| "write a number of seconds, or none to wait for all clients".to_owned())
    }
}

/// The slowest site's time in each of the last rounds, kept in a file.
#[derive(Debug)]
pub(crate) struct Timings {
    path: PathBuf,
    /// The time of the first round that was measured.
    first: Option<Duration>,
    slowest: VecDeque<Duration>,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    #[serde(default)]
    first_seconds: Option<f64>,
    slowest_seconds: Vec<f64>,
}

impl Timings {
    /// What was measured before a restart. Without a file, or with one that cannot be read, rounds have no limit until one
    /// was measured.
    pub(crate) fn open(folder: &Path) -> Self {
        let path = folder.join("timings.json");
        let stored = read_text(&path).ok().and_then(|text| serde_json::from_str::<Stored>(&text).ok());
        let (first, seconds) =
            stored.map_or((None, Vec::new()), |stored| (stored.first_seconds, stored.slowest_seconds));
        let duration = |seconds| Duration::try_from_secs_f64(seconds).ok();
        let slowest: VecDeque<_> = seconds.into_iter().filter_map(duration).collect();
        // A file of an earlier version has no first time; none that it remembers is certain to be honest but the smallest.
        let first = first.and_then(duration).or_else(|| slowest.iter().min().copied());
        Self { path, first, slowest }
    }

    /// The remembered times, oldest first.
    pub(crate) fn slowest(&self) -> impl Iterator<Item = Duration> {
        self.slowest.iter().copied()
    }

    /// Remembers a round's slowest site, with a time that is not much longer than the first one.
    pub(crate) fn add(&mut self, slowest: Duration) -> Result<(), FileError> {
        let first = *self.first.get_or_insert(slowest);
        self.slowest.push_back(slowest.min(first.saturating_mul(GROWTH)));
        while self.slowest.len() > ROUNDS {
            self.slowest.pop_front();
        }
        let stored = Stored {
            first_seconds: Some(first.as_secs_f64()),
            slowest_seconds: self.slowest().map(|time| time.as_secs_f64()).collect(),
        };
        write(&self.path, serde_json::to_string(&stored).expect("times are plain data").as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn without_a_choice_the_limit_is_three_times_the_slowest_site_and_at_least_ten_minutes() {
        let limit = |round, slowest: &[u64]| {
            Deadline::default().of_round(round, slowest.iter().map(|time| seconds(*time)))
        };
        assert_eq!(limit(0, &[]), None);
        assert_eq!(limit(0, &[7]), None);
        assert_eq!(limit(1, &[]), None);
        assert_eq!(limit(1, &[7]), Some(seconds(600)));
        assert_eq!(limit(2, &[7, 200]), Some(seconds(600)));
        assert_eq!(limit(3, &[7, 201, 30]), Some(seconds(603)));
        assert_eq!(limit(4, &[u64::MAX]), Some(Duration::MAX));
    }

    #[test]
    fn a_chosen_limit_holds_in_every_round_and_none_means_no_limit() {
        assert_eq!("1.5".parse::<Deadline>().unwrap().of_round(0, []), Some(Duration::from_millis(1500)));
        assert_eq!("none".parse::<Deadline>().unwrap().of_round(9, [seconds(7)]), None);
        for wrong in ["-1", "NaN", "inf", "soon", ""] {
            assert!(wrong.parse::<Deadline>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn clients_may_evaluate_for_as_long_as_the_next_round_may_take() {
        let limit = |deadline: Deadline, slowest: &[u64]| {
            deadline.of_evaluation(0, slowest.iter().map(|time| seconds(*time)))
        };
        assert_eq!(limit(Deadline::Never, &[7]), None);
        assert_eq!(limit(Deadline::After(seconds(5)), &[7]), Some(seconds(5)));
        assert_eq!(limit(Deadline::Measured, &[]), Some(seconds(600)));
        assert_eq!(limit(Deadline::Measured, &[7]), Some(seconds(600)));
        assert_eq!(limit(Deadline::Measured, &[900]), Some(seconds(2_700)));
    }

    #[test]
    fn the_times_of_the_last_ten_rounds_survive_a_restart_and_a_damaged_file_is_no_measurement() {
        let folder = tempfile::tempdir().unwrap();
        let mut timings = Timings::open(folder.path());
        assert_eq!(timings.slowest().count(), 0);
        (1..=12).for_each(|round| timings.add(seconds(100 - round)).unwrap());
        let again: Vec<Duration> = Timings::open(folder.path()).slowest().collect();
        assert_eq!(again, (3..=12).map(|round| seconds(100 - round)).collect::<Vec<_>>());
        std::fs::write(folder.path().join("timings.json"), "{\"slowest_sec").unwrap();
        assert_eq!(Timings::open(folder.path()).slowest().count(), 0);
    }

    #[test]
    fn a_site_that_always_answers_just_before_the_limit_stretches_it_to_six_times_the_first_time_at_most() {
        let folder = tempfile::tempdir().unwrap();
        // Honest sites take 20 minutes; the server restarts before every round.
        Timings::open(folder.path()).add(seconds(1200)).unwrap();
        let mut limits = Vec::new();
        for round in 1..=20 {
            let mut timings = Timings::open(folder.path());
            let limit = Deadline::default().of_round(round, timings.slowest()).unwrap();
            timings.add(limit - seconds(1)).unwrap();
            limits.push(limit.as_secs());
        }
        assert_eq!((limits[0], limits[1], limits[19]), (3600, 7200, 7200));
    }

    #[test]
    fn a_file_without_a_first_time_gives_the_smallest_that_it_has() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("timings.json"), "{\"slowest_seconds\":[3000,900,9000]}").unwrap();
        let mut timings = Timings::open(folder.path());
        timings.add(seconds(5000)).unwrap();
        assert_eq!(timings.slowest().last(), Some(seconds(1800)));
    }
}
