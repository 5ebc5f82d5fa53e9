//! `fedtvd join SERVER DATA`: a site takes part in a federation.

use crate::request::{Failure, Output, tell as say};
use anyhow::anyhow;
use clap::Args;
use fedtvd_data::set::{DataOptions, Places};
use fedtvd_net::agent::{self, JoinError, Progress};
use fedtvd_net::link::{LinkError, Security};
use serde::Serialize;
use std::path::PathBuf;

/// Take part in a federation with this site's own data.
#[derive(Args)]
pub(crate) struct Join {
    /// HOST:PORT of the server, or @FILE: a file that holds it
    #[arg(value_name = "SERVER")]
    server: String,
    /// This site's data: a folder that fedtvd split --export wrote, a folder of images by class, or a CSV file
    #[arg(value_name = "DATA")]
    data: String,
    /// Folder with ca.pem, cert.pem and key.pem, as fedtvd certs issue makes it
    #[arg(long, value_name = "DIR")]
    identity: Option<PathBuf>,
    /// Folder for what must be remembered between rounds; .fedtvd in the data's folder, or beside its file, unless given
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// CSV: the column that holds the label
    #[arg(long, value_name = "COLUMN", default_value = "label")]
    label: String,
    /// CSV, and folders without test: the share that is kept back to judge models by
    #[arg(long, value_name = "SHARE", default_value_t = 0.2)]
    test: f64,
    /// Speak without TLS to a server on this machine, as client number N
    #[arg(long, value_name = "N", conflicts_with = "identity")]
    plaintext: Option<u32>,
    #[command(flatten)]
    output: Output,
}

#[derive(Serialize)]
struct View {
    rounds: u32,
    model_hash: String,
}

impl Join {
    /// Answers.
    pub(crate) fn answer(&self) -> Result<(), Failure> {
        let options = DataOptions {
            set: self.data.clone(),
            label: self.label.clone(),
            test: self.test,
            ..DataOptions::default()
        };
        let data = options.load(&Places::new(None)).map_err(Failure::request)?;
        let state = self.state.clone().unwrap_or_else(|| {
            let data = PathBuf::from(&self.data);
            if data.is_dir() { data.join(".fedtvd") } else { data.with_extension("fedtvd") }
        });
        let options = agent::Options {
            server: self.server.clone(),
            security: self.security()?,
            samples: data.samples,
            class_names: data.class_names,
            folder: state,
        };
        let quiet = self.output.quiet;
        let tell = move |progress: &Progress| {
            if !quiet {
                say(text(progress));
            }
        };
        let finished = agent::take_part(options, &tell).map_err(failure)?;
        let view = View { rounds: finished.rounds, model_hash: finished.model_hash };
        self.output.answer(&view, || format!("the federation is done after {} rounds\n", view.rounds))
    }

    fn security(&self) -> Result<Security, Failure> {
        match (&self.identity, self.plaintext) {
            (Some(folder), _) => Ok(Security::client(folder).map_err(Failure::request)?),
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
                "who is this? --identity DIR names the folder that the operator made with fedtvd certs issue"
            ))),
        }
    }
}

fn text(progress: &Progress) -> String {
    match progress {
        Progress::Joined(welcome) => format!(
            "in as {} (client {}): {} rounds of {}, {} mode",
            welcome.name, welcome.client, welcome.rounds, welcome.strategy, welcome.mode
        ),
        Progress::Training(round) => format!("round {round}: training"),
        Progress::Sent(round) => format!("round {round}: update is on the server's disk"),
        Progress::Refused(error) => format!("refused: {error}"),
        Progress::Waiting(why) => format!("trying again: {why}"),
    }
}

fn failure(error: JoinError) -> Failure {
    match error {
        JoinError::Link(LinkError::Address(_) | LinkError::Elsewhere(_)) | JoinError::Site(_) => {
            Failure::request(error)
        }
        other => Failure::work(other),
    }
}
