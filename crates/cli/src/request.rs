//! Options that several subcommands share, and the two kinds of failure.

use crate::host::{News, host, keep};
use anyhow::{Context, anyhow};
use clap::Args;
use fedtvd_data::set::{Places, read_schema};
pub(crate) use fedtvd_lab::report::commands::shell_quoted as quoted;
use fedtvd_run::backend::Device;
use fedtvd_run::configuration::{Config, Value};
use fedtvd_run::directory::{RunDirectory, sha256};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Why a subcommand failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Invalid request: exit code 2.
    Request(anyhow::Error),
    /// Failure during the work: exit code 1.
    Work(anyhow::Error),
}

impl Failure {
    /// An invalid request.
    pub(crate) fn request(error: impl Into<anyhow::Error>) -> Self {
        Self::Request(error.into())
    }

    /// A failure during the work.
    pub(crate) fn work(error: impl Into<anyhow::Error>) -> Self {
        Self::Work(error.into())
    }
}

/// Output format and verbosity.
#[derive(Args, Clone, Copy)]
pub(crate) struct Output {
    /// Print the result as one JSON document
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress output
    #[arg(long)]
    pub(crate) quiet: bool,
}

impl Output {
    /// Prints the result, as JSON or as text.
    pub(crate) fn answer(
        self,
        json: &impl serde::Serialize,
        text: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        let answer = if self.json {
            serde_json::to_string_pretty(json).map_err(Failure::work)? + "\n"
        } else {
            printable(&text())
        };
        print(answer.as_bytes())
    }
}

/// Writes a result to stdout.
pub(crate) fn print(answer: &[u8]) -> Result<(), Failure> {
    print_with(|out| out.write_all(answer))
}

/// Writes a result to stdout, piece by piece.
pub(crate) fn print_with(
    write: impl FnOnce(&mut dyn std::io::Write) -> std::io::Result<()>,
) -> Result<(), Failure> {
    if host().is_some() {
        let mut printed = Vec::new();
        write(&mut printed).context("writing the answer").map_err(Failure::Work)?;
        keep(&printed);
        return Ok(());
    }
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        // A reader such as `head` may close the pipe early.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("writing to stdout").map_err(Failure::Work),
    }
}

/// Writes a line to stderr in one call, because other threads write there too. Errors are ignored: a full disk or a
/// closed terminal must not end a run.
pub(crate) fn eprint_line(line: impl std::fmt::Display) {
    if let Some(host) = host() {
        (host.tell)(News::Note(line.to_string().trim_start_matches("note: ")));
        return;
    }
    let _ = std::io::stderr().write_all(format!("{}\n", printable(&line.to_string())).as_bytes());
}

/// Text that may quote a file or a server, without characters that a terminal obeys: they are escaped, but for the ends
/// of lines and tabs.
fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        let turns = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        match c {
            '\n' | '\t' => shown.push(c),
            c if c.is_control() || turns => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
    }
    shown
}

/// Creates the folder given by `--out` if it does not exist.
pub(crate) fn folder(out: &Path) -> Result<(), Failure> {
    if out.is_file() {
        return Err(Failure::Request(anyhow!("--out {} is a file; it must be a folder", out.display())));
    }
    std::fs::create_dir_all(out).with_context(|| format!("making {}", out.display())).map_err(Failure::Work)
}

/// Refuses to write to a file that is read, or that belongs to a run.
pub(crate) fn refuse_overwriting(out: &Path, inputs: &[&Path]) -> Result<(), Failure> {
    let Ok(place) = out.canonicalize() else { return Ok(()) };
    let folder = place.parent().filter(|folder| folder.join("manifest.json").is_file());
    let of_run = RUN_FILES.iter().any(|name| place.file_name().is_some_and(|own| own == *name));
    if let Some(folder) = folder.filter(|_| of_run && !inputs.iter().any(|input| same(input, &place))) {
        return Err(Failure::Request(anyhow!(
            "{} is a file of the run in {}; choose another file",
            out.display(),
            folder.display()
        )));
    }
    match inputs.iter().find(|input| same(input, &place)) {
        None => Ok(()),
        Some(input) => Err(Failure::Request(anyhow!(
            "{} is the input {}; writing to it would destroy it: choose another file",
            out.display(),
            input.display()
        ))),
    }
}

