//! A log that cannot be filled from outside: of refusals of one kind from one place, a few per minute are told, of one kind
//! from anywhere some more, and then how many there were.

use crate::event::{Event, Log};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many of a kind from one place are told in one window.
const TOLD: u32 = 20;
/// How many of a kind are told from all places together.
const TOLD_OF_ALL: u32 = 200;
/// How long a window is.
const WINDOW: Duration = Duration::from_secs(60);
/// Most places that are told apart; beyond that all are forgotten and begin anew.
const PLACES: usize = 4096;

/// What is told of one event.
#[derive(Debug, PartialEq)]
enum Told {
    /// All of it.
    Whole,
    /// All of it, and that so many before it were not told.
    After(u32),
    /// Nothing.
    Nothing,
}

/// When a window began, and what came in it.
type Window = (Instant, u32);

#[derive(Default)]
struct Muffler {
    places: HashMap<(&'static str, String), Window>,
    all: HashMap<&'static str, Window>,
}

impl Muffler {
    fn hear(&mut self, code: &'static str, place: String, now: Instant) -> Told {
        let key = (code, place);
        if self.places.len() >= PLACES && !self.places.contains_key(&key) {
            self.places.clear();
        }
        // What its own place keeps silent does not silence others.
        match count(self.places.entry(key).or_insert((now, 0)), TOLD, now) {
            Told::Nothing => Told::Nothing,
            told => match count(self.all.entry(code).or_insert((now, 0)), TOLD_OF_ALL, now) {
                Told::Whole => told,
                of_all => of_all,
            },
        }
    }
}

/// Counts one more in a window of which so many are told.
fn count((began, count): &mut Window, told: u32, now: Instant) -> Told {
    if now.duration_since(*began) >= WINDOW {
        let silent = count.saturating_sub(told);
        (*began, *count) = (now, 1);
        return if silent > 0 { Told::After(silent) } else { Told::Whole };
    }
    *count = count.saturating_add(1);
    if *count <= told { Told::Whole } else { Told::Nothing }
}

/// What makes two events alike, code and place: what a stranger can repeat at will; none for what the federation itself
/// does.
fn kind(event: &Event) -> Option<(&'static str, String)> {
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

/// A log that passes on what is worth telling.
pub fn muffled(log: Log) -> Log {
    let muffler = Mutex::new(Muffler::default());
    Arc::new(move |event: &Event| {
        let Some((code, place)) = kind(event) else { return log(event) };
        let told = muffler.lock().unwrap_or_else(PoisonError::into_inner).hear(code, place, Instant::now());
        if let Told::After(silent) = told {
            log(&Event::Note { note: format!("{silent} more like the next one were not told") });
        }
        if told != Told::Nothing {
            log(event);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_alike_a_few_are_told_and_then_how_many_there_were() {
        let (mut muffler, start) = (Muffler::default(), Instant::now());
        for _ in 0..TOLD {
            assert_eq!(muffler.hear("late", "a".to_owned(), start), Told::Whole);
        }
        for _ in 0..500 {
            assert_eq!(muffler.hear("late", "a".to_owned(), start + WINDOW / 2), Told::Nothing);
        }
        assert_eq!(muffler.hear("late", "b".to_owned(), start + WINDOW / 2), Told::Whole);
        assert_eq!(muffler.hear("late", "a".to_owned(), start + WINDOW), Told::After(500));
        assert_eq!(muffler.hear("late", "a".to_owned(), start + WINDOW), Told::Whole);
    }

    #[test]
    fn many_strangers_fill_neither_log_nor_memory() {
        let (mut muffler, start) = (Muffler::default(), Instant::now());
        let told = (0..3 * PLACES)
            .filter(|stranger| muffler.hear("tls-failed", stranger.to_string(), start) == Told::Whole)
            .count();
        assert_eq!(told, TOLD_OF_ALL as usize);
        assert!(muffler.places.len() <= PLACES);
        for stranger in 0..3 * PLACES {
            let hour = Duration::from_secs(3600) * (stranger / 100) as u32;
            muffler.hear("tls-failed", stranger.to_string(), start + hour);
        }
        assert!(muffler.places.len() <= PLACES);
    }

    #[test]
    fn what_the_federation_itself_does_is_always_told() {
        let heard = Arc::new(Mutex::new(0));
        let count = Arc::clone(&heard);
        let log = muffled(Arc::new(move |_: &Event| *count.lock().unwrap() += 1));
        for round in 0..100 {
            log(&Event::Accepted { client: 1, round, bytes: 1 });
            let peer = format!("127.0.0.1:{}", 1000 + round);
            log(&Event::Handshake { peer, code: "tls-failed", why: String::new() });
        }
        assert_eq!(*heard.lock().unwrap(), 100 + TOLD);
    }
}
