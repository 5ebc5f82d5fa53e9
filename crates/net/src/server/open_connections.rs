//! The open connections of each certificate: a limit to their number, and a way to close them when the certificate is no
//! longer valid.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// Maximum number of open connections of one certificate: a client needs one, and one that was lost stays open for some seconds.
/// Each can fill a window of memory.
pub(crate) const CONNECTIONS_EACH: usize = 4;

/// All open connections, by the SHA-256 of their certificates.
#[derive(Debug, Default)]
pub(crate) struct OpenConnections {
    next: AtomicU64,
    certificates: Mutex<BTreeMap<Arc<str>, Connections>>,
}

/// The connections of one certificate, by number.
type Connections = BTreeMap<u64, Arc<State>>;

/// What can happen to a connection from outside.
#[derive(Debug, Default)]
struct State {
    closed: CancellationToken,
    /// Whether its requests were ended, so that their answers say why before the connection is closed.
    warned: AtomicBool,
}

/// One open connection; dropping it makes room for another.
#[derive(Debug)]
pub(crate) struct Slot {
    certificate: Arc<str>,
    number: u64,
    state: Arc<State>,
    all: Arc<OpenConnections>,
}

impl OpenConnections {
    /// A slot for one more connection. If the certificate has as many as it may, the oldest is closed, which a client on a poor
    /// line may have lost without the server's knowledge; returns whether one was.
    pub(crate) fn open(self: &Arc<Self>, certificate: &Arc<str>) -> (Slot, bool) {
        let mut certificates = self.certificates();
        let connections = certificates.entry(Arc::clone(certificate)).or_default();
        let full = connections.len() >= CONNECTIONS_EACH;
        if full && let Some((_, oldest)) = connections.pop_first() {
            oldest.closed.cancel();
        }
        let (number, state) = (self.next.fetch_add(1, Ordering::Relaxed), Arc::<State>::default());
        connections.insert(number, Arc::clone(&state));
        drop(certificates);
        (Slot { certificate: Arc::clone(certificate), number, state, all: Arc::clone(self) }, full)
    }

    /// Closes connections whose certificate is not valid: the first call returns true, for the caller to end their
    /// requests with a reason, and the next one closes them.
    pub(crate) fn close_unless(&self, valid: impl Fn(&str) -> bool) -> bool {
        let mut found = false;
        for (certificate, connections) in &*self.certificates() {
            let valid = valid(certificate);
            for state in connections.values() {
                if valid {
                    state.warned.store(false, Ordering::Relaxed);
                } else if state.warned.swap(true, Ordering::Relaxed) {
                    state.closed.cancel();
                } else {
                    found = true;
                }
            }
        }
        found
    }

    /// SHA-256 of the certificates that have an open connection.
    pub(crate) fn certificates_in_use(&self) -> BTreeSet<Arc<str>> {
        self.certificates().keys().cloned().collect()
    }

    fn certificates(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Connections>> {
        self.certificates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    /// Cancelled when the connection must end.
    pub(crate) fn closed(&self) -> CancellationToken {
        self.state.closed.clone()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut certificates = self.all.certificates();
        if let Some(connections) = certificates.get_mut(&self.certificate) {
            connections.remove(&self.number);
            if connections.is_empty() {
                certificates.remove(&self.certificate);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_connections_of_an_invalid_certificate_are_closed_and_only_after_a_warning() {
        let all = Arc::new(OpenConnections::default());
        let (good, bad) = (all.open(&"good".into()).0, all.open(&"bad".into()).0);
        let valid = |certificate: &str| certificate == "good";
        assert!(all.close_unless(valid));
        assert!(!bad.closed().is_cancelled());
        assert!(!all.close_unless(valid));
        assert!(bad.closed().is_cancelled() && !good.closed().is_cancelled());
        drop((good, bad));
        assert!(all.certificates().is_empty());
    }

    #[test]
    fn a_certificate_has_a_limited_number_of_connections_and_one_more_closes_the_oldest() {
        let all = Arc::new(OpenConnections::default());
        let certificate: Arc<str> = "one".into();
        let slots: Vec<(Slot, bool)> = (0..CONNECTIONS_EACH).map(|_| all.open(&certificate)).collect();
        assert!(slots.iter().all(|(slot, full)| !full && !slot.closed().is_cancelled()));
        assert!(!all.open(&"other".into()).1);
        let (_newest, full) = all.open(&certificate);
        let closed: Vec<bool> = slots.iter().map(|(slot, _)| slot.closed().is_cancelled()).collect();
        assert!(full && closed[0] && !closed[1..].contains(&true), "{closed:?}");
        assert_eq!(all.certificates()[&certificate].len(), CONNECTIONS_EACH);
        // Those that are gone make room.
        drop(slots);
        assert!(!all.open(&certificate).1);
    }
}
