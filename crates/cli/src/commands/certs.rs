//! `fedtvd certs init|server|sign|issue|revoke|list`: the federation's private certificate authority.

use crate::request::{Failure, Output};
use anyhow::anyhow;
use clap::{Args, Subcommand};
use fedtvd_core::round::ClientId;
use fedtvd_net::identity::{
    AllowList, Authority, AuthorityError, CertificateRequest, Listed, RequestError, SigningRequest,
};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Issue and revoke certificates.
#[derive(Args)]
pub(crate) struct Certs {
    #[command(subcommand)]
    action: Action,
}

/// Where the authority is.
#[derive(Args)]
struct Place {
    /// Folder of the certificate authority
    #[arg(long, value_name = "DIR", default_value = "certs")]
    certs: PathBuf,
    #[command(flatten)]
    output: Output,
}

/// What new certificates say.
#[derive(Args)]
struct Terms {
    /// Number of the client in runs [default: that of its earlier certificate, or the next free one]
    #[arg(long)]
    id: Option<ClientId>,
    /// Maximum number of training samples with which each client counts; in paper mode, a client that claims more is
    /// refused [default: that of its earlier certificate, or 1000000]
    #[arg(long, value_name = "SAMPLES", value_parser = clap::value_parser!(u64).range(1..))]
    max_size: Option<u64>,
    /// Validity in days
    #[arg(long, default_value_t = 365, allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(1..=36500))]
    days: i64,
}

/// Maximum number of samples of a client for which no other was ever given.
const MAX_SIZE: u64 = 1_000_000;

impl Terms {
    /// Refuses one number for several clients.
    fn check(&self, clients: usize) -> Result<(), Failure> {
        if self.id.is_some() && clients > 1 {
            return Err(Failure::Request(anyhow!("--id is for one client, but {clients} were given")));
        }
        Ok(())
    }

    /// The maximum number of samples of a client.
    fn max_size(&self, authority: &Authority, name: &str) -> Result<u64, Failure> {
        let list = authority.list().map_err(failure)?;
        let earlier = list.newest(name).map(|entry| entry.max_size);
        Ok(self.max_size.or(earlier).unwrap_or(MAX_SIZE))
    }
}

