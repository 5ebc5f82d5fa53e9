//! Rate limit of the log, so that peers cannot flood it: per minute, a few refusals with the same code from the same
//! source are logged, some more with the same code from all sources together, and then how many were suppressed.

use crate::federation::{Event, Log};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Events with one code from one source that are logged per window.
const PER_SOURCE: u32 = 20;
/// Events with one code from all sources together that are logged per window.
const PER_CODE: u32 = 200;
/// Length of a window.
const WINDOW: Duration = Duration::from_secs(60);
/// Maximum number of sources that are counted separately; beyond it all counts start again.
const SOURCES: usize = 4096;

/// What is logged of one event.
#[derive(Debug, PartialEq)]
enum Verdict {
    /// The event.
    Logged,
    /// The number of suppressed events before it, and the event.
    LoggedAfter(u32),
    /// Nothing.
    Suppressed,
}

/// When a window began, and the number of events in it.
type Window = (Instant, u32);

#[derive(Default)]
struct RateLimit {
    sources: HashMap<(&'static str, String), Window>,
    codes: HashMap<&'static str, Window>,
}

impl RateLimit {
    fn verdict(&mut self, code: &'static str, source: String, now: Instant) -> Verdict {
        let key = (code, source);
        if self.sources.len() >= SOURCES && !self.sources.contains_key(&key) {
            self.sources.clear();
        }
        // Events that are suppressed for their source do not use up what other sources share.
        match count(self.sources.entry(key).or_insert((now, 0)), PER_SOURCE, now) {
            Verdict::Suppressed => Verdict::Suppressed,
            verdict => match count(self.codes.entry(code).or_insert((now, 0)), PER_CODE, now) {
                Verdict::Logged => verdict,
                of_code => of_code,
            },
        }
    }
}

/// Counts one more event in a window of which `most` are logged.
fn count((began, count): &mut Window, most: u32, now: Instant) -> Verdict {
    if now.duration_since(*began) >= WINDOW {
        let suppressed = count.saturating_sub(most);
        (*began, *count) = (now, 1);
        return if suppressed > 0 { Verdict::LoggedAfter(suppressed) } else { Verdict::Logged };
    }
    *count = count.saturating_add(1);
    if *count <= most { Verdict::Logged } else { Verdict::Suppressed }
}

/// Code and source of an event that a peer can cause at will; none for what the federation itself does.
fn origin(event: &Event) -> Option<(&'static str, String)> {
    let host = |peer: &str| peer.rsplit_once(':').map_or(peer, |(host, _)| host).to_owned();
    match event {
        Event::Handshake { peer, code, .. } => Some((code, host(peer))),
        Event::Refused { client, peer, code, .. } => {
            Some((code, client.clone().unwrap_or_else(|| host(peer))))
        }
        Event::Again { client, .. } => Some(("again", client.to_string())),
        Event::Failed { client, .. } => Some(("failed", client.to_string())),
        Event::Full { .. } => Some(("full", String::new())),
        _ => None,
    }
}

/// A log that passes on at most a fixed number of refusals per minute.
pub fn rate_limited(log: Log) -> Log {
    let limit = Mutex::new(RateLimit::default());
    Arc::new(move |event: &Event| {
        let Some((code, source)) = origin(event) else { return log(event) };
        let verdict =
            limit.lock().unwrap_or_else(PoisonError::into_inner).verdict(code, source, Instant::now());
        if let Verdict::LoggedAfter(suppressed) = verdict {
            log(&Event::Note { note: format!("{suppressed} events like the next one were not logged") });
        }
        if verdict != Verdict::Suppressed {
            log(event);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_of_many_equal_events_are_logged_and_then_how_many_were_not() {
        let (mut limit, start) = (RateLimit::default(), Instant::now());
        for _ in 0..PER_SOURCE {
            assert_eq!(limit.verdict("late", "a".to_owned(), start), Verdict::Logged);
        }
        for _ in 0..500 {
            assert_eq!(limit.verdict("late", "a".to_owned(), start + WINDOW / 2), Verdict::Suppressed);
        }
        assert_eq!(limit.verdict("late", "b".to_owned(), start + WINDOW / 2), Verdict::Logged);
        assert_eq!(limit.verdict("late", "a".to_owned(), start + WINDOW), Verdict::LoggedAfter(500));
        assert_eq!(limit.verdict("late", "a".to_owned(), start + WINDOW), Verdict::Logged);
    }

    #[test]
    fn many_sources_fill_neither_log_nor_memory() {
        let (mut limit, start) = (RateLimit::default(), Instant::now());
        let logged = (0..3 * SOURCES)
            .filter(|stranger| limit.verdict("tls-failed", stranger.to_string(), start) == Verdict::Logged)
            .count();
        assert_eq!(logged, PER_CODE as usize);
        assert!(limit.sources.len() <= SOURCES);
        for stranger in 0..3 * SOURCES {
            let hour = Duration::from_secs(3600) * (stranger / 100) as u32;
            limit.verdict("tls-failed", stranger.to_string(), start + hour);
        }
        assert!(limit.sources.len() <= SOURCES);
    }

    #[test]
    fn what_the_federation_itself_does_is_always_logged() {
        let logged = Arc::new(Mutex::new(0));
        let count = Arc::clone(&logged);
        let log = rate_limited(Arc::new(move |_: &Event| *count.lock().unwrap() += 1));
        for round in 0..100 {
            log(&Event::Alarm { round, alarm: String::new() });
            let peer = format!("127.0.0.1:{}", 1000 + round);
            log(&Event::Handshake { peer, code: "tls-failed", why: String::new() });
        }
        assert_eq!(*logged.lock().unwrap(), 100 + PER_SOURCE);
    }
}
