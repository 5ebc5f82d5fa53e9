//! A limit to handshakes, so that strangers who connect and say nothing delay only connections from their own address.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum number of concurrent handshakes.
const HANDSHAKES: usize = 1024;
/// Maximum number of concurrent handshakes of one address; more of them wait.
pub(crate) const HANDSHAKES_EACH: usize = 64;

/// The handshakes that run or wait, by address.
#[derive(Debug)]
pub(crate) struct HandshakeLimit {
    running: Arc<Semaphore>,
    pending_each: usize,
    sources: Mutex<BTreeMap<IpAddr, Source>>,
}

/// The handshakes of one address.
#[derive(Debug)]
struct Source {
    pending: usize,
    running: Arc<Semaphore>,
}

/// A connection that waits for its handshake or is in it; dropping it makes room for another.
#[derive(Debug)]
pub(crate) struct Pending {
    source: IpAddr,
    running: Arc<Semaphore>,
    limit: Arc<HandshakeLimit>,
}

impl HandshakeLimit {
    /// A limit where each address may have this many connections that wait or shake hands.
    pub(crate) fn new(pending_each: usize) -> Arc<Self> {
        Arc::new(Self {
            running: Arc::new(Semaphore::new(HANDSHAKES)),
            pending_each,
            sources: Mutex::default(),
        })
    }

    /// A place for a connection, if its address has any left.
    pub(crate) fn enter(self: &Arc<Self>, address: IpAddr) -> Option<Pending> {
        let source = network(address);
        let mut sources = self.sources();
        let new = || Source { pending: 0, running: Arc::new(Semaphore::new(HANDSHAKES_EACH)) };
        let known = sources.entry(source).or_insert_with(new);
        if known.pending >= self.pending_each {
            return None;
        }
        known.pending += 1;
        let running = Arc::clone(&known.running);
        drop(sources);
        Some(Pending { source, running, limit: Arc::clone(self) })
    }

    fn sources(&self) -> MutexGuard<'_, BTreeMap<IpAddr, Source>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pending {
    /// Waits until the handshake may begin: first for others of the same address.
    pub(crate) async fn turn(&self) -> Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)> {
        let own = Arc::clone(&self.running).acquire_owned().await.ok()?;
        let all = Arc::clone(&self.limit.running).acquire_owned().await.ok()?;
        Some((own, all))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let mut sources = self.limit.sources();
        if let Some(source) = sources.get_mut(&self.source) {
            source.pending -= 1;
            if source.pending == 0 {
                sources.remove(&self.source);
            }
        }
    }
}

/// What one owner of an address can choose freely counts as one address: IPv6 networks of 64 bits.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((u128::from(address) >> 64 << 64).into()),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_limited_number_of_places_and_a_network_of_64_bits_is_one_address() {
        let limit = HandshakeLimit::new(2);
        let enter = |address: &str| limit.enter(address.parse().unwrap());
        let first = [enter("2001:db8::1"), enter("2001:db8::2:1")];
        assert!(first.iter().all(Option::is_some) && enter("2001:db8::3").is_none());
        assert!(enter("2001:db8:0:1::1").is_some());
        let second = [enter("192.0.2.1"), enter("::ffff:192.0.2.1")];
        assert!(second.iter().all(Option::is_some) && enter("192.0.2.1").is_none());
        assert!(enter("192.0.2.2").is_some());
        drop((first, second));
        assert!(limit.sources().is_empty() && enter("192.0.2.1").is_some());
    }

    #[tokio::test]
    async fn one_address_leaves_handshakes_to_the_others() {
        let limit = HandshakeLimit::new(HANDSHAKES);
        let enter = |address: &str| limit.enter(address.parse().unwrap()).unwrap();
        let silent: Vec<Pending> = (0..HANDSHAKES).map(|_| enter("192.0.2.1")).collect();
        let mut turns = Vec::new();
        for pending in &silent[..HANDSHAKES_EACH] {
            turns.push(pending.turn().await.unwrap());
        }
        let short = std::time::Duration::from_millis(20);
        assert!(tokio::time::timeout(short, silent[HANDSHAKES_EACH].turn()).await.is_err());
        assert!(tokio::time::timeout(short, enter("192.0.2.2").turn()).await.is_ok());
        turns.pop();
        assert!(tokio::time::timeout(short, silent[HANDSHAKES_EACH].turn()).await.is_ok());
    }
}
