//! Clients that lie: a wrapper around any fleet.

use crate::attack::{Attack, Honest};
use crate::directory::Memories;
use crate::fleet::spool::{Spool, Spooled};
use crate::fleet::{Answers, Evaluated, Fleet, FleetFailure, Gathered};
use fedtvd_core::memory::Memory;
use fedtvd_core::model::Params;
use fedtvd_core::round::{
    ClientId, Job, Outcome, ReadFailure, Report, State, UpdatePart, Updates, Upload, check,
};
use fedtvd_core::rules::{Carried, Needs};
use std::ops::Range;
use std::sync::Arc;

/// A fleet whose first clients lie. The answers of the others keep their bits.
pub struct Adversarial {
    /// The clients.
    pub fleet: Box<dyn Fleet>,
    /// What the liars do with their profiles and updates; an attack on data is part of the data.
    pub attack: Attack,
    /// The liars' true label counts, from client 0 on.
    pub liars: Vec<Vec<u64>>,
    /// What the strategy sends along with the model.
    pub needs: Needs,
    /// Bytes of false updates that stay in memory; the others go to a temporary file.
    pub update_memory: usize,
}

impl Adversarial {
    /// The true label counts of a client, if it lies.
    fn liar(&self, client: ClientId) -> Option<&[u64]> {
        self.liars.get(client as usize).map(Vec::as_slice)
    }

    /// What the honest clients of a round trained, if the attack needs it.
    fn honest(&self, jobs: &[Job], updates: &dyn Updates) -> Result<Option<Honest>, ReadFailure> {
        let Some(job) = jobs.first().filter(|_| self.attack.spec().colludes) else { return Ok(None) };
        let answered = updates.outcomes().iter().enumerate().filter(|(_, outcome)| outcome.answer.is_ok());
        let (liars, honest): (Vec<_>, Vec<_>) =
            answered.partition(|(_, outcome)| self.liar(outcome.client).is_some());
        let places: Vec<usize> = honest.into_iter().map(|(place, _)| place).collect();
        Honest::of(updates, &places, liars.len(), job.offer.params.layout.trainable())
    }

    /// An honest update, read back.
    fn upload(
        &self,
        job: &Job,
        updates: &dyn Updates,
        index: usize,
        report: Report,
    ) -> Result<Upload, ReadFailure> {
        let layout = &job.offer.params.layout;
        let read = |part, len| {
            let mut values = vec![0.0; len];
            updates.read(index, part, 0..len, &mut values).map(|()| values)
        };
        let mut carried = Memory::default();
        for Carried { name, extent } in self.needs.carries {
            carried.put(name, read(UpdatePart::Carried(name), extent.len(layout))?);
        }
        let values = read(UpdatePart::Model, layout.len())?;
        let params = Params { layout: Arc::clone(layout), values };
        Ok(Upload { client: job.client, params, carried, report })
    }
}

impl Fleet for Adversarial {
    fn gather(&mut self, state: &State, memories: Option<Memories>) -> Result<Gathered, FleetFailure> {
        let mut gathered = self.fleet.gather(state, memories)?;
        let reference = &gathered.reference;
        for profile in &mut gathered.newcomers {
            if let Some(counts) = self.liar(profile.client) {
                let claimed = self.attack.counts(counts, reference);
                profile.size = self.attack.size(counts, reference);
                profile.statistic = profile.statistic.ask().answer(&claimed, reference);
            }
        }
        Ok(gathered)
    }

    fn work(&mut self, jobs: &[Job]) -> Result<Answers, FleetFailure> {
        let Answers { updates: honest, traffic } = self.fleet.work(jobs)?;
        let mut outcomes = honest.outcomes().to_vec();
        let unread = |error: ReadFailure| FleetFailure::Other(Box::new(error));
        let known = self.honest(jobs, honest.as_ref()).map_err(unread)?;
        let spool = Spool::new(self.update_memory);
        let mut kept = Vec::new();
        for (index, outcome) in outcomes.iter_mut().enumerate() {
            let (Some(counts), Ok(checked)) = (self.liar(outcome.client), &outcome.answer) else { continue };
            let Some(job) = jobs.iter().find(|job| job.client == outcome.client) else { continue };
            let upload = self.upload(job, honest.as_ref(), index, checked.report());
            let mut upload = upload.map_err(unread)?;
            self.attack.update(&mut upload, job, self.needs.mu, counts, known.as_ref());
            // As a server does it: with the size that the client claimed.
            let size = self.attack.size(counts, &job.offer.reference);
            outcome.answer = check(&self.needs, size, job, &upload);
            if outcome.answer.is_ok() {
                kept.push((outcome.clone(), Some(spool.keep(&mut upload))));
            }
        }
        spool.complete()?;
        let updates = Box::new(Altered { outcomes, honest, altered: spool.close(kept) });
        Ok(Answers { updates, traffic })
    }

    fn evaluate(&mut self, state: &State, own: &[Job]) -> Result<Evaluated, FleetFailure> {
        self.fleet.evaluate(state, own)
    }

    fn settle(&mut self, state: &State) -> Result<&Memories, FleetFailure> {
        self.fleet.settle(state)
    }
}

/// The updates of a round, with those of liars replaced.
struct Altered {
    outcomes: Vec<Outcome>,
    honest: Box<dyn Updates>,
    altered: Spooled,
}

impl Updates for Altered {
    fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }

    fn read(
        &self,
        index: usize,
        part: UpdatePart<'_>,
        range: Range<usize>,
        out: &mut [f32],
    ) -> Result<(), ReadFailure> {
        let client = self.outcomes[index].client;
        match self.altered.outcomes().binary_search_by_key(&client, |outcome| outcome.client) {
            Ok(place) => self.altered.read(place, part, range, out),
            Err(_) => self.honest.read(index, part, range, out),
        }
    }
}
