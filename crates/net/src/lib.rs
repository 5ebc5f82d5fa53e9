//! The federation: server and clients on different machines, over gRPC and mutual TLS.
//!
//! The only crate that knows protobuf, TLS and async. The round, the client's routine, the strategies and the run
//! directory are those of a simulation, so both produce the same bits.
//!
//! A client that takes part with its own data calls [`client::take_part`]. One that does its own training speaks the
//! protocol itself:
//!
//! ```no_run
//! use fedtvd_net::client::{Connection, Security, Task};
//! use std::path::Path;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let security = Security::client(Path::new("berlin"))?;
//! let mut connection = Connection::dial("fed.example.org:7443", &security).await?;
//! let welcome = connection.hello().await?;
//! println!("{} rounds of {}", welcome.rounds, welcome.strategy);
//! match connection.pull(&welcome.run).await? {
//!     Task::Train(round, job) => println!("a job of {} bytes in round {}", job.len(), round + 1),
//!     other => println!("{other:?}"),
//! }
//! # Ok(())
//! # }
//! ```

pub mod client;
#[cfg(test)]
mod fault_schedules;
pub mod federation;
pub mod identity;
pub mod server;
mod utc;
pub mod wire;
