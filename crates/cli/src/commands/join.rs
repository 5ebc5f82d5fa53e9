//! `fedtvd join SERVER DATA`: the client of a federation.

use crate::commands::join_request;
use crate::request::{DeviceOption, Failure, Output, eprint_line, plural};
use anyhow::{Context as _, anyhow};
use clap::Args;
use clap::builder::{ArgPredicate, PossibleValue, PossibleValuesParser};
use fedtvd_data::set::{DataOptions, Loaded, Places};
use fedtvd_net::client::{
    self, Checked, ConnectionError, JoinError, Outcome, Policy, Progress, Security, SiteData, SiteError,
};
use fedtvd_net::identity::tls::authority_hash;
use fedtvd_run::attack::{ALL, Attack, Spec};
use fedtvd_run::configuration::{Value, keys};
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// Join a federation as a client, with local data.
#[derive(Args)]
pub(crate) struct Join {
    /// HOST:PORT of the server, or @FILE to read it from a file
    #[arg(
        value_name = "SERVER",
        required = false,
        required_unless_present = "request",
        default_value_if("request", ArgPredicate::IsPresent, "")
    )]
    server: String,
    /// This site's data: a folder written by fedtvd split --export, a folder of images by class, or a CSV file
    #[arg(
        value_name = "DATA",
        required = false,
        required_unless_present = "request",
        default_value_if("request", ArgPredicate::IsPresent, "")
    )]
    data: String,
    /// Folder with this site's key.pem, and the cert.pem and ca.pem that the operator sent
    #[arg(long, value_name = "DIR")]
    identity: Option<PathBuf>,
    /// Only make a key for a site of this name and a certificate request, DIR/request.pem, for the operator, who answers
    /// it with fedtvd certs sign; contacts nobody
    #[arg(long, value_name = "NAME", requires = "identity", conflicts_with_all = [
        "server", "data", "check", "dry_run", "state", "label", "columns", "test", "plaintext", "give_up", "policy", "attack",
    ])]
    request: Option<String>,
    /// Folder for state that is kept between rounds [default: .fedtvd in the data folder, or NAME.fedtvd beside a file NAME.csv]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// CSV: name of the label column, if the server's schema is to be checked against it
    #[arg(long, value_name = "COLUMN")]
    label: Option<String>,
    /// CSV: the only columns that the server's schema may read, besides the label [default: all]
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    columns: Option<Vec<String>>,
    /// CSV files, and folders without test data: share of the samples held out to evaluate models [default: 0.2]
    #[arg(long, value_name = "SHARE")]
    test: Option<f64>,
    /// Connect without TLS to a server on this machine, as client number N
    #[arg(long, value_name = "N", conflicts_with = "identity")]
    plaintext: Option<u32>,
    /// Give up after this many seconds in which no attempt succeeded [default: try for ever]
    #[arg(long, value_name = "SECONDS")]
    give_up: Option<u64>,
    /// Only check whether this site could take part: read its data as the federation does, and report what is missing or
    /// unknown, and what its policy does not allow
    #[arg(long)]
    check: bool,
    /// Only show what this site would agree to by joining, and what its policy does not allow
    #[arg(long, conflicts_with = "check")]
    dry_run: bool,
    /// What this site agrees to; fedtvd init --site prints one with comments [default: site.toml in the folder of --identity if
    /// there is one, else the defaults]
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// For tests of your own federation: lie to the server in this way (docs/attacks.md)
    #[arg(long, value_name = "KIND", value_parser = attacks())]
    attack: Option<String>,
    /// Strength of --attack scale, sign-flip or gaussian [default: 100, 1 or 1]
    #[arg(long, value_name = "FACTOR", requires = "attack", allow_negative_numbers = true)]
    attack_scale: Option<f64>,
    /// Number of samples that --attack false-tvd, false-histogram or vast-reach claims [default: 1000000]
    #[arg(long, value_name = "SAMPLES", requires = "attack")]
    attack_size: Option<u64>,
    #[command(flatten)]
    device: DeviceOption,
    #[command(flatten)]
    output: Output,
}

/// The result of --check.
#[derive(Serialize)]
struct CheckView<'a> {
    client: u32,
    name: &'a str,
    training: usize,
    holdout: usize,
    /// The columns that become inputs.
    columns: &'a [String],
    label: Option<&'a str>,
    /// The columns of which statistics would be sent.
    statistics: &'a [String],
    notes: &'a [String],
    /// What the site's policy does not allow.
    refused: Vec<String>,
}

