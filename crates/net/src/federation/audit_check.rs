//! Checks the chain of an audit log, and says what it records.

use crate::federation::audit::{FIRST, HASH};
use fedtvd_run::directory::sha256;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;
use thiserror::Error;

/// What an unbroken audit log records.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AuditSummary {
    /// Number of lines.
    pub lines: u64,
    /// Time of the first line.
    pub first: Option<String>,
    /// Time of the last line.
    pub last: Option<String>,
    /// Number of lines of each kind of event.
    pub events: BTreeMap<String, u64>,
    /// Number of refusals of each code.
    pub refused: BTreeMap<String, u64>,
    /// Number of accepted updates of each client.
    pub accepted: BTreeMap<u64, u64>,
    /// Events that could not be written, because the disk was full for example.
    pub lost: u64,
    /// Whether the last line is incomplete: the server was killed, or is writing it.
    pub incomplete: bool,
    /// The hash of the last line: kept elsewhere, it shows later that nothing before it was changed.
    pub head: String,
}

/// Why an audit log cannot be trusted.
#[derive(Debug, Error)]
pub enum AuditError {
    /// The file.
    #[error(transparent)]
    File(#[from] io::Error),
    /// A line was changed.
    #[error("line {0} was changed: its text does not have the hash that it states")]
    Changed(u64),
    /// Lines were removed, inserted or moved.
    #[error("line {line} does not follow line {}: lines were removed, inserted or moved ({why})", .line - 1)]
    Order {
        /// The first line that does not fit.
        line: u64,
        /// What does not fit.
        why: String,
    },
    /// A hash that was kept elsewhere is not in the log.
    #[error(
        "no line has the hash {0}: the log was rewritten or cut off after that hash was noted, or it is another run's"
    )]
    NoHead(String),
}

/// Checks the log in this file; with `head`, also that one of its lines has this hash.
pub fn check_audit(path: &Path, head: Option<&str>) -> Result<AuditSummary, AuditError> {
    let mut reader = BufReader::new(std::fs::File::open(path)?);
    let mut summary = AuditSummary { head: FIRST.to_owned(), ..AuditSummary::default() };
    let (mut bytes, mut found) = (Vec::new(), head.is_none());
    loop {
        bytes.clear();
        if reader.read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        if bytes.last() != Some(&b'\n') {
            summary.incomplete = true;
            break;
        }
        let number = summary.lines + 1;
        let line =
            std::str::from_utf8(&bytes).map_err(|_| AuditError::Changed(number))?.trim_end_matches('\n');
        summary.add(number, line)?;
        found |= head == Some(&summary.head);
    }
    match head {
        Some(head) if !found => Err(AuditError::NoHead(head.to_owned())),
        _ => Ok(summary),
    }
}