/// Files of a run directory that nothing else may write.
const RUN_FILES: [&str; 10] = [
    "best.safetensors",
    "clients.json",
    "config.toml",
    "manifest.json",
    "model.safetensors",
    "partition.json",
    "rounds.jsonl",
    "schema.toml",
    "start.safetensors",
    "summary.json",
];

fn same(path: &Path, place: &Path) -> bool {
    path.canonicalize().is_ok_and(|path| path == place)
}

/// The name of a configuration, if it has one.
pub(crate) fn title(config: &Config) -> Option<String> {
    match config.get("name") {
        Value::Text(name) if !name.is_empty() => Some(name),
        _ => None,
    }
}

/// A configuration file and changes to it.
#[derive(Args)]
pub(crate) struct Configured {
    /// Configuration file in TOML; keys that are left out have defaults
    #[arg(value_name = "CONFIG")]
    config: Option<PathBuf>,
    #[command(flatten)]
    changes: Changes,
    /// Folder with data sets [default: $FEDTVD_DATA]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// Refuses `--set` of keys that would have no effect; `why` completes the sentence.
pub(crate) fn refuse(set: &[String], idle: impl Fn(&str) -> bool, why: &str) -> Result<(), Failure> {
    refuse_each(set, |path| idle(path).then(|| format!(": {path} {why}")))
}

/// Refuses `--set` of keys for which there is a reason, the end of a sentence.
pub(crate) fn refuse_each(set: &[String], why: impl Fn(&str) -> Option<String>) -> Result<(), Failure> {
    for setting in set {
        let mut config = Config::default();
        config.set(setting).map_err(Failure::request)?;
        if let Some(why) = config.paths().iter().find_map(|path| why(path)) {
            return Err(Failure::Request(anyhow!("--set {setting} has no effect{why}")));
        }
    }
    Ok(())
}

/// Changes to individual keys.
#[derive(Args)]
pub(crate) struct Changes {
    /// Set a configuration key or strategy parameter, such as split.alpha=0.5; can be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl Configured {
    /// The configuration from the file, with the changes.
    pub(crate) fn read(&self) -> Result<Config, Failure> {
        match &self.config {
            None => self.changes.apply(Config::default()),
            Some(path) => self.read_over(path),
        }
    }

    /// The configuration from this file, with the changes.
    pub(crate) fn read_over(&self, path: &Path) -> Result<Config, Failure> {
        let read = || format!("reading {}", path.display());
        let text = std::fs::read_to_string(path).with_context(read).map_err(Failure::Request)?;
        let config =
            Config::parse(&text).with_context(|| path.display().to_string()).map_err(Failure::Request)?;
        self.changes.apply(config)
    }

    /// The configuration, and the text of its file; empty if there is no file.
    pub(crate) fn read_with_text(&self) -> Result<(Config, String), Failure> {
        let reading = |path: &PathBuf| {
            let read = || format!("reading {}", path.display());
            std::fs::read_to_string(path).with_context(read).map_err(Failure::Request)
        };
        Ok((self.read()?, self.config.as_ref().map_or(Ok(String::new()), reading)?))
    }

    /// The arguments that give the same configuration, each followed by a space.
    pub(crate) fn arguments(&self) -> String {
        let file = self.config.iter().map(|path| path.display().to_string());
        let changes = self.changes.set.iter().flat_map(|change| ["--set".to_owned(), change.clone()]);
        let data = self.data.iter().flat_map(|path| ["--data".to_owned(), path.display().to_string()]);
        file.chain(changes).chain(data).map(|word| quoted(&word) + " ").collect()
    }

    /// Refuses changes to keys that are set elsewhere.
    pub(crate) fn refuse(&self, keys: &BTreeSet<String>, by: &str) -> Result<(), Failure> {
        refuse(&self.changes.set, |path| keys.contains(path), by)
    }

    /// The changes to individual keys, as `key=value`.
    pub(crate) fn set(&self) -> &[String] {
        &self.changes.set
    }

