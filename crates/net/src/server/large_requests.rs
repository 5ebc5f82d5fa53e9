//! Limits what confusion matrices and statistics of columns may take of the server's memory: their size, how many of them a
//! client may send at a time, and how many are read at a time.
//!
//! ```text
//! confusion matrix         1 kB + 10 bytes · classes²         a count has at most 10 bytes
//! statistics of columns    1 kB + 32 bytes · open columns     a count, a mean, a sum of squares, and their envelope
//! ```
//!
//! Both are at least as large as any other message may be, and at most [`LARGEST_MESSAGE`].

use crate::federation::coordinator::Terms;
use crate::server::refusal::Refusal;
use crate::wire::LARGEST_MESSAGE;
use fedtvd_core::round::ClientId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum size of all other messages: a chunk and its envelope, a label statistic.
pub(crate) const SMALL: usize = 64 << 10;
/// Maximum number of large requests of one client: one, and one that a lost connection left behind.
const EACH: usize = 2;
/// Maximum number of large requests that are read at a time.
const READ_AT_A_TIME: usize = 16;
/// Bytes of a message besides its counts.
const ENVELOPE: usize = 1 << 10;

/// Maximum size of a confusion matrix.
pub(crate) fn largest_matrix(terms: &Terms) -> usize {
    limited(terms.classes.saturating_mul(terms.classes), 10)
}

/// Maximum size of the statistics of a table's columns.
pub(crate) fn largest_statistics(terms: &Terms) -> usize {
    limited(terms.tables.as_ref().map_or(0, |tables| tables.open_columns()), 32)
}

fn limited(items: usize, bytes: usize) -> usize {
    items.saturating_mul(bytes).saturating_add(ENVELOPE).clamp(SMALL, LARGEST_MESSAGE)
}

/// The large requests under way.
#[derive(Debug)]
pub(crate) struct LargeRequests {
    clients: Mutex<BTreeMap<ClientId, usize>>,
    reading: Arc<Semaphore>,
}

/// One large request; dropping it makes room for another of the same client.
#[derive(Debug)]
pub(crate) struct LargeRequest {
    client: ClientId,
    all: Arc<LargeRequests>,
}

/// Permission to read a large request, in its extensions: its handler drops it when all of it has arrived.
#[derive(Clone, Debug)]
pub(crate) struct Reading(#[expect(dead_code, reason = "it is only held")] Arc<OwnedSemaphorePermit>);

impl Default for LargeRequests {
    fn default() -> Self {
        Self { clients: Mutex::default(), reading: Arc::new(Semaphore::new(READ_AT_A_TIME)) }
    }
}

impl LargeRequests {
    /// Begins a request, unless this client has too many already.
    pub(crate) fn begin(self: &Arc<Self>, client: ClientId) -> Result<LargeRequest, Refusal> {
        let mut clients = self.clients();
        let count = clients.entry(client).or_default();
        if *count == EACH {
            return Err(Refusal::TooManyRequests(client));
        }
        *count += 1;
        Ok(LargeRequest { client, all: Arc::clone(self) })
    }

    /// Waits until the request may be read.
    pub(crate) async fn reading(&self) -> Option<Reading> {
        let permit = Arc::clone(&self.reading).acquire_owned().await.ok()?;
        Some(Reading(Arc::new(permit)))
    }

    fn clients(&self) -> MutexGuard<'_, BTreeMap<ClientId, usize>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LargeRequest {
    fn drop(&mut self) {
        let mut clients = self.all.clients();
        if let Some(count) = clients.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                clients.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Waker};

    #[test]
    fn a_client_has_two_large_requests_at_a_time_and_the_end_of_one_makes_room() {
        let all = Arc::new(LargeRequests::default());
        let (one, _two) = (all.begin(7).unwrap(), all.begin(7).unwrap());
        assert_eq!(all.begin(7).unwrap_err(), Refusal::TooManyRequests(7));
        let other = all.begin(8).unwrap();
        drop((one, other));
        assert!(all.begin(7).is_ok());
        assert_eq!(all.clients().keys().copied().collect::<Vec<_>>(), [7]);
    }

    #[tokio::test]
    async fn some_large_requests_are_read_at_a_time_and_the_others_wait() {
        let all = LargeRequests::default();
        let mut reading = Vec::new();
        for _ in 0..READ_AT_A_TIME {
            reading.push(all.reading().await);
        }
        let ready = || pin!(all.reading()).as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
        assert!(!ready());
        reading.pop();
        assert!(ready());
    }

    #[test]
    fn a_message_is_as_large_as_its_counts_may_be_and_never_larger_than_a_megabyte() {
        assert_eq!(limited(100, 10), SMALL);
        assert_eq!(limited(200 * 200, 10), 1024 + 400_000);
        assert_eq!(limited(1000 * 1000, 10), LARGEST_MESSAGE);
    }
}
