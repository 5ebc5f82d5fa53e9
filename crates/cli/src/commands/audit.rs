//! `fedtvd audit RUN`: checks the audit log of a federation and shows what it records.

use crate::request::{Failure, Output, plural};
use anyhow::{Context as _, anyhow};
use clap::Args;
use fedtvd_net::federation::{AuditError, AuditSummary, check_audit};
use std::fmt::Write as _;
use std::path::PathBuf;

/// Check the audit log of a federation: that no line was changed, removed, inserted or moved.
#[derive(Args)]
pub(crate) struct Audit {
    /// Run directory of a federation
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Hash of the last line as noted at an earlier check: fail unless the log still contains it
    #[arg(long, value_name = "HASH")]
    head: Option<String>,
    #[command(flatten)]
    output: Output,
}

impl Audit {
    pub(crate) fn answer(&self) -> Result<(), Failure> {
        let path = self.run.join("federation/audit.jsonl");
        let summary = check_audit(&path, self.head.as_deref());
        let named = || path.display().to_string();
        let summary = match summary {
            Err(AuditError::File(error)) if error.kind() == std::io::ErrorKind::NotFound => {
                let run = self.run.display();
                return Err(Failure::Request(anyhow!("{run} has no audit log: it holds no federation")));
            }
            checked => checked.with_context(named).map_err(Failure::Work)?,
        };
        self.output.answer(&summary, || text(&summary))
    }
}

fn text(summary: &AuditSummary) -> String {
    let mut text = format!(
        "{} from {} to {}, no line was changed, removed, inserted or moved\n",
        plural(summary.lines as usize, "line"),
        summary.first.as_deref().unwrap_or("-"),
        summary.last.as_deref().unwrap_or("-"),
    );
    for (event, lines) in &summary.events {
        let _ = writeln!(text, "{lines:>8}  {event}");
    }
    for (code, refusals) in &summary.refused {
        let _ = writeln!(text, "{refusals:>8}  refused with code {code}");
    }
    for (client, updates) in &summary.accepted {
        let _ = writeln!(text, "{updates:>8}  updates accepted from client {client}");
    }
    if summary.lost > 0 {
        let _ = writeln!(
            text,
            "{:>8}  events could not be written, because the disk was full for example",
            summary.lost
        );
    }
    if summary.incomplete {
        text.push_str("the last line is incomplete: the server was killed, or is writing it\n");
    }
    let _ = writeln!(text, "head: {}   (keep it elsewhere, and check it later with --head)", summary.head);
    text
}
