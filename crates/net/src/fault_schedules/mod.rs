//! Fault schedules: whole federations in one thread, without sockets or sleeps, with every fault drawn from a seed.
//!
//! A schedule is the run of a server, of a few clients and of everything that can happen to them: requests that are lost,
//! late, repeated or out of order, answers that are lost, uploads that break off, clients and servers that are killed,
//! deadlines that pass, certificates that are revoked, changes of the disk that fail before, after or in the middle of their
//! effect, and power cuts that undo what was not synced. `run.rs` runs one; what must hold is in `truth.rs`; `found.rs` keeps the
//! bugs that schedules found. The coordinator,
//! the ledger, the loop over rounds and the run directory are the real ones; `clock.rs`, `disk.rs`, `client.rs` and
//! `network.rs` stand in for the world around them.
//!
//! A failing schedule prints its seed. To run it alone, with a line for each thing that happens:
//!
//! ```text
//! FEDTVD_FAULT_SEED=17 cargo test -p fedtvd-net --lib fault_schedules::seeds -- --nocapture
//! ```

mod client;
mod clock;
mod disk;
mod found;
mod journal;
mod network;
mod plan;
mod receiving;
mod request;
mod run;
mod seeds;
mod simulated;
mod trace;
mod truth;
mod world;
