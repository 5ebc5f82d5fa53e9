//! The server: it listens, accepts connections, and answers requests, within limits that keep one client from harming
//! others.
//!
//! `listener` starts it, `connections` does the TLS handshakes, `open_connections` closes connections whose certificate is
//! no longer valid, `service` identifies callers and answers requests, `dispatch` sends work to clients, `receive` stores
//! uploads, `refusal` lists the reasons to refuse a request and `refuse` does it, and `handshake_limit`, `large_requests`, `upload_limit` and
//! `log_limit` are limits. `signals` are those
//! of the operating system; `monitoring` answers requests for `metrics`.

pub(crate) mod connections;
pub(crate) mod dispatch;
mod handshake_limit;
pub(crate) mod large_requests;
mod listener;
mod log_limit;
mod metrics;
mod monitoring;
pub(crate) mod open_connections;
pub(crate) mod receive;
pub(crate) mod refusal;
pub(crate) mod refuse;
pub(crate) mod service;
mod signals;
pub(crate) mod upload_limit;

pub use listener::{Keys, KeysError, Server};
pub use log_limit::RateLimited;
pub use metrics::Metrics;
pub use signals::{Signal, survive_hangups};
