//! What a federation promises, seen from outside: over loopback and TLS, without a fixed port or a sleep.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod bad_updates;
mod identity;
mod leaving;
mod one_hot;
mod puppet;
mod roster;
mod stage;
mod versions;