/// The result of --dry-run.
#[derive(Serialize)]
struct AgreementView<'a> {
    name: &'a str,
    run: &'a str,
    strategy: &'a str,
    mode: &'a str,
    rounds: u32,
    epochs: u32,
    model_values: usize,
    training: usize,
    holdout: usize,
    sends: &'a [String],
    refused: Vec<String>,
    policy: &'a Policy,
}

impl<'a> AgreementView<'a> {
    fn of(found: &'a Checked, policy: &'a Policy) -> Self {
        let welcome = &found.welcome;
        Self {
            name: &welcome.name,
            run: &welcome.run,
            strategy: &welcome.strategy,
            mode: &welcome.mode,
            rounds: welcome.rounds,
            epochs: welcome.epochs,
            model_values: found.model_values,
            training: found.training,
            holdout: found.holdout,
            sends: &found.disclosures,
            refused: refused(found),
            policy,
        }
    }

    fn text(&self, policy: &Policy) -> String {
        let Self { name, run, strategy, mode, rounds, epochs, model_values, training, holdout, .. } = self;
        let list = |items: &[String]| items.iter().map(|item| format!("  - {item}\n")).collect::<String>();
        let (would, refused) = match self.refused.len() {
            0 => ("It would send", "The site's policy allows all of it.\n".to_owned()),
            _ => (
                "It would send nothing but the reason why it does not take part. If its policy allowed all of it, it would send",
                format!("Not allowed:\n{}", list(&self.refused)),
            ),
        };
        format!(
            "As {name}, this site would take part in run {run}: {rounds} rounds of {strategy}, {mode} mode, local epochs per round: {epochs}, on \
             {training} training samples ({holdout} held out), a model of {model_values} values.\n\
             {would}:\n{}\
             {refused}\
             The policy:\n{}",
            list(self.sends),
            policy.summary()
        )
    }
}

/// The names of all attacks, with what they do.
fn attacks() -> PossibleValuesParser {
    // Attacks of liars that collude are refused with the reason.
    let value = |spec: &&Spec| PossibleValue::new(spec.name).help(spec.about).hide(spec.colludes);
    PossibleValuesParser::new(ALL.iter().map(value))
}

#[derive(Serialize)]
struct View {
    rounds: u32,
    model_hash: String,
    stored: u32,
    refused: u32,
}

impl Join {
    pub(crate) fn answer(&self) -> Result<(), Failure> {
        if let (Some(name), Some(folder)) = (&self.request, &self.identity) {
            return join_request::answer(name, folder, &self.output);
        }
        let data = self.site_data()?;
        let state = self.state.clone().unwrap_or_else(|| {
            let data = PathBuf::from(&self.data);
            if data.is_dir() { data.join(".fedtvd") } else { data.with_extension("fedtvd") }
        });
        let attack = self.attack()?;
        let (server, security) = (self.server.clone(), self.security()?);
        let (policy, agreed) = self.policy()?;
        let options = client::Options {
            attack,
            policy,
            authority: self.authority()?,
            data_name: self.data_name(),
            give_up: self.give_up.map(Duration::from_secs),
            device: self.device.device()?,
            ..client::Options::new(server, security, data, state)
        };
        if let Some(note) = self.readable_key().filter(|_| !self.output.quiet) {
            eprint_line(note);
        }
        if self.check {
            return self.checked(&options);
        }
        if self.dry_run {
            return self.agreed(&options);
        }
        let quiet = self.output.quiet;
        if let Some(attack) = attack.filter(|_| !quiet) {
            eprint_line(format_args!("this client lies to the server ({attack}): {}", attack.spec().about));
        }
        if !quiet {
            eprint_line(agreed);
        }
        let report = move |progress: &Progress| {
            if !quiet {
                eprint_line(text(progress));
            }
        };
        let Outcome { rounds, model_hash, stored, refused } =
            client::take_part(options, &report).map_err(failure)?;
        let view = View { rounds, model_hash, stored, refused };
        self.output.answer(&view, || {
            let refused = if refused == 0 { String::new() } else { format!(", refused {refused}") };
            format!(
                "the federation has finished after {}; the server stored {} of this client{refused}\n",
                plural(rounds as usize, "round"),
                plural(stored as usize, "update"),
            )
        })?;
        if stored == 0 && refused > 0 {
            return Err(Failure::Work(anyhow!(
                "the server refused all of this client's work ({refused} times)"
            )));
        }
        Ok(())
    }

