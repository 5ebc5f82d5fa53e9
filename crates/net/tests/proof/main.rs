//! Guarantees of a federation, tested from outside: over loopback and TLS, without fixed ports or sleeps.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod bad_updates;
mod certificates;
mod columns;
mod continued_uploads;
mod deadlines;
mod destroyed;
mod double;
mod extra_clients;
mod false_evaluation;
mod false_server;
mod health;
mod hostile_server;
mod identity;
mod large_requests;
mod late_joiner;
mod leaving;
mod liar;
mod monitoring;
mod one_hot;
mod policy;
mod proxy;
mod puppet;
mod reasons;
mod records;
mod requests;
mod retrying;
mod rollback;
mod roster;
mod schema_changes;
#[cfg(target_os = "linux")]
mod site_memory;
mod stage;
#[cfg(target_os = "linux")]
mod strangers;
mod uncounted_work;
mod versions;
