//! Guarantees of a federation, tested from outside: over loopback and TLS, without fixed ports or sleeps.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod bad_updates;
mod columns;
mod false_evaluation;
mod identity;
mod late_joiner;
mod leaving;
mod liar;
mod one_hot;
mod puppet;
mod rollback;
mod roster;
mod stage;
mod versions;
