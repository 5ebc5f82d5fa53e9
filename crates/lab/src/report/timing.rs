//! How long runs took and on which machine: the part of a report that is not reproducible.

use crate::runs::collection::Collection;
use crate::runs::record::Record;
use crate::stats::statistics::mean;
use serde::Serialize;

/// Timing of all runs.
#[derive(Clone, Debug, Serialize)]
pub struct Timing {
    /// The machines' architectures, instruction sets and caches.
    pub machines: Vec<String>,
    /// A line per setting and strategy.
    pub lines: Vec<TimingLine>,
}

/// Timing of a strategy's runs, means over seeds.
#[derive(Clone, Debug, Serialize)]
pub struct TimingLine {
    /// The strategy's label.
    pub strategy: String,
    /// The setting's title.
    pub setting: String,
    /// Duration of all rounds in seconds.
    pub seconds: f64,
    /// Training samples per second.
    pub images_per_second: f64,
    /// Peak memory of the process; null if unknown.
    pub peak_memory_bytes: Option<f64>,
}

impl Timing {
    /// The timing of a collection's runs.
    pub fn of(collection: &Collection) -> Self {
        let mut lines = Vec::new();
        let mut machines: Vec<String> = Vec::new();
        for setting in &collection.settings {
            for strategy in &setting.strategies {
                let of = |part: &dyn Fn(&Record) -> Option<f64>| -> Vec<f64> {
                    strategy.records.iter().filter_map(part).collect()
                };
                let memory = of(&|run| run.summary.peak_memory_bytes.map(|bytes| bytes as f64));
                lines.push(TimingLine {
                    strategy: strategy.label.clone(),
                    setting: setting.title.clone(),
                    seconds: mean(&of(&|run| Some(run.summary.seconds))),
                    images_per_second: mean(&of(&|run| Some(run.summary.images_per_second))),
                    peak_memory_bytes: (!memory.is_empty()).then(|| mean(&memory)),
                });
                machines.extend(strategy.records.iter().map(machine));
            }
        }
        machines.sort();
        machines.dedup();
        Self { machines, lines }
    }

    /// Column headings.
    pub fn heads(&self) -> [&'static str; 5] {
        ["strategy", "setting", "seconds", "samples/s", "peak MB"]
    }

    /// One sentence on the machines.
    pub fn machines(&self) -> String {
        let many = if self.machines.len() == 1 { "Machine" } else { "Machines" };
        format!("{many}: {}.", self.machines.join("; "))
    }
}

fn machine(record: &Record) -> String {
    let own = &record.manifest.fingerprint;
    if let Some(device) = &own.device {
        return device.words();
    }
    let words = [&own.architecture, &own.instructions].into_iter().chain(&own.caches);
    words.map(String::as_str).collect::<Vec<_>>().join(" ")
}

impl TimingLine {
    /// The cells of its table row.
    pub fn cells(&self) -> [String; 5] {
        [
            self.strategy.clone(),
            if self.setting.is_empty() { "—".to_owned() } else { self.setting.clone() },
            format!("{:.1}", self.seconds),
            format!("{:.0}", self.images_per_second),
            self.peak_memory_bytes.map_or("—".to_owned(), |bytes| format!("{:.0}", bytes / 1e6)),
        ]
    }
}
