//! Watches a run, round by round: while it runs, or after the fact from its lines.

use super::back_at_chance::BackAtChance;
use super::failed_updates::{FailedUpdates, Failures};
use super::far_from_guessing::FarFromGuessing;
use super::loss_jump::LossJump;
use super::norm_jump::NormJump;
use super::outlier::farthest;
use fedtvd_core::round::RoundRecord;

/// What the rounds of a run have shown so far. It depends on their records only, and not on what JSON cannot hold, so
/// that a resumed run raises the alarms of one that was never interrupted.
#[derive(Clone, Debug, Default)]
pub struct Detector {
    failures: Failures,
    loss: LossJump,
    chance: BackAtChance,
    guessing: FarFromGuessing,
    norms: NormJump,
    alarms: u32,
}

impl Detector {
    /// After these rounds.
    pub fn of(lines: &[RoundRecord]) -> Self {
        let mut detector = Self::default();
        lines.iter().for_each(|line| drop(detector.observe(line)));
        detector
    }

    /// Takes in the next round and returns its alarm, if it raises one: every sign of trouble, and the client whose
    /// update was farthest from the others'.
    pub fn observe(&mut self, record: &RoundRecord) -> Option<String> {
        let signs = [
            self.failures.observe(record),
            self.loss.observe(record),
            self.chance.observe(record),
            self.guessing.observe(record),
            self.norms.observe(record),
        ];
        let signs: Vec<String> = signs.into_iter().flatten().collect();
        if signs.is_empty() {
            return None;
        }
        self.alarms += 1;
        let mut alarm = signs.join("; ");
        // A sign about one client names it already.
        if let Some((client, far)) = farthest(record)
            && !alarm.contains(&format!("the update of client {client} "))
        {
            alarm += &format!("; farthest from the others: {far}");
        }
        Some(alarm)
    }

    /// Why the result after these rounds cannot be used; `None` if it can.
    pub fn verdict(&self) -> Option<String> {
        let verdicts =
            [self.failures.verdict(), self.loss.verdict(), self.chance.verdict(), self.guessing.verdict()];
        verdicts.into_iter().flatten().next()
    }

    /// The failed updates of all rounds.
    pub fn failed_updates(&self) -> FailedUpdates {
        self.failures.all()
    }

    /// Number of rounds with an alarm.
    pub fn alarms(&self) -> u32 {
        self.alarms
    }
}
