//! What a run was made with: versions, the machine's fingerprint, data and split.

use fedtvd_core::rules::Strategy;
use fedtvd_nn::KERNELS;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Display;

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
    /// Hash of the source of each method of the strategy that the program does not contain, by the method's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rules: BTreeMap<String, String>,
    /// Hash of what the model was made from, if it is not made of layers; empty if it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model_source: String,
}

/// [`Manifest::rules`] of a strategy.
pub fn rules(strategy: &Strategy) -> BTreeMap<String, String> {
    strategy.outside.iter().map(|own| (own.name.to_owned(), own.source.to_owned())).collect()
}

/// What the bits of a result depend on besides the seed and the program's rules, since it decides the order of sums; and the sizes of
/// the machine's caches, which only its speed depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// The architecture that the program was built for.
    pub architecture: String,
    /// The vector instructions that the kernels chose.
    pub instructions: String,
    /// Version of the kernels, [`KERNELS`]; runs that do not say are of the first.
    #[serde(default = "first_kernels")]
    pub kernels: u32,
    /// Sizes of the caches; empty if unknown. No bit depends on them.
    pub caches: Vec<String>,
    /// The device that trained, if it was not this program's own kernels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceFingerprint>,
}

/// What the bits of a result depend on if another backend than this program's own kernels trained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceFingerprint {
    /// The name that `--device` gave, such as `cuda:0`.
    pub name: String,
    /// What the hardware is called.
    pub hardware: String,
    /// Versions of the software, such as those of torch, the driver and its libraries, and settings that bits depend on.
    pub versions: BTreeMap<String, String>,
    /// Whether the same work gives the same bits.
    pub repeatable: bool,
}

impl DeviceFingerprint {
    /// In words.
    pub fn words(&self) -> String {
        let versions: String =
            self.versions.iter().map(|(what, version)| format!(", {what} {version}")).collect();
        let repeats = if self.repeatable { "" } else { ", does not repeat bits" };
        format!("{} ({}{versions}{repeats})", self.name, self.hardware)
    }
}

fn first_kernels() -> u32 {
    1
}

impl Fingerprint {
    /// The fingerprint of this machine, whose kernels use these vector instructions.
    pub fn here(instructions: &str) -> Self {
        Self {
            architecture: std::env::consts::ARCH.to_owned(),
            instructions: instructions.to_owned(),
            kernels: KERNELS,
            caches: caches(),
            device: None,
        }
    }

    /// The fingerprint of another device than this program's own kernels, which have no part in the result.
    pub fn of_device(device: DeviceFingerprint) -> Self {
        Self { kernels: 0, device: Some(device), ..Self::here("none") }
    }

    /// The name of the device that trained.
    pub fn device(&self) -> &str {
        self.device.as_ref().map_or("cpu", |device| &device.name)
    }

    /// Why a result that was made with this may have other bits here; `None` if the same program must give the same bits.
    pub fn difference(&self, here: &Self) -> Option<String> {
        match (&self.device, &here.device) {
            (None, None) => {}
            (then, now) => {
                let words = |device: &Option<DeviceFingerprint>| {
                    device.as_ref().map_or("cpu".to_owned(), DeviceFingerprint::words)
                };
                let (then, now) = (words(then), words(now));
                if then != now {
                    return Some(format!("device {then}, here {now}"));
                }
                if here.device.as_ref().is_some_and(|device| !device.repeatable) {
                    return Some(format!("device {now}"));
                }
            }
        }
        let one = |what: &str, then: &dyn Display, now: &dyn Display| {
            let (then, now) = (then.to_string(), now.to_string());
            (then != now).then(|| format!("{what} {then}, here {now}"))
        };
        let all = [
            one("architecture", &self.architecture, &here.architecture),
            one("vector instructions", &self.instructions, &here.instructions),
            one("kernels of version", &self.kernels, &here.kernels),
        ];
        let all: Vec<String> = all.into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// Instructions and version of the kernels, in words: runs in which they differ agree to rounding only.
    pub fn arithmetic(&self) -> String {
        if let Some(device) = &self.device {
            return device.words();
        }
        format!("{} ({}, kernels {})", self.architecture, self.instructions, self.kernels)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_from_before_kernels_had_versions_differ_from_later_ones_by_their_kernels_alone() {
        let old = r#"{"architecture": "x86_64", "instructions": "avx2", "caches": ["L1 32K"]}"#;
        let old: Fingerprint = serde_json::from_str(old).unwrap();
        let new = Fingerprint { kernels: 2, ..old.clone() };
        assert_eq!(old.difference(&new).as_deref(), Some("kernels of version 1, here 2"));
    }

    #[test]
    fn machines_that_differ_in_their_caches_must_give_the_same_bits() {
        let one = Fingerprint {
            architecture: "x86_64".to_owned(),
            instructions: "avx2".to_owned(),
            kernels: 1,
            caches: vec!["L1 32K".to_owned()],
            device: None,
        };
        assert_eq!(one.difference(&Fingerprint { caches: vec![], ..one.clone() }), None);
        let wide = Fingerprint { instructions: "avx512".to_owned(), ..one.clone() };
        assert_eq!(one.difference(&wide).as_deref(), Some("vector instructions avx2, here avx512"));
    }

    #[test]
    fn devices_differ_by_name_hardware_and_versions_and_one_that_does_not_repeat_differs_from_itself() {
        let device = |name: &str, torch: &str, repeatable| {
            Fingerprint::of_device(DeviceFingerprint {
                name: name.to_owned(),
                hardware: "A100".to_owned(),
                versions: [("torch".to_owned(), torch.to_owned())].into(),
                repeatable,
            })
        };
        let one = device("cuda:0", "2.9", true);
        assert_eq!(one.difference(&one), None);
        assert_eq!(
            one.difference(&device("cuda:0", "2.8", true)).as_deref(),
            Some("device cuda:0 (A100, torch 2.9), here cuda:0 (A100, torch 2.8)")
        );
        let here = Fingerprint::here("avx2");
        assert_eq!(here.difference(&one).as_deref(), Some("device cpu, here cuda:0 (A100, torch 2.9)"));
        let loose = device("mps", "2.9", false);
        let words = "device mps (A100, torch 2.9, does not repeat bits)";
        assert_eq!(loose.difference(&loose).as_deref(), Some(words));
        assert_eq!((one.device(), here.device()), ("cuda:0", "cpu"));
    }

    #[test]
    fn the_fingerprint_of_this_programs_own_kernels_is_written_as_ever() {
        let text =
            serde_json::to_string(&Fingerprint { caches: vec![], ..Fingerprint::here("avx2") }).unwrap();
        let right = format!(
            r#"{{"architecture":"{}","instructions":"avx2","kernels":{KERNELS},"caches":[]}}"#,
            std::env::consts::ARCH
        );
        assert_eq!(text, right);
    }
}