impl AuditSummary {
    /// Checks one line and counts what it records.
    fn add(&mut self, number: u64, line: &str) -> Result<(), AuditError> {
        let parts =
            line.rsplit_once(HASH).and_then(|(before, hash)| Some((before, hash.strip_suffix("\"}")?)));
        let (before, hash) = parts.ok_or(AuditError::Changed(number))?;
        let value: Value = serde_json::from_str(line).map_err(|_| AuditError::Changed(number))?;
        if sha256(before.as_bytes()) != hash {
            return Err(AuditError::Changed(number));
        }
        let stated = value["number"].as_u64().unwrap_or(0);
        if stated != number {
            return Err(AuditError::Order { line: number, why: format!("it was line {stated}") });
        }
        if value["previous"].as_str() != Some(&self.head) {
            return Err(AuditError::Order { line: number, why: "it follows another line".to_owned() });
        }
        hash.clone_into(&mut self.head);
        self.lines = number;
        let time = value["time"].as_str().map(str::to_owned);
        self.first = self.first.take().or_else(|| time.clone());
        self.last = time;
        self.lost += value["lost"].as_u64().unwrap_or(0);
        let event = value["event"].as_str().unwrap_or_default();
        *self.events.entry(event.to_owned()).or_default() += 1;
        if let Some(code) = value["code"].as_str() {
            // A line about suppressed refusals stands for many.
            *self.refused.entry(code.to_owned()).or_default() += value["events"].as_u64().unwrap_or(1);
        }
        if let ("accepted", Some(client)) = (event, value["client"].as_u64()) {
            *self.accepted.entry(client).or_default() += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::federation::Event;
    use crate::federation::audit::Audit;
    use std::fs;
    use std::path::PathBuf;

    fn note(note: &str) -> Event {
        Event::Note { note: note.to_owned() }
    }

    /// A log of five notes.
    fn written() -> (tempfile::TempDir, PathBuf, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let audit = Audit::new(folder.path()).unwrap();
        // Text that looks like the end of a line must not be taken for it.
        for text in ["one", "two {\"hash\":\"x\"}", "three", "four,\"hash\":\"0\"}", "five }"] {
            audit.event(&note(text));
        }
        let path = folder.path().join("audit.jsonl");
        let lines = fs::read_to_string(&path).unwrap().lines().map(|line| format!("{line}\n")).collect();
        (folder, path, lines)
    }

    #[test]
    fn an_untouched_log_is_unbroken_over_restarts_and_its_old_heads_stay_in_it() {
        let (folder, path, _) = written();
        let before = check_audit(&path, None).unwrap();
        assert_eq!((before.lines, before.events["note"], before.incomplete), (5, 5, false));
        let audit = Audit::new(folder.path()).unwrap();
        audit.event(&Event::Waiting { round: 1, clients: vec![1], names: vec!["b".to_owned()] });
        audit.model(1, "abc", None);
        let after = check_audit(&path, Some(&before.head)).unwrap();
        assert_eq!((after.lines, after.events["model"]), (6, 1));
        assert!(after.head != before.head);
        let error = check_audit(&path, Some("abc")).unwrap_err().to_string();
        assert!(error.starts_with("no line has the hash abc"), "{error}");
    }

    #[test]
    fn a_changed_removed_inserted_or_moved_line_is_named() {
        let (_folder, path, lines) = written();
        let error = |lines: &[&str]| {
            fs::write(&path, lines.concat()).unwrap();
            check_audit(&path, None).unwrap_err().to_string()
        };
        let [a, b, c, d, e] = [0, 1, 2, 3, 4].map(|line| lines[line].as_str());
        let changed = c.replace("three", "eerht");
        assert!(error(&[a, b, &changed, d, e]).starts_with("line 3 was changed"));
        assert_eq!(
            error(&[a, b, d, e]),
            "line 3 does not follow line 2: lines were removed, inserted or moved (it was line 4)"
        );
        assert!(error(&[b, c, d, e]).starts_with("line 1 does not follow line 0"));
        assert!(error(&[a, b, b, c, d, e]).starts_with("line 3 does not follow line 2"));
        assert!(error(&[a, c, b, d, e]).starts_with("line 2 does not follow line 1"));
        // A line with a right hash of its own, in place of another.
        let (before, _) = c.rsplit_once(HASH).unwrap();
        let forged = before.replace("three", "forged");
        let forged = format!("{forged}{HASH}{}\"}}\n", sha256(forged.as_bytes()));
        let said = error(&[a, b, &forged, d, e]);
        assert_eq!(
            said,
            "line 4 does not follow line 3: lines were removed, inserted or moved (it follows another line)"
        );
        // The end can be cut off: only a hash that is kept elsewhere shows it.
        let head =
            check_audit(&path, None).err().map(|_| e.rsplit_once(HASH).unwrap().1[..64].to_owned()).unwrap();
        fs::write(&path, [a, b, c].concat()).unwrap();
        assert_eq!(check_audit(&path, None).unwrap().lines, 3);
        assert!(matches!(check_audit(&path, Some(&head)), Err(AuditError::NoHead(_))));
    }

    #[test]
    fn a_line_that_a_kill_cut_off_is_removed_with_a_record_and_the_chain_continues() {
        let (folder, path, lines) = written();
        for cut in [1, 40, lines[4].len() - 1] {
            fs::write(&path, [&lines[..4].concat(), &lines[4][..cut]].concat()).unwrap();
            assert!(check_audit(&path, None).unwrap().incomplete);
            Audit::new(folder.path()).unwrap().event(&note("after"));
            let summary = check_audit(&path, None).unwrap();
            assert_eq!((summary.lines, summary.events["repaired"], summary.incomplete), (6, 1, false));
            let text = fs::read_to_string(&path).unwrap();
            assert!(text.contains(&format!("\"removed_bytes\":{cut},")), "{text}");
        }
    }

    #[test]
    fn of_a_long_log_only_its_end_is_read_and_lines_longer_than_a_block_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let long = "x".repeat(200_000);
        for text in ["short", &long, "short", &long] {
            Audit::new(folder.path()).unwrap().event(&note(text));
        }
        assert_eq!(check_audit(&path, None).unwrap().lines, 4);
        // What stands before the last line is not read: it may be of any size.
        let text = fs::read_to_string(&path).unwrap();
        let last = text.lines().last().unwrap();
        fs::write(&path, format!("{}\n{last}\n", "y".repeat(1_000_000))).unwrap();
        Audit::new(folder.path()).unwrap().event(&note("after"));
        let after = fs::read_to_string(&path).unwrap();
        assert!(after.lines().last().unwrap().starts_with("{\"number\":5,"), "{after}");
    }

    #[test]
    fn a_log_that_cannot_be_written_is_reported_once_and_so_is_its_repair() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let audit = Audit::new(folder.path()).unwrap();
        // A folder in its place can be opened by nobody, not even by root.
        fs::create_dir(&path).unwrap();
        assert!(audit.open().unwrap_err().to_string().contains("audit.jsonl"));
        assert!(Audit::new(folder.path()).is_err());
        assert!(audit.event(&note("one")).unwrap().contains("cannot be written"));
        assert_eq!((audit.event(&note("two")), audit.missing_events()), (None, 2));
        assert!(audit.problem().is_some());
        fs::remove_dir(&path).unwrap();
        let waiting = Event::Waiting { round: 1, clients: vec![1], names: vec!["b".to_owned()] };
        assert!(audit.event(&waiting).unwrap().ends_with("can be written again; 2 events are missing"));
        assert_eq!((audit.event(&waiting), audit.problem()), (None, None));
        let summary = check_audit(&path, None).unwrap();
        assert_eq!((summary.lines, summary.lost), (1, 2));
    }
}
