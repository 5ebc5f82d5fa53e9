//! Rate limit of the logs, so that peers cannot flood them: per minute, a few refusals with the same code from the same
//! source have lines of their own, some more with the same code from all sources together. One more line at the end of the
//! minute, or when the server stops, counts the others and names their sources.

use crate::federation::{Event, Log};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Events with one code from one source that are logged per window.
const PER_SOURCE: u32 = 20;
/// Events with one code from all sources together that are logged per window.
const PER_CODE: u32 = 200;
/// Length of a window.
const WINDOW: Duration = Duration::from_secs(60);
/// Maximum number of sources of suppressed events that are named.
const NAMED: usize = 20;
/// How often windows are checked for their end.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The events with one code.
struct Window {
    began: Instant,
    logged: u32,
    /// Number of logged events of each source: at most `PER_CODE` sources, since nothing is logged beyond.
    sources: BTreeMap<String, u32>,
    suppressed: u64,
    suppressed_sources: BTreeMap<String, u64>,
}

#[derive(Default)]
struct RateLimit(BTreeMap<&'static str, Window>);

impl RateLimit {
    /// Whether an event is logged; the windows that have ended were removed.
    fn logs(&mut self, code: &'static str, source: String, now: Instant) -> bool {
        let window = self.0.entry(code).or_insert_with(|| Window::new(now));
        // Events that are suppressed for their source do not use up what other sources share.
        let of_source = window.sources.get(&source).copied().unwrap_or(0);
        if of_source < PER_SOURCE && window.logged < PER_CODE {
            window.logged += 1;
            window.sources.insert(source, of_source + 1);
            return true;
        }
        window.suppressed += 1;
        let named = &mut window.suppressed_sources;
        if named.len() < NAMED || named.contains_key(&source) {
            *named.entry(source).or_default() += 1;
        }
        false
    }

    /// Removes the windows that have ended, or all of them; what was suppressed in them.
    fn end(&mut self, ended: impl Fn(&Window) -> bool) -> Vec<Event> {
        let all = std::mem::take(&mut self.0).into_iter();
        let (over, open): (BTreeMap<_, _>, _) = all.partition(|(_, window)| ended(window));
        self.0 = open;
        let suppressed = over.into_iter().filter(|(_, window)| window.suppressed > 0);
        suppressed
            .map(|(code, window)| Event::Suppressed {
                code,
                events: window.suppressed,
                sources: window.suppressed_sources,
            })
            .collect()
    }
}

impl Window {
    fn new(began: Instant) -> Self {
        Self {
            began,
            logged: 0,
            sources: BTreeMap::new(),
            suppressed: 0,
            suppressed_sources: BTreeMap::new(),
        }
    }
}

/// Code and source of an event that a peer can cause at will; none for what the federation itself does.
fn origin(event: &Event) -> Option<(&'static str, String)> {
    let host = |peer: &str| peer.rsplit_once(':').map_or(peer, |(host, _)| host).to_owned();
    match event {
        Event::Handshake { peer, code, .. } => Some((code, host(peer))),
        Event::Refused { client, peer, code, .. } => {
            Some((code, client.clone().unwrap_or_else(|| host(peer))))
        }
        Event::Again { client, .. } => Some(("again", format!("client {client}"))),
        Event::Failed { client, .. } => Some(("failed", format!("client {client}"))),
        Event::Full { .. } => Some(("full", "the system".to_owned())),
        _ => None,
    }
}

/// A log that passes on a limited number of refusals per minute, and then how many there were.
#[derive(Clone)]
pub struct RateLimited(Arc<Inner>);

struct Inner {
    log: Log,
    limit: Mutex<RateLimit>,
}

impl RateLimited {
    /// Limits what is passed on to this log.
    pub fn new(log: Log) -> Self {
        let inner = Arc::new(Inner { log, limit: Mutex::default() });
        let weak = Arc::downgrade(&inner);
        // Ends with the log.
        std::thread::spawn(move || {
            while let Some(inner) = weak.upgrade() {
                inner.end(Instant::now());
                drop(inner);
                std::thread::sleep(CHECK_INTERVAL);
            }
        });
        Self(inner)
    }

    /// Logs an event, or counts it.
    pub fn event(&self, event: &Event) {
        self.0.event(event, Instant::now());
    }

    /// Logs what was suppressed so far: the server stops.
    pub fn flush(&self) {
        let suppressed = self.0.limit().end(|_| true);
        suppressed.iter().for_each(|event| (self.0.log)(event));
    }
}

impl Inner {
    fn event(&self, event: &Event, now: Instant) {
        let Some((code, source)) = origin(event) else { return (self.log)(event) };
        self.end(now);
        let logged = self.limit().logs(code, source, now);
        if logged {
            (self.log)(event);
        }
    }

    /// Logs what was suppressed in windows that have ended.
    fn end(&self, now: Instant) {
        let ended = |window: &Window| now.saturating_duration_since(window.began) >= WINDOW;
        let suppressed = self.limit().end(ended);
        suppressed.iter().for_each(|event| (self.log)(event));
    }

    fn limit(&self) -> MutexGuard<'_, RateLimit> {
        self.limit.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A limited log and the events that it passed on.
    fn limited() -> (RateLimited, Arc<Mutex<Vec<Event>>>) {
        let logged = Arc::<Mutex<Vec<Event>>>::default();
        let kept = Arc::clone(&logged);
        (RateLimited::new(Arc::new(move |event: &Event| kept.lock().unwrap().push(event.clone()))), logged)
    }

    fn refused(host: &str) -> Event {
        Event::Handshake { peer: format!("{host}:1000"), code: "tls-failed", why: String::new() }
    }

    #[test]
    fn a_few_of_many_equal_events_are_logged_and_when_the_minute_ends_how_many_were_not_and_of_whom() {
        let (log, logged) = limited();
        let start = Instant::now();
        for _ in 0..PER_SOURCE + 40 {
            log.0.event(&refused("a"), start);
        }
        log.0.event(&refused("b"), start + WINDOW / 2);
        assert_eq!(logged.lock().unwrap().len(), PER_SOURCE as usize + 1);
        log.0.end(start + WINDOW);
        let sources = BTreeMap::from([("a".to_owned(), 40)]);
        let line = Event::Suppressed { code: "tls-failed", events: 40, sources };
        assert_eq!(logged.lock().unwrap().last(), Some(&line));
        assert_eq!(line.to_string(), "40 more events [tls-failed] within a minute, 40 of a");
        log.0.event(&refused("a"), start + WINDOW);
        assert_eq!(logged.lock().unwrap().last(), Some(&refused("a")));
    }

    #[test]
    fn what_was_suppressed_is_logged_once_when_the_server_stops() {
        let (log, logged) = limited();
        for _ in 0..60 {
            log.event(&refused("a"));
        }
        log.flush();
        log.flush();
        let logged = logged.lock().unwrap();
        assert_eq!(logged.len(), PER_SOURCE as usize + 1);
        assert!(matches!(logged.last(), Some(Event::Suppressed { events: 40, .. })));
    }

    #[test]
    fn many_sources_fill_neither_log_nor_memory_and_all_of_their_events_are_counted() {
        let (log, logged) = limited();
        let start = Instant::now();
        for stranger in 0..10_000 {
            log.0.event(&refused(&stranger.to_string()), start);
        }
        let sizes = |window: &Window| (window.sources.len(), window.suppressed_sources.len());
        assert_eq!(log.0.limit().0.values().map(sizes).collect::<Vec<_>>(), [(PER_CODE as usize, NAMED)]);
        log.flush();
        let logged = logged.lock().unwrap();
        assert_eq!(logged.len(), PER_CODE as usize + 1);
        assert!(logged.last().unwrap().to_string().starts_with("9800 more events [tls-failed]"));
        assert!(logged.last().unwrap().to_string().ends_with(", 9780 of others"));
    }

    #[test]
    fn what_the_federation_itself_does_is_always_logged() {
        let (log, logged) = limited();
        for round in 0..100 {
            log.event(&Event::Alarm { round, alarm: String::new() });
            log.event(&refused("127.0.0.1"));
        }
        assert_eq!(logged.lock().unwrap().len(), 100 + PER_SOURCE as usize);
    }
}
