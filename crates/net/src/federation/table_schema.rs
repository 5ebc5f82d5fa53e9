//! The schema of the clients' tables, and its centres and scales, which all clients of the roster compute together
//! before the first round.

use crate::federation::admission::Member;
use crate::federation::{Coordinator, Event};
use crate::server::refusal::{Refusal, plain};
use crate::wire;
use fedtvd_core::round::{ClientId, Mode, enrolment};
use fedtvd_data::table::{Moments, Schema, Standard, standards};
use fedtvd_run::directory::{DirectoryError, RunDirectory};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The schema of a federation.
#[derive(Debug)]
pub(crate) struct TableSchema {
    /// As it was given or made.
    source: Schema,
    directory: RunDirectory,
    progress: Mutex<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    /// The clients' statistics of their open columns.
    received: BTreeMap<ClientId, Vec<Moments>>,
    /// The schema with all centres and scales, as TOML. It is on disk.
    complete: Option<String>,
    /// Why the statistics of all clients give no centres and scales, as it was logged last.
    problem: Option<String>,
}

impl TableSchema {
    /// The schema of a run, complete if it already is in the run directory.
    pub(crate) fn of(
        source: Option<Schema>,
        directory: &RunDirectory,
    ) -> Result<Option<Self>, DirectoryError> {
        let Some(source) = source else { return Ok(None) };
        let progress = Mutex::new(Progress { complete: directory.schema()?, ..Progress::default() });
        Ok(Some(Self { source, directory: directory.clone(), progress }))
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The centres and scales of the open columns, once they are fixed.
    pub(crate) fn standards(&self) -> Option<Vec<Standard>> {
        let complete: Schema = self.progress().complete.as_ref()?.parse().ok()?;
        self.source.standards_in(&complete)
    }

    /// Why the statistics of all clients give no centres and scales, as long as there are none.
    pub(crate) fn problem(&self) -> Option<String> {
        let progress = self.progress();
        if progress.complete.is_some() { None } else { progress.problem.clone() }
    }

    /// Number of columns whose centres and scales the clients compute together.
    pub(crate) fn open_columns(&self) -> usize {
        self.source.open().count()
    }

    /// The schema as TOML, complete if it is.
    pub(crate) fn text(&self) -> String {
        self.progress().complete.clone().unwrap_or_else(|| self.source.text())
    }
}

impl Coordinator {
    /// Clients of the roster whose statistics are missing, and still may arrive.
    fn statistics_to_come(&self, progress: &Progress) -> Vec<ClientId> {
        let inner = self.inner();
        let waits =
            |client: &&ClientId| !progress.received.contains_key(client) && inner.can_answer(**client);
        self.terms.roster.iter().flatten().filter(waits).copied().collect()
    }

    /// Clients whose statistics the schema still waits for; `None` if it is complete.
    ///
    /// Locks the coordinator while it holds the lock of the schema: nobody may hold the coordinator's.
    pub(crate) fn missing_statistics(&self) -> Option<Vec<ClientId>> {
        let tables = self.terms.tables.as_ref()?;
        let progress = tables.progress();
        (progress.complete.is_none() && tables.open_columns() > 0).then(|| self.statistics_to_come(&progress))
    }

    /// Records a client's statistics of its columns; returns the complete schema once all have arrived.
    pub(crate) fn receive_columns(
        &self,
        member: &Member,
        statistics: &wire::ColumnStatistics,
    ) -> Result<Option<String>, Refusal> {
        self.note_contact(member, Some(&statistics.run))?;
        let Some(tables) = &self.terms.tables else {
            return Err(Refusal::Columns("the data of this federation are not tables".to_owned()));
        };
        let mut progress = tables.progress();
        if let Some(complete) = &progress.complete {
            return Ok(Some(complete.clone()));
        }
        let moments = checked(member, statistics, &tables.source, self.terms.run.mode)?;
        let client = member.id;
        if progress.received.get(&client).is_some_and(|known| *known != moments) {
            let what = "the statistics of its columns are not those that it sent before".to_owned();
            return Err(enrolment::Refusal::Changed { client, what }.into());
        }
        let new = progress.received.insert(client, moments).is_none();
        let missing = self.statistics_to_come(&progress);
        if !missing.is_empty() {
            drop(progress);
            if new {
                let waiting = waiting_for_columns(&self.names(&missing));
                let note = format!("{} sent the statistics of its columns; {waiting}", member.name);
                (self.log)(&Event::Note { note });
            }
            return Ok(None);
        }
        let inner = self.inner();
        let received = progress.received.iter().filter(|(client, _)| inner.can_answer(**client));
        let received: BTreeMap<ClientId, Vec<Moments>> =
            received.map(|(client, moments)| (*client, moments.clone())).collect();
        drop(inner);
        let (found, remarks) = match standards(&tables.source, &received, self.terms.run.mode) {
            Ok(found) => found,
            Err(error) => {
                // Nothing that the caller did: all clients wait until the operator has done something about it.
                let problem = plain(&error.to_string());
                let new = progress.problem.replace(problem.clone()).as_ref() != Some(&problem);
                drop(progress);
                self.notify_clients();
                if new {
                    let clients: Vec<&ClientId> = received.keys().collect();
                    let note = format!(
                        "round 1 cannot begin: {problem}; from the statistics of clients {clients:?}; revoke a client \
                         that sent wrong ones, or start a run with another schema"
                    );
                    (self.log)(&Event::Note { note });
                }
                return Err(Refusal::Standards(problem));
            }
        };
        let text = tables.source.with_standards(&found).text();
        // On disk before any client trains with it: after a restart it must be the same.
        tables.directory.write_schema(&text).map_err(|_| Refusal::Disk)?;
        progress.complete = Some(text.clone());
        drop(progress);
        for remark in &remarks {
            (self.log)(&Event::Note { note: plain(&remark.to_string()) });
        }
        let note = format!(
            "centres and scales of {} columns are fixed, from {} clients",
            found.len(),
            received.len()
        );
        (self.log)(&Event::Note { note });
        self.notify_clients();
        Ok(Some(text))
    }
}

/// A sentence about the clients whose statistics are missing.
pub(crate) fn waiting_for_columns(names: &[String]) -> String {
    format!("waiting for the statistics of the columns of {}", names.join(", "))
}

/// A client's moments, with no more values than its certificate allows.
fn checked(
    member: &Member,
    statistics: &wire::ColumnStatistics,
    schema: &Schema,
    mode: Mode,
) -> Result<Vec<Moments>, Refusal> {
    let (client, size) = (member.id, statistics.size);
    // As for profiles: in hardened mode a size above the listed one counts as the listed one.
    if size > member.max_size && mode == Mode::Paper {
        return Err(Refusal::AboveListed { client, size, most: member.max_size });
    }
    let open = schema.open().count();
    if statistics.columns.len() != open {
        let got = statistics.columns.len();
        return Err(Refusal::Columns(format!(
            "{got} columns; the schema has {open} without centre and scale"
        )));
    }
    let moments = |sent: &wire::ColumnStatistic| {
        let wire::ColumnStatistic { count, mean, squares } = *sent;
        Moments { count, mean, squares }
    };
    let moments: Vec<Moments> = statistics.columns.iter().map(moments).collect();
    for ((name, column), moments) in schema.open().zip(&moments) {
        if let Some(why) = moments.refusal(size, column) {
            return Err(Refusal::Columns(plain(&format!("column {name:?}: {why}"))));
        }
    }
    Ok(moments.into_iter().map(|moments| moments.limited(member.max_size)).collect())
}
