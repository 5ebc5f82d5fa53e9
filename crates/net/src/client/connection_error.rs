//! Why a request failed, in plain sentences.

use crate::client::tls_stream::TlsFailure;
use crate::identity::tls;
use crate::wire::{CODE, VersionMismatch, plain};
use std::error::Error as StdError;
use std::io::ErrorKind;
use std::sync::PoisonError;
use thiserror::Error;
use tonic::Status;

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ConnectionError {
    /// The server refused it.
    #[error("{why} [{code}]")]
    Refused {
        /// The code for scripts.
        code: String,
        /// The sentence for people.
        why: String,
        /// Whether the same request may succeed later.
        passing: bool,
    },
    /// The TLS handshake failed.
    #[error("{why} [{code}]")]
    Tls {
        /// The code for scripts.
        code: &'static str,
        /// The sentence for people.
        why: String,
    },
    /// The server speaks another version of the protocol.
    #[error(transparent)]
    Version(#[from] VersionMismatch),
    /// A malformed address.
    #[error("{0} is not an address; write HOST:PORT")]
    Address(String),
    /// Another machine, without TLS.
    #[error(
        "{0} may be another machine; connections without TLS are limited to 127.0.0.1, [::1] and localhost"
    )]
    Elsewhere(String),
    /// The list of what leaves the site cannot be written.
    #[error("nothing is sent, because it cannot be listed: {0}")]
    Unlisted(String),
    /// The connection failed or was lost.
    #[error("{0}")]
    Lost(String),
}

/// A refusal of the server, or a lost connection.
pub(crate) fn refused(status: &Status, failure: &TlsFailure) -> ConnectionError {
    match status.metadata().get(CODE).and_then(|code| code.to_str().ok()) {
        Some(code) => ConnectionError::Refused {
            code: plain(code),
            why: plain(status.message()),
            passing: status.code() == tonic::Code::Unavailable,
        },
        None => lost(status, failure),
    }
}

/// A lost connection, with the reason of TLS if it has one.
pub(crate) fn lost(error: &(dyn StdError + 'static), failure: &TlsFailure) -> ConnectionError {
    if let Some(error) = &*failure.lock().unwrap_or_else(PoisonError::into_inner) {
        let (code, why) = tls::declined(error);
        return ConnectionError::Tls { code, why };
    }
    ConnectionError::Lost(plain(&format!("the connection to the server failed: {}", cause(error))))
}

/// Said if the connection ended without the farewell of TLS.
const CLOSED: &str = "the server closed the connection";

/// The innermost cause of an error; the causes around it add only the names of libraries.
fn cause(error: &(dyn StdError + 'static)) -> String {
    match error.source() {
        Some(inner) => cause(inner),
        // The message of rustls is about its protocol, with a link to its manual.
        None if error
            .downcast_ref::<std::io::Error>()
            .is_some_and(|e| e.kind() == ErrorKind::UnexpectedEof) =>
        {
            CLOSED.to_owned()
        }
        // A status without a source prints its fields in the form of a program.
        None => {
            let status = error.downcast_ref::<Status>();
            let text = status.map_or_else(|| error.to_string(), |status| status.message().to_owned());
            if text.contains("close_notify") { CLOSED.to_owned() } else { text }
        }
    }
}
