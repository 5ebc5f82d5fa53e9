//! A log that cannot be filled from outside: of refusals of one kind from one place, a few per minute are told, and then
//! how many more there were.

use crate::event::{Event, Log};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many of a kind are told in one window.
const TOLD: u32 = 20;
/// How long a window is.
const WINDOW: Duration = Duration::from_secs(60);
/// Most kinds that are told apart; beyond that all are forgotten and begin anew.
const KINDS: usize = 4096;

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

#[derive(Default)]
struct Muffler(HashMap<String, (Instant, u32)>);

impl Muffler {
    fn hear(&mut self, kind: String, now: Instant) -> Told {
        if self.0.len() >= KINDS && !self.0.contains_key(&kind) {
            self.0.clear();
        }
        let (began, count) = self.0.entry(kind).or_insert((now, 0));
        if now.duration_since(*began) >= WINDOW {
            let silent = count.saturating_sub(TOLD);
            (*began, *count) = (now, 1);
            return if silent > 0 { Told::After(silent) } else { Told::Whole };
        }
        *count = count.saturating_add(1);
        if *count <= TOLD { Told::Whole } else { Told::Nothing }
    }
}

/// What makes two events alike: what a stranger can repeat at will; none for what the federation itself does.
fn kind(event: &Event) -> Option<String> {
    let host = |peer: &str| peer.rsplit_once(':').map_or(peer, |(host, _)| host).to_owned();
    match event {
        Event::Handshake { peer, code, .. } => Some(format!("{code} {}", host(peer))),
        Event::Refused { client, peer, code, .. } => {
            Some(format!("{code} {}", client.clone().unwrap_or_else(|| host(peer))))
        }
        Event::Again { client, .. } => Some(format!("again {client}")),
        Event::Failed { client, .. } => Some(format!("failed {client}")),
        _ => None,
    }
}

/// A log that passes on what is worth telling.
pub fn muffled(log: Log) -> Log {
    let muffler = Mutex::new(Muffler::default());
    Arc::new(move |event: &Event| {
        let Some(kind) = kind(event) else { return log(event) };
        let told = muffler.lock().unwrap_or_else(PoisonError::into_inner).hear(kind.clone(), Instant::now());
        if let Told::After(silent) = told {
            log(&Event::Note { note: format!("{silent} more like the next one were not told ({kind})") });
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
            assert_eq!(muffler.hear("late a".to_owned(), start), Told::Whole);
        }
        for _ in 0..500 {
            assert_eq!(muffler.hear("late a".to_owned(), start + WINDOW / 2), Told::Nothing);
        }
        assert_eq!(muffler.hear("late b".to_owned(), start + WINDOW / 2), Told::Whole);
        assert_eq!(muffler.hear("late a".to_owned(), start + WINDOW), Told::After(500));
        assert_eq!(muffler.hear("late a".to_owned(), start + WINDOW), Told::Whole);
    }

    #[test]
    fn many_strangers_do_not_fill_the_memory_either() {
        let (mut muffler, start) = (Muffler::default(), Instant::now());
        for stranger in 0..3 * KINDS {
            muffler.hear(stranger.to_string(), start);
        }
        assert!(muffler.0.len() <= KINDS);
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
