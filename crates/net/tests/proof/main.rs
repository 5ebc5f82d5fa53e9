//! Guarantees of a federation, tested from outside: over loopback and TLS, without fixed ports or sleeps.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod bad_updates;
mod columns;
mod identity;
mod leaving;
mod one_hot;
mod puppet;
mod roster;
mod stage;
mod versions;
