//! The client: it connects to a server, trains on its site's data, and sends updates.
//!
//! `join` is the client's main loop, `connection` speaks the protocol over a `tls_stream`, `site` holds the data and
//! trains, `site_data` reads tables with the server's schema, `enrol` answers surveys, `newest_server` notices
//! copies of a server, and `backoff` delays attempts to reconnect.

mod backoff;
mod check;
pub(crate) mod connection;
mod enrol;
mod join;
mod newest_server;
mod site;
mod site_data;
mod tls_stream;

pub use check::{Checked, check};
pub use connection::{Connection, ConnectionError, Security, Task};
pub use join::{JoinError, Options, Outcome, Progress, join, take_part};
pub use site::SiteError;
pub use site_data::{Readable, SiteData};
