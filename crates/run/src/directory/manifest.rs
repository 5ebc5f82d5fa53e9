//! What a run was made with: versions, the machine's fingerprint, data and split.

use fedtvd_nn::Cpu;
use serde::{Deserialize, Serialize};

/// Version of the run directory's layout, incremented by every change that old readers would misread.
pub const FORMAT: u32 = 1;

/// Version of the program.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Written before the first round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the run directory's layout.
    pub format: u32,
    /// Version of the program.
    pub version: String,
    /// What the bits of a result depend on besides the seed.
    pub fingerprint: Fingerprint,
    /// The strategy's label.
    pub strategy: String,
    /// Checksum of the data set; empty if the server of a federation has no data.
    pub data_checksum: String,
    /// Hash of the split; empty in a federation, whose sites do not report it.
    pub split_hash: String,
    /// Hash of the schema that a table was read with; empty if the data is not a table.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub schema_hash: String,
    /// Hash of the file that the model started from; empty if it started at random.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub start_hash: String,
}

/// What the bits of a result depend on besides the seed: how the machine multiplies and in which order it sums.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// The architecture that the program was built for.
    pub architecture: String,
    /// The vector instructions that the kernels chose.
    pub instructions: String,
    /// Sizes of the caches, which determine the blocking of matrix products; empty if unknown.
    pub caches: Vec<String>,
}

impl Fingerprint {
    /// The fingerprint of this machine.
    pub fn here(cpu: &Cpu) -> Self {
        Self {
            architecture: std::env::consts::ARCH.to_owned(),
            instructions: cpu.instructions().to_owned(),
            caches: caches(),
        }
    }
}

/// Level, type and size of each cache of the first core, as reported by Linux.
fn caches() -> Vec<String> {
    let read = |place: u32, what: &str| {
        let path = format!("/sys/devices/system/cpu/cpu0/cache/index{place}/{what}");
        std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
    };
    (0..)
        .map_while(|place| Some((read(place, "level")?, read(place, "type")?, read(place, "size")?)))
        .filter(|(_, kind, _)| kind != "Instruction")
        .map(|(level, _, size)| format!("L{level} {size}"))
        .collect()
}
