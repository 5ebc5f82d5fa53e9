//! `fedtvd certs init|server|issue|revoke|list`: the federation's private authority and its clients' certificates.

use crate::request::{Failure, Output};
use clap::{Args, Subcommand};
use fedtvd_core::profile::ClientId;
use fedtvd_net::allow::{AllowList, Listed};
use fedtvd_net::certs::{Certs as Authority, CertsError, Wish};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Make and revoke certificates.
#[derive(Args)]
pub(crate) struct Certs {
    #[command(subcommand)]
    verb: Verb,
}

/// Where the authority is.
#[derive(Args)]
struct Place {
    /// Folder of the authority
    #[arg(long, value_name = "DIR", default_value = "certs")]
    certs: PathBuf,
    #[command(flatten)]
    output: Output,
}

#[derive(Subcommand)]
enum Verb {
    /// Make a new authority and its server's certificate
    Init {
        #[command(flatten)]
        place: Place,
        /// Name or address under which clients dial the server, beside localhost; may be given several times
        #[arg(long, value_name = "HOST")]
        host: Vec<String>,
        /// Days for which authority and server are valid
        #[arg(long, default_value_t = 3650, value_parser = clap::value_parser!(i64).range(1..=36500))]
        days: i64,
    },
    /// Make the server's certificate anew, for these names in place of the old ones; clients keep theirs
    Server {
        #[command(flatten)]
        place: Place,
        /// Name or address under which clients dial the server, beside localhost; may be given several times
        #[arg(long, value_name = "HOST", required = true)]
        host: Vec<String>,
        /// Days for which it is valid
        #[arg(long, default_value_t = 3650, value_parser = clap::value_parser!(i64).range(1..=36500))]
        days: i64,
    },
    /// Make certificates for clients; each gets a folder of its own
    Issue {
        /// Names of the clients
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
        #[command(flatten)]
        place: Place,
        /// Number of the client in runs; the next free one unless given
        #[arg(long)]
        id: Option<ClientId>,
        /// The most training samples that each may claim
        #[arg(long, value_name = "SAMPLES", default_value_t = 1_000_000)]
        max_size: u64,
        /// Days for which the certificates are valid
        #[arg(long, default_value_t = 365, allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(-36500..=36500))]
        days: i64,
    },
    /// Take a client's certificate out of force; a running server knows at once
    Revoke {
        /// Name of the client
        name: String,
        #[command(flatten)]
        place: Place,
    },
    /// Show all certificates
    List {
        #[command(flatten)]
        place: Place,
    },
}

#[derive(Serialize)]
struct Made {
    certs: PathBuf,
    hosts: Vec<String>,
}

#[derive(Serialize)]
struct Issued {
    folder: PathBuf,
    #[serde(flatten)]
    listed: Listed,
}

impl Certs {
    /// Answers.
    pub(crate) fn answer(&self) -> Result<(), Failure> {
        match &self.verb {
            Verb::Init { place, host, days } => {
                Authority::init(&place.certs, host, *days).map_err(failure)?;
                let made = Made { certs: place.certs.clone(), hosts: host.clone() };
                place.output.answer(&made, || {
                    let folder = place.certs.display();
                    format!("A new authority is in {folder}. Keep {folder}/ca.key to yourself.\nNext:  fedtvd certs issue NAME…\n")
                })
            }
            Verb::Server { place, host, days } => {
                open(&place.certs)?.renew_server(host, *days).map_err(failure)?;
                let made = Made { certs: place.certs.clone(), hosts: host.clone() };
                place.output.answer(&made, || {
                    let names = host.join(", ");
                    format!("The server has a new certificate, for {names} and localhost. Start it again to show it.\n")
                })
            }
            Verb::Issue { names, place, id, max_size, days } => {
                if id.is_some() && names.len() > 1 {
                    return Err(Failure::Request(anyhow::anyhow!(
                        "--id is for one client; {} are named",
                        names.len()
                    )));
                }
                let authority = open(&place.certs)?;
                let mut issued = Vec::new();
                for name in names {
                    let wish = Wish { name: name.clone(), id: *id, max_size: *max_size, days: *days };
                    let (folder, listed) = authority.issue(&wish).map_err(failure)?;
                    issued.push(Issued { folder, listed });
                }
                place.output.answer(&issued, || issued.iter().map(line).collect())
            }
            Verb::Revoke { name, place } => {
                let listed = open(&place.certs)?.revoke(name).map_err(failure)?;
                place.output.answer(&listed, || format!("{name} (number {}) is out.\n", listed.id))
            }
            Verb::List { place } => {
                let list = open(&place.certs)?.list().map_err(failure)?;
                place.output.answer(&list.clients, || table(&list))
            }
        }
    }
}

fn open(folder: &Path) -> Result<Authority, Failure> {
    Authority::open(folder).map_err(failure)
}

fn failure(error: CertsError) -> Failure {
    match error {
        CertsError::File(_) | CertsError::Rcgen(_) => Failure::work(error),
        other => Failure::request(other),
    }
}

fn line(issued: &Issued) -> String {
    let Issued { folder, listed } = issued;
    format!("{} is number {}; give it the folder {}\n", listed.name, listed.id, folder.display())
}

fn table(list: &AllowList) -> String {
    let mut text = format!("{:>6}  {:<20} {:>12}  {:<10}\n", "number", "name", "max samples", "expires");
    for entry in &list.clients {
        let revoked = if entry.revoked { "  revoked" } else { "" };
        let _ = writeln!(
            text,
            "{:>6}  {:<20} {:>12}  {:<10}{revoked}",
            entry.id, entry.name, entry.max_size, entry.expires
        );
    }
    text
}
