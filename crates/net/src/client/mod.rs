//! The client: it connects to a server, trains on its site's data, and sends updates.
//!
//! `join` is the client's main loop, `session` one connection of it, `connection` speaks the protocol over a `tls_stream` (`upload` sends updates),
//! `site` holds the data and trains, `site_data` reads tables with the server's schema, `site_table` and `pinned_schema`
//! check it before anything about a table leaves, `enrol` answers surveys, `newest_server` notices copies of a server, and
//! `backoff` delays attempts to reconnect. `policy` says what a site agrees to, `agreement` compares it with what the
//! server announces, `sent_log` lists what left, in the words of `outgoing`, and `sent_memory` remembers what the policy counts.

mod agreement;
mod backoff;
mod check;
pub(crate) mod connection;
mod connection_error;
mod enrol;
mod job_memory;
mod join;
mod newest_server;
mod outgoing;
mod pinned_schema;
mod policy;
mod sent_log;
mod sent_memory;
mod session;
mod site;
mod site_data;
mod site_table;
mod table_use;
mod tls_stream;
mod upload;

pub use backoff::Backoff;
pub use check::{Checked, check};
pub use connection::{Connection, Security, Task};
pub use connection_error::ConnectionError;
pub use join::{JoinError, Options, Outcome, Progress, join, take_part};
pub use policy::{Disclosure, Policy, PolicyError, Violation};
pub use sent_log::SentLine;
pub use site::SiteError;
pub use site_data::{Readable, SiteData};
pub use table_use::TableUse;