    /// The folder that `--data` names.
    pub(crate) fn data(&self) -> Option<&Path> {
        self.data.as_deref()
    }

    /// The path in place of a configuration file, if it is a directory.
    pub(crate) fn directory(&self) -> Option<&Path> {
        self.config.as_deref().filter(|path| path.is_dir())
    }

    /// The path of the configuration file, if one is named.
    pub(crate) fn file(&self) -> Option<&PathBuf> {
        self.config.as_ref()
    }

    /// Whether changes to individual keys were given.
    pub(crate) fn has_changes(&self) -> bool {
        !self.changes.set.is_empty()
    }

    /// Whether a configuration file or a change to this key was given.
    pub(crate) fn names(&self, key: &str) -> bool {
        self.config.is_some() || self.changes.sets(key)
    }

    /// Whether a configuration file was named.
    pub(crate) fn names_file(&self) -> bool {
        self.config.is_some()
    }

    /// Whether neither a file nor a change was given.
    pub(crate) fn changes_nothing(&self) -> bool {
        self.config.is_none() && self.changes.set.is_empty()
    }

    /// The folders that are searched for data sets.
    pub(crate) fn places(&self) -> Places {
        Places::new(self.data.clone())
    }
}

impl Changes {
    /// The configuration with the changes.
    pub(crate) fn apply(&self, mut config: Config) -> Result<Config, Failure> {
        for setting in &self.set {
            config.set(setting).map_err(Failure::request)?;
        }
        self.check_label(&config)?;
        Ok(config)
    }

    /// Refuses a change of this key; `why` completes the sentence.
    pub(crate) fn refuse(&self, key: &str, why: &str) -> Result<(), Failure> {
        refuse(&self.set, |path| path == key, why)
    }

    /// Whether one of the changes is of this key.
    fn sets(&self, key: &str) -> bool {
        refuse(&self.set, |path| path == key, "").is_err()
    }

    /// Fails if a label is named beside a schema with another one. A configuration file may have the default, since that of a
    /// run has all keys.
    fn check_label(&self, config: &Config) -> Result<(), Failure> {
        let text =
            |key: &'static str| if let Value::Text(text) = config.get(key) { text } else { String::new() };
        let (label, path) = (text("data.label"), text("data.schema"));
        if !self.sets("data.label") || path.is_empty() {
            return Ok(());
        }
        // A schema that cannot be read is an error wherever it is used.
        match read_schema(Path::new(&path)).map(|schema| schema.label.column) {
            Ok(own) if own != label => Err(Failure::Request(anyhow!(
                "data.label = {label:?}, but the label of {path} is {own:?}; leave data.label out"
            ))),
            _ => Ok(()),
        }
    }
}

/// More threads than any machine has cores.
const MOST_WORKERS: usize = 1024;

/// Number of threads; all cores by default.
pub(crate) fn workers(asked: Option<usize>) -> Result<usize, Failure> {
    match asked {
        Some(0) => {
            Err(Failure::Request(anyhow::anyhow!("--workers 0 is not allowed; it must be at least 1")))
        }
        Some(workers) if workers > MOST_WORKERS => Err(Failure::Request(anyhow::anyhow!(
            "--workers {workers} is too large; it must be at most {MOST_WORKERS}"
        ))),
        Some(workers) => Ok(workers),
        None => Ok(std::thread::available_parallelism().map_or(1, usize::from)),
    }
}

/// runs/NAME-HASH for a configuration and other input, with a number appended if it exists.
pub(crate) fn unused_folder(name: &str, config: &Config, more: &str) -> PathBuf {
    let hash = sha256((config.identity() + more).as_bytes());
    let place = |end: String| Path::new("runs").join(format!("{name}-{}{end}", &hash[..8]));
    let mut paths = std::iter::once(place(String::new())).chain((2..).map(|n: u32| place(format!("-{n}"))));
    paths.find(|path| !path.exists()).expect("numbers do not run out")
}

/// The device of a run.
#[derive(Args, Clone)]
pub(crate) struct DeviceOption {
    /// Device that trains and evaluates: cpu, or with the Python package cuda, cuda:1, mps or cpu-torch [default: that of the run,
    /// or cpu]
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
}

impl DeviceOption {
    /// The device, for something new.
    pub(crate) fn device(&self) -> Result<Device, Failure> {
        Device::named(self.device.as_deref().unwrap_or("cpu")).map_err(Failure::request)
    }