    /// A table is read when the server's schema is known, everything else at once.
    fn site_data(&self) -> Result<SiteData, Failure> {
        let test = self.test.unwrap_or(DataOptions::default().test);
        let options = DataOptions { set: self.data.clone(), test, ..DataOptions::default() };
        let missing = || {
            Failure::Request(anyhow!(
                "there is no {}; DATA is this site's data: a folder of images by class, a folder written by fedtvd split --export, \
                 or a CSV file",
                self.data
            ))
        };
        let exists = PathBuf::from(&self.data).exists();
        if options.is_table_file() && !exists {
            return Err(missing());
        }
        self.refuse_idle(&options)?;
        if options.is_table_file() {
            let (path, label) = (PathBuf::from(&self.data), self.label.clone());
            return Ok(SiteData::Table { path, label, test, columns: self.columns.clone() });
        }
        let Loaded { samples, class_names, .. } = options
            .load(&Places::new(None))
            .map_err(|error| if exists { Failure::request(error) } else { missing() })?;
        Ok(SiteData::Samples { samples, class_names })
    }

    /// Refuses options that are for another kind of data.
    fn refuse_idle(&self, data: &DataOptions) -> Result<(), Failure> {
        for (given, option, key) in [
            (self.label.is_some(), "--label", "data.label"),
            (self.columns.is_some(), "--columns", "data.schema"),
            (self.test.is_some(), "--test", "data.test"),
        ] {
            if let Some(why) = data.no_effect(key).filter(|_| given) {
                return Err(Failure::Request(anyhow!("{option} has no effect: {why}")));
            }
        }
        Ok(())
    }

    fn checked(&self, options: &client::Options) -> Result<(), Failure> {
        let found = client::check(options).map_err(failure)?;
        let table = found.table.as_ref();
        let view = CheckView {
            client: found.welcome.client,
            name: &found.welcome.name,
            training: found.training,
            holdout: found.holdout,
            columns: table.map_or(&[], |table| &table.columns),
            label: table.map(|table| table.label.as_str()),
            statistics: table.map_or(&[], |table| &table.statistics),
            notes: &found.notes,
            refused: refused(&found),
        };
        self.output.answer(&view, || {
            let reads = table.map(|table| format!("{table}\n")).unwrap_or_default();
            let notes: String = view.notes.iter().map(|note| format!("note: {note}\n")).collect();
            let (name, client) = (view.name, view.client);
            let samples = format!("{} training samples and {} held out", view.training, view.holdout);
            match view.refused.as_slice() {
                [] => format!("{reads}{notes}{name} can take part as client {client}, with {samples}\n"),
                refused => {
                    let refused: String = refused.iter().map(|why| format!("not allowed: {why}\n")).collect();
                    format!("{reads}{notes}{refused}{name} (client {client}) has {samples}\n")
                }
            }
        })?;
        check_allowed(&view.refused)
    }

    fn agreed(&self, options: &client::Options) -> Result<(), Failure> {
        let found = client::check(options).map_err(failure)?;
        let view = AgreementView::of(&found, &options.policy);
        self.output.answer(&view, || view.text(&options.policy))?;
        check_allowed(&view.refused)
    }

    /// What the site agrees to, and where it says so.
    fn policy(&self) -> Result<(Policy, String), Failure> {
        // A link to nowhere is a policy that cannot be read, not none.
        let beside = self.identity.as_ref().map(|folder| folder.join("site.toml"));
        let beside = beside.filter(|path| std::fs::symlink_metadata(path).is_ok());
        match self.policy.clone().or(beside) {
            Some(path) => {
                let policy = Policy::read(&path).map_err(Failure::request)?;
                Ok((policy, format!("policy: {}", path.display())))
            }
            None => {
                Ok((Policy::default(), "policy: the defaults, which fedtvd init --site prints".to_owned()))
            }
        }
    }

    /// The authority that the site trusts, by its certificate.
    fn authority(&self) -> Result<String, Failure> {
        let Some(folder) = &self.identity else { return Ok(String::new()) };
        let path = folder.join("ca.pem");
        let hash = authority_hash(&path).with_context(|| format!("reading {}", path.display()));
        hash.map_err(Failure::Request)
    }

