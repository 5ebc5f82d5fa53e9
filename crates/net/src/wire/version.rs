//! The versions of the protocol that server and client speak, and the error if they have none in common.

use super::{OLDEST_PROTOCOL, PROTOCOL, TRAINING_OPTIONS};
use fedtvd_core::train::Local;
use std::fmt;
use thiserror::Error;

/// The version of this program.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Maximum number of characters of a version that a peer claims.
const LONGEST: usize = 40;

/// The versions of the protocol that a program speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spoken {
    /// The oldest.
    pub oldest: u32,
    /// The newest.
    pub newest: u32,
}

/// The versions that this program speaks.
const OURS: Spoken = Spoken { oldest: OLDEST_PROTOCOL, newest: PROTOCOL };

impl fmt::Display for Spoken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { oldest, newest } = self;
        if oldest == newest {
            write!(out, "protocol {newest}")
        } else {
            write!(out, "protocols {oldest} to {newest}")
        }
    }
}

/// Server and client have no version of the protocol in common.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "the server speaks {server} and this client {client}; update the older of the two programs (server \
     {server_version}, client {client_version})"
)]
pub struct VersionMismatch {
    /// The server's versions of the protocol.
    pub server: Spoken,
    /// The version of the server's program.
    pub server_version: String,
    /// The client's versions of the protocol.
    pub client: Spoken,
    /// The version of the client's program.
    pub client_version: String,
}

/// The newest version of the protocol that a client and this server speak; `newest` is 0 for clients that speak `oldest` only.
///
/// A run whose jobs have options of local training is served to clients that know them, and to no others.
pub(crate) fn agree(oldest: u32, newest: u32, version: &str, local: &Local) -> Result<u32, VersionMismatch> {
    let client = Spoken { oldest, newest: newest.max(oldest) };
    let least = if local.has_options() { TRAINING_OPTIONS } else { OURS.oldest };
    let server = Spoken { oldest: least, ..OURS };
    let common = client.newest.min(server.newest);
    if common >= client.oldest.max(server.oldest) {
        return Ok(common);
    }
    let (server_version, client_version) = (VERSION.to_owned(), readable(version));
    Err(VersionMismatch { server, server_version, client, client_version })
}

impl VersionMismatch {
    /// Checks that this client speaks the version that a server has chosen.
    pub(crate) fn at_client(chosen: u32, version: &str) -> Result<(), Self> {
        if (OURS.oldest..=OURS.newest).contains(&chosen) {
            return Ok(());
        }
        let (server_version, client_version) = (readable(version), VERSION.to_owned());
        Err(Self {
            server: Spoken { oldest: chosen, newest: chosen },
            server_version,
            client: OURS,
            client_version,
        })
    }
}

/// A version that a peer claims, truncated and escaped for logs.
fn readable(version: &str) -> String {
    match version {
        "" => "unknown".to_owned(),
        _ => version.chars().take(LONGEST).flat_map(char::escape_default).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedtvd_core::train::{Adam, Optimizer, Schedule};

    #[test]
    fn the_newest_common_version_is_chosen_whatever_the_programs_versions_are() {
        let agree = |oldest, newest, version| agree(oldest, newest, version, &Local::default());
        assert_eq!(agree(OLDEST_PROTOCOL, PROTOCOL, "99.0"), Ok(PROTOCOL));
        assert_eq!(agree(OLDEST_PROTOCOL, 0, ""), Ok(OLDEST_PROTOCOL), "a client before negotiation");
        assert_eq!(agree(1, OLDEST_PROTOCOL, ""), Ok(OLDEST_PROTOCOL));
        assert_eq!(agree(PROTOCOL, u32::MAX, ""), Ok(PROTOCOL));
        for (oldest, newest) in [(0, 0), (1, 2), (PROTOCOL + 1, PROTOCOL + 5), (u32::MAX, 0)] {
            assert!(agree(oldest, newest, "").is_err(), "{oldest} {newest}");
        }
        for chosen in OLDEST_PROTOCOL..=PROTOCOL {
            assert_eq!(VersionMismatch::at_client(chosen, ""), Ok(()));
        }
    }

    #[test]
    fn training_with_options_is_not_offered_to_clients_that_do_not_know_them() {
        let adam = Adam { lr: 0.001, beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.0 };
        for local in [
            Local { optimizer: Optimizer::Adam(adam), ..Local::default() },
            Local { clip: Some(1.0), ..Local::default() },
            Local { smoothing: 0.1, ..Local::default() },
        ] {
            assert_eq!(agree(3, 5, "", &local), Ok(5));
            let error = agree(3, 4, "0.1.0", &local).unwrap_err().to_string();
            assert!(
                error.starts_with("the server speaks protocol 5 and this client protocols 3 to 4;"),
                "{error}"
            );
        }
        let decayed = Local { schedule: Schedule::exponential(0.9), ..Local::default() };
        assert_eq!(agree(3, 4, "0.1.0", &decayed), Ok(4), "every client knows a learning rate");
    }

    #[test]
    fn a_mismatch_names_both_protocols_and_both_programs() {
        let error = VersionMismatch::at_client(7, "").unwrap_err().to_string();
        let start = "the server speaks protocol 7 and this client protocols 3 to 5; update the older";
        assert!(error.starts_with(start), "{error}");
        assert!(error.ends_with(&format!("(server unknown, client {VERSION})")), "{error}");
    }

    #[test]
    fn a_claimed_version_is_truncated_and_cannot_forge_a_log_line() {
        let error = agree(7, 0, &"\n".repeat(1000), &Local::default()).unwrap_err().to_string();
        assert!(error.len() < 300 && !error.contains('\n'), "{error}");
    }
}