    /// The device, or that of the run in this directory.
    pub(crate) fn device_of(&self, run: &Path) -> Result<Device, Failure> {
        // A directory that cannot be read is an error of whoever reads more of it.
        let manifest = RunDirectory::open(run).and_then(|run| run.manifest()).ok();
        let Some(manifest) = manifest.filter(|_| self.device.is_none()) else { return self.device() };
        let name = manifest.fingerprint.device();
        Device::named(name).map_err(|error| {
            Failure::Request(anyhow!(
                "{} was made on device {name}: {error}; --device cpu computes it on the CPU, with other bits",
                quoted(&run.display().to_string())
            ))
        })
    }

    /// The device of the run that a model belongs to, or the CPU if that is not known here.
    pub(crate) fn device_for(&self, model: &Path) -> Result<Device, Failure> {
        let run = if model.is_dir() { Some(model) } else { model.parent() };
        match self.device {
            Some(_) => self.device(),
            None => Ok(run.and_then(|run| self.device_of(run).ok()).unwrap_or_default()),
        }
    }

    /// Whether a device was named.
    pub(crate) fn given(&self) -> bool {
        self.device.is_some()
    }

    /// The argument that names it, with a space before it.
    pub(crate) fn argument(&self) -> String {
        self.device.as_ref().map_or(String::new(), |name| format!(" --device {}", quoted(name)))
    }
}

/// Number of threads; by default what keeps the device busy.
pub(crate) fn workers_on(device: &Device, asked: Option<usize>) -> Result<usize, Failure> {
    let default = device.describe().map_err(Failure::request)?.workers;
    workers(asked.or(default))
}

/// Resources of a run.
#[derive(Args, Clone)]
pub(crate) struct Resources {
    /// Number of threads that train clients [default: all cores]
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// Memory for client updates in MB; further updates go to a temporary file
    #[arg(long, value_name = "MB", default_value_t = 128)]
    update_memory: usize,
    #[command(flatten)]
    device: DeviceOption,
}

impl Resources {
    /// The checked resources of a new run.
    pub(crate) fn checked(&self) -> Result<fedtvd_run::simulation::Resources, Failure> {
        self.on(self.device.device()?)
    }

    /// The checked resources for the run in this directory.
    pub(crate) fn checked_for(&self, run: &Path) -> Result<fedtvd_run::simulation::Resources, Failure> {
        self.on(self.device.device_of(run)?)
    }

    fn on(&self, device: Device) -> Result<fedtvd_run::simulation::Resources, Failure> {
        Ok(fedtvd_run::simulation::Resources {
            workers: workers_on(&device, self.workers)?,
            update_memory: self.update_memory.saturating_mul(1 << 20),
            device,
        })
    }
}

/// `1 round`, `5 rounds`.
pub(crate) fn plural(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// A mean loss; a model that was evaluated without one has a loss that is not finite.
pub(crate) fn mean_loss(loss: Option<f64>) -> String {
    match loss {
        None => "not finite".to_owned(),
        Some(loss) if loss.abs() < 1e6 => format!("{loss:.4}"),
        Some(loss) => format!("{loss:.3e}"),
    }
}

/// A fraction in per cent, or a dash.
pub(crate) fn per_cent(fraction: Option<f64>, digits: usize) -> String {
    fraction.map_or_else(|| "–".to_owned(), |fraction| format!("{:.digits$} %", 100.0 * fraction))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_quotes_a_file_does_not_reach_the_terminal_as_commands() {
        assert_eq!(printable("a\u{1b}]0;x\u{7}\r\n\tb\u{9b}2J"), "a\\u{1b}]0;x\\u{7}\\r\n\tb\\u{9b}2J");
        assert_eq!(printable("Zürich – 5 %"), "Zürich – 5 %");
    }
}
