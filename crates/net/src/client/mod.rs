//! The client: it connects to a server, trains on its site's data, and sends updates.
//!
//! `join` is the client's main loop, `connection` speaks the protocol over a `tls_stream`, `site` holds the data and
//! trains, `enrol` answers surveys, and `backoff` delays attempts to reconnect.

mod backoff;
pub(crate) mod connection;
mod enrol;
mod join;
mod site;
mod tls_stream;

pub use connection::{Connection, ConnectionError, Security, Task};
pub use join::{JoinError, Options, Progress, join, take_part};
pub use site::SiteError;