    /// A note if other users of this machine can read the site's key.
    fn readable_key(&self) -> Option<String> {
        let path = self.identity.as_ref()?.join("key.pem");
        #[cfg(unix)]
        let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).ok()?.permissions());
        #[cfg(not(unix))]
        let mode = 0;
        (mode & 0o077 != 0).then(|| {
            let path = path.display();
            format!(
                "note: other users of this machine may read {path} (mode {:o}); chmod 600 {path}",
                mode & 0o777
            )
        })
    }

    /// The data's full path: the same data is the same, from whichever folder the program is started.
    fn data_name(&self) -> String {
        let path = PathBuf::from(&self.data);
        path.canonicalize().unwrap_or(path).display().to_string()
    }

    /// The attack with its settings, which have the ranges and defaults of a simulation's keys.
    fn attack(&self) -> Result<Option<Attack>, Failure> {
        let Some(name) = &self.attack else { return Ok(None) };
        let number = |path: &str, given: Option<Value>| {
            let param = &keys::find(path).expect("attacks have these keys").param;
            let value = given.map_or_else(|| Ok(param.default()), |given| param.check(given).map(Some));
            let value = value.map_err(Failure::request)?;
            Ok(value.and_then(|value| value.number()).unwrap_or_default())
        };
        let scale = number("attack.scale", self.attack_scale.map(Value::Number))?;
        let size = number("attack.size", self.attack_size.map(Value::Whole))?;
        let attack = Attack::named(name, scale, size as u64);
        if let Some(spec) = attack.map(|attack| attack.spec()) {
            if spec.colludes {
                return Err(Failure::Request(anyhow!(
                    "--attack {name} needs the updates of the other clients, and a client knows only its own; use \
                     attack.kind={name} in a simulation"
                )));
            }
            for (given, used, option) in [
                (self.attack_scale.is_some(), spec.scale.is_some(), "--attack-scale"),
                (self.attack_size.is_some(), spec.sized(), "--attack-size"),
            ] {
                if given && !used {
                    return Err(Failure::Request(anyhow!("{option} has no effect with --attack {name}")));
                }
            }
        }
        Ok(attack)
    }

    fn security(&self) -> Result<Security, Failure> {
        match (&self.identity, self.plaintext) {
            (Some(folder), _) => {
                let there = |name: &str| folder.join(name).exists();
                if there("request.pem") && !(there("cert.pem") && there("ca.pem")) {
                    return Err(Failure::Request(anyhow!(
                        "{} has a request, but not yet the operator's answer: put the cert.pem and ca.pem that fedtvd certs sign \
                         made into it",
                        folder.display()
                    )));
                }
                Ok(Security::client(folder).map_err(Failure::request)?)
            }
            (None, Some(client)) => {
                let host = self.server.rsplit_once(':').map_or("", |(host, _)| host);
                if !self.server.starts_with('@') && !["127.0.0.1", "[::1]", "localhost"].contains(&host) {
                    return Err(Failure::Request(anyhow!(
                        "--plaintext is for servers on this machine, not {}; use --identity DIR",
                        self.server
                    )));
                }
                Ok(Security::Claimed(client.to_string()))
            }
            (None, None) => Err(Failure::Request(anyhow!(
                "--identity DIR is missing: the folder with this site's key and certificate, which begins with \
                 fedtvd join --request NAME --identity DIR"
            ))),
        }
    }
}

/// What the site's policy does not allow, as sentences.
fn refused(found: &Checked) -> Vec<String> {
    found.violations.iter().map(ToString::to_string).collect()
}

/// Fails if the site's policy does not allow something.
fn check_allowed(refused: &[String]) -> Result<(), Failure> {
    match refused.len() {
        0 => Ok(()),
        refused => Err(Failure::Work(anyhow!(
            "the site's policy does not allow {} of this; this client would not take part",
            plural(refused, "part")
        ))),
    }
}

fn text(progress: &Progress) -> String {
    match progress {
        Progress::Joined(welcome) => format!(
            "joined as {} (client {}): {} rounds of {}, {} mode",
            welcome.name, welcome.client, welcome.rounds, welcome.strategy, welcome.mode
        ),
        Progress::Reads(table) => table.to_string(),
        Progress::Read(notes) => {
            notes.iter().map(|note| format!("note: {note}")).collect::<Vec<_>>().join("\n")
        }
        Progress::Gathering => {
            "sending the statistics of the columns, and waiting for those of the other sites".to_owned()
        }
        Progress::Training(round) => format!("round {round}: training"),
        Progress::Sent(round) => format!("round {round}: update stored by the server"),
        Progress::Declined(round, violation) => format!("round {round}: declined: {violation}"),
        Progress::Refused(error) => format!("refused: {error}"),
        Progress::Waiting(why) => format!("trying again: {why}"),
    }
}

fn failure(error: JoinError) -> Failure {
    match error {
        // The request was right; the site does not agree to what the server asks for.
        JoinError::Site(SiteError::Policy(violation)) => Failure::work(violation),
        JoinError::Connection(ConnectionError::Address(_) | ConnectionError::Elsewhere(_))
        | JoinError::Site(_) => Failure::request(error),
        other => Failure::work(other),
    }
}
