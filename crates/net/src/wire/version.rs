//! The protocol versions of server and client, and the error if they differ.

use super::PROTOCOL;
use thiserror::Error;

/// The version of this program.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Maximum number of characters of a version that a peer claims.
const LONGEST: usize = 40;

/// Server and client speak different versions of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "the server speaks protocol {server} and this client protocol {client}; use the same fedtvd version on both sides \
     (server {server_version}, client {client_version})"
)]
pub struct VersionMismatch {
    /// The server's protocol.
    pub server: u32,
    /// The version of the server's program.
    pub server_version: String,
    /// The client's protocol.
    pub client: u32,
    /// The version of the client's program.
    pub client_version: String,
}

impl VersionMismatch {
    /// Compares a client's protocol with this server's.
    pub(crate) fn at_server(client: u32, version: &str) -> Result<(), Self> {
        let (server, server_version) = (PROTOCOL, VERSION.to_owned());
        match client {
            PROTOCOL => Ok(()),
            _ => Err(Self { server, server_version, client, client_version: readable(version) }),
        }
    }

    /// Compares a server's protocol with this client's.
    pub(crate) fn at_client(server: u32, version: &str) -> Result<(), Self> {
        let (client, client_version) = (PROTOCOL, VERSION.to_owned());
        match server {
            PROTOCOL => Ok(()),
            _ => Err(Self { server, server_version: readable(version), client, client_version }),
        }
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

    #[test]
    fn equal_protocols_agree_whatever_the_programs_versions_are() {
        assert_eq!(VersionMismatch::at_server(PROTOCOL, "99.0"), Ok(()));
        assert_eq!(VersionMismatch::at_client(PROTOCOL, ""), Ok(()));
    }

    #[test]
    fn a_mismatch_names_both_protocols_and_both_programs() {
        let error = VersionMismatch::at_client(7, "").unwrap_err().to_string();
        assert!(error.starts_with("the server speaks protocol 7 and this client protocol 3;"), "{error}");
        assert!(error.ends_with(&format!("(server unknown, client {VERSION})")), "{error}");
    }

    #[test]
    fn a_claimed_version_is_truncated_and_cannot_forge_a_log_line() {
        let error = VersionMismatch::at_server(7, &"\n".repeat(1000)).unwrap_err().to_string();
        assert!(error.len() < 300 && !error.contains('\n'), "{error}");
    }
}
