//! The federation: server and clients on different machines, over gRPC and mutual TLS.
//!
//! The only crate that knows protobuf, TLS and async. The round, the client's routine, the strategies and the run
//! directory are those of a simulation, so both come to the same bits.

pub mod admission;
pub mod agent;
pub mod allow;
pub mod backoff;
mod caller;
pub mod certs;
pub mod door;
pub mod drive;
pub mod event;
mod federation;
pub mod hall;
mod handing;
mod known;
mod lanes;
pub mod ledger;
mod line;
pub mod link;
pub mod muffle;
mod phase;
mod receive;
pub mod refusal;
pub mod server;
mod service;
pub mod site;
pub mod start;
pub mod status;
mod stored;
pub mod tls;
pub mod wire;
