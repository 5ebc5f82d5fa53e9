//! The server: it listens, accepts connections, and answers requests, within limits that keep one client from harming others.
//!
//! `listener` starts it, `connections` does the TLS handshakes, `service` identifies callers and dispatches requests,
//! `refusal` says why one is refused, `upload_limit` and `log_limit` are the limits.

pub(crate) mod connections;
mod listener;
mod log_limit;
pub(crate) mod refusal;
pub(crate) mod service;
pub(crate) mod upload_limit;

pub use listener::{Keys, KeysError, Server};
pub use log_limit::rate_limited;