#[derive(Subcommand)]
enum Action {
    /// Create a certificate authority and a server certificate
    Init {
        #[command(flatten)]
        place: Place,
        /// Host name or address that clients connect to, in addition to localhost; can be repeated
        #[arg(long, value_name = "HOST")]
        host: Vec<String>,
        /// Validity of the authority and the server certificate, in days
        #[arg(long, default_value_t = 3650, allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(1..=36500))]
        days: i64,
    },
    /// Replace the server certificate, with these host names instead of the old ones; clients keep theirs
    Server {
        #[command(flatten)]
        place: Place,
        /// Host name or address that clients connect to, in addition to localhost; can be repeated
        #[arg(long, value_name = "HOST", required = true)]
        host: Vec<String>,
        /// Validity in days
        #[arg(long, default_value_t = 3650, allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(1..=36500))]
        days: i64,
    },
    /// Sign requests that sites made with fedtvd join --request; their keys stay at the sites. Earlier certificates of the
    /// same clients stay valid until they expire or are revoked
    Sign {
        /// Files with certificate requests
        #[arg(required = true, value_name = "REQUEST")]
        requests: Vec<PathBuf>,
        /// Sign only if the request has this public key, as fedtvd join --request printed it at the site
        #[arg(long, value_name = "HASH")]
        key: Option<String>,
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        terms: Terms,
    },
    /// Issue client certificates with keys made here, each in its own folder; for tests on one machine, since whoever makes
    /// a key can be that client
    Issue {
        /// Names of the clients
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        terms: Terms,
    },
    /// Revoke a client's certificates; a running server ends their connections within seconds
    Revoke {
        /// Name of the client: revokes all of its certificates; or give --serial to revoke one
        #[arg(conflicts_with = "serial")]
        name: Option<String>,
        /// Revoke only the certificate with this serial number
        #[arg(long, value_name = "HEX")]
        serial: Option<String>,
        #[command(flatten)]
        place: Place,
    },
    /// List all certificates
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

#[derive(Serialize)]
struct Signed {
    folder: PathBuf,
    key_hash: String,
    /// Whether the operator named the public key.
    #[serde(skip)]
    checked: bool,
    /// Whether the client had a valid certificate, so that a stranger who used its name would now be taken for it.
    renews: bool,
    #[serde(flatten)]
    listed: Listed,
}

impl Signed {
    fn line(&self) -> String {
        let Self { folder, key_hash, checked, renews, listed } = self;
        let renews = if *renews {
            "\n  it had a valid certificate, which stays valid: did it ask for another one?"
        } else {
            ""
        };
        let asked = if *checked { "as expected" } else { "ask the site whether this is its key" };
        format!(
            "{} is number {}; send it cert.pem and ca.pem from {}\n  public key {key_hash}: {asked}\n  serial number {}{renews}\n",
            listed.name,
            listed.id,
            folder.display(),
            serial(listed),
        )
    }
}

impl Certs {
    pub(crate) fn answer(&self) -> Result<(), Failure> {
        match &self.action {
            Action::Init { place, host, days } => {
                Authority::init(&place.certs, host, *days).map_err(failure)?;
                let made = Made { certs: place.certs.clone(), hosts: host.clone() };
                place.output.answer(&made, || {
                    let folder = place.certs.display();
                    format!(
                        "Created a certificate authority in {folder}. Keep {folder}/ca.key secret.\nNext:  at each site \
                         fedtvd join --request NAME --identity DIR, then here fedtvd certs sign DIR/request.pem\n"
                    )
                })
            }
            Action::Server { place, host, days } => {
                open(&place.certs)?.renew_server(host, *days).map_err(failure)?;
                let made = Made { certs: place.certs.clone(), hosts: host.clone() };
                place.output.answer(&made, || {
                    let names = host.join(", ");
                    format!(
                        "The server has a new certificate for {names} and localhost. A running server uses it for new \
                         connections.\n"
                    )
                })
            }
            Action::Sign { requests, key, place, terms } => {
                terms.check(requests.len())?;
                let authority = open(&place.certs)?;
                // All are checked before any is signed.
                let signing = requests.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
                if let Some(key) = key {
                    check_key(key, &signing)?;
                }
                check_keys_differ(&signing)?;
                for request in &signing {
                    authority.check_key(request).map_err(failure)?;
                }
                let mut signed = Vec::new();
                for request in &signing {
                    let max_size = terms.max_size(&authority, request.name())?;
                    let renews = authority.list().map_err(failure)?.named(request.name()).is_some();
                    let (folder, listed) =
                        authority.sign(request, terms.id, max_size, terms.days).map_err(failure)?;
                    let (key_hash, checked) = (request.key_hash(), key.is_some());
                    signed.push(Signed { folder, key_hash, checked, renews, listed });
                }
                place.output.answer(&signed, || signed.iter().map(Signed::line).collect())
            }
            Action::Issue { names, place, terms } => {
                terms.check(names.len())?;
                let authority = open(&place.certs)?;
                let mut issued = Vec::new();
                for name in names {
                    let max_size = terms.max_size(&authority, name)?;
                    let (name, id, days) = (name.clone(), terms.id, terms.days);
                    let request = CertificateRequest { name, id, max_size, days };
                    let (folder, listed) = authority.issue(&request).map_err(failure)?;
                    issued.push(Issued { folder, listed });
                }
                place.output.answer(&issued, || issued.iter().map(line).collect())
            }
            Action::Revoke { name, serial, place } => {
                let authority = open(&place.certs)?;
                let revoked = match (serial, name) {
                    (Some(serial), _) => authority.revoke_serial(serial),
                    (None, Some(name)) => authority.revoke(name),
                    (None, None) => {
                        return Err(Failure::Request(anyhow!(
                            "which certificates? Name a client to revoke all of its certificates, or give --serial HEX to revoke \
                             one; \"fedtvd certs list\" shows both"
                        )));
                    }
                };
                let revoked = revoked.map_err(failure)?;
                place.output.answer(&revoked, || revoked.iter().map(revocation).collect())
            }
            Action::List { place } => {
                let list = open(&place.certs)?.list().map_err(failure)?;
                place.output.answer(&list.clients, || table(&list))
            }
        }
    }
}

fn open(folder: &Path) -> Result<Authority, Failure> {
    Authority::open(folder).map_err(failure)
}

fn failure(error: AuthorityError) -> Failure {
    match error {
        AuthorityError::File(_) | AuthorityError::Rcgen(_) | AuthorityError::Random => Failure::work(error),
        other => Failure::request(other),
    }
}

fn read(path: &Path) -> Result<SigningRequest, Failure> {
    SigningRequest::read(path).map_err(|error| match error {
        RequestError::File(_) => Failure::request(error),
        other => Failure::Request(anyhow!("{}: {other}", path.display())),
    })
}

/// Refuses a request with another public key than the one that the site named.
fn check_key(key: &str, requests: &[SigningRequest]) -> Result<(), Failure> {
    match requests {
        [request] if request.key_hash().eq_ignore_ascii_case(key.trim()) => Ok(()),
        [request] => Err(Failure::Request(anyhow!(
            "the request of {} has the public key {}, not {key}; somebody may have replaced it, and nothing was signed",
            request.name(),
            request.key_hash()
        ))),
        _ => Err(Failure::Request(anyhow!("--key is for one request, but {} were given", requests.len()))),
    }
}

/// Refuses requests of several clients with the same public key.
fn check_keys_differ(requests: &[SigningRequest]) -> Result<(), Failure> {
    for (place, request) in requests.iter().enumerate() {
        let (name, key) = (request.name(), request.key_hash());
        let same = |other: &&SigningRequest| other.name() != name && other.key_hash() == key;
        if let Some(other) = requests[..place].iter().find(same) {
            let (name, other) = (name.to_owned(), other.name().to_owned());
            return Err(failure(AuthorityError::KeyInUse { name, other }));
        }
    }
    Ok(())
}

fn revocation(listed: &Listed) -> String {
    let Listed { name, id, expires, .. } = listed;
    format!("Revoked certificate {} of {name} (number {id}), valid until {expires}\n", serial(listed))
}

fn serial(listed: &Listed) -> &str {
    listed.serial.as_deref().unwrap_or("without a serial number")
}

fn line(issued: &Issued) -> String {
    let Issued { folder, listed } = issued;
    format!("{} is number {}; give it the folder {}\n", listed.name, listed.id, folder.display())
}

fn table(list: &AllowList) -> String {
    let mut text = format!(
        "{:>6}  {:<20} {:>12}  {:<20}  {:<32}\n",
        "number", "name", "max samples", "expires", "serial number"
    );
    for entry in &list.clients {
        let state = match (entry.revoked, entry.expired()) {
            (true, _) => "  revoked",
            (false, true) => "  expired",
            (false, false) => "",
        };
        let serial = entry.serial.as_deref().unwrap_or("-");
        let _ = writeln!(
            text,
            "{:>6}  {:<20} {:>12}  {:<20}  {serial:<32}{state}",
            entry.id, entry.name, entry.max_size, entry.expires
        );
    }
    text
}
