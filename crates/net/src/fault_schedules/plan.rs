//! What a schedule is made of: the federation's settings and how often each kind of fault occurs, drawn from its seed.

use crate::federation::{Deadline, Options};
use fedtvd_core::round::ClientId;
use fedtvd_core::stream::{Key, Purpose, Stream};
use fedtvd_run::configuration::Config;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// The most clients of a schedule.
pub(super) const MOST_CLIENTS: u32 = 5;
/// The most rounds of a schedule.
pub(super) const MOST_ROUNDS: u32 = 5;
/// Number of classes.
pub(super) const CLASSES: usize = 4;
/// Number of columns: the model has a weight for every client in every round.
const COLUMNS: usize = 7;

/// A schedule.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) clients: u32,
    pub(super) rounds: u32,
    /// Whether the clients are named before the first round.
    pub(super) roster: bool,
    /// Whether the reference comes from the clients' label counts.
    pub(super) aggregated: bool,
    /// Whether certificates are revoked and renewed.
    pub(super) certificates: bool,
    pub(super) half_of_the_clients: bool,
    pub(super) quorum: u32,
    pub(super) deadline: Deadline,
    /// Number of operations until faults stop.
    pub(super) troubled: u32,
    /// One change of the disk in this many has a fault; 0 for none.
    pub(super) disk: u64,
    /// One operation in this many is a fault of the network, of a client or of the server.
    pub(super) trouble: u64,
    /// Whether clients that train a job again get other bytes.
    pub(super) varying: bool,
    /// Whether clients continue uploads that broke off.
    pub(super) continues: bool,
}

/// A stream of random numbers for a part of a schedule.
pub(super) fn stream(seed: u64, part: u32) -> Stream {
    Key::of(seed).at(Purpose::Absence, 0, part).stream(0)
}

impl Plan {
    /// The schedule of a seed.
    pub(super) fn of(seed: u64) -> Self {
        let mut chance = stream(seed, 0);
        let mut below = |bound| chance.below(bound);
        let roster = below(3) > 0;
        let clients = 3 + below(u64::from(MOST_CLIENTS) - 2) as u32;
        let half_of_the_clients = below(4) == 0;
        Self {
            seed,
            clients,
            rounds: 3 + below(u64::from(MOST_ROUNDS) - 2) as u32,
            roster,
            aggregated: roster && below(4) == 0,
            certificates: below(3) == 0,
            half_of_the_clients,
            quorum: if half_of_the_clients { 1 } else { 1 + below(2) as u32 },
            deadline: match below(3) {
                0 => Deadline::Never,
                1 => Deadline::Measured,
                _ => Deadline::After(Duration::from_secs(20 + below(60))),
            },
            troubled: 40 + below(260) as u32,
            disk: [0, 15, 40, 120][below(4) as usize],
            trouble: [3, 6, 20][below(3) as usize],
            varying: below(2) == 0,
            continues: below(4) > 0,
        }
    }

    /// The configuration of its federation; writes the schema of its tables into this folder.
    pub(super) fn config(&self, folder: &Path) -> Config {
        let schema = folder.join("schema.toml");
        let columns = (0..COLUMNS).map(|column| {
            format!("[[column]]\nname = \"c{column}\"\nkind = \"number\"\ncentre = 0.0\nscale = 1.0\n")
        });
        let label = "[label]\ncolumn = \"y\"\nclasses = [\"a\", \"b\", \"c\", \"d\"]\n".to_owned();
        std::fs::write(&schema, label + &columns.collect::<String>()).unwrap();
        let mut config = Config::default();
        let fraction = if self.half_of_the_clients { 0.5 } else { 1.0 };
        let reference = if self.aggregated { "aggregated" } else { "uniform" };
        for setting in [
            "strategy.mode=paper".to_owned(),
            "strategy.name=fedtvd".to_owned(),
            "model.name=logistic".to_owned(),
            "data.set=/no/table.csv".to_owned(),
            format!("data.schema={}", schema.display()),
            format!("labels.reference={reference}"),
            format!("cohort.fraction={fraction}"),
            format!("cohort.quorum={}", self.quorum),
            format!("rounds={}", self.rounds),
            format!("seed={}", self.model_seed()),
        ] {
            config.set(&setting).unwrap();
        }
        config
    }

    /// The seed of its federation.
    pub(super) fn model_seed(&self) -> u64 {
        self.seed % 1000
    }

    /// The operator's options.
    pub(super) fn options(&self) -> Options {
        let roster: Option<BTreeSet<ClientId>> = self.roster.then(|| (0..self.clients).collect());
        Options { roster, least: Some(2), deadline: self.deadline, workers: 1, ..Options::default() }
    }
}
