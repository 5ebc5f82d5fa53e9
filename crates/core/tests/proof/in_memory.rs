//! The updates of a round held in memory, checked as they arrive.

use fedtvd_core::labels::{Reference, Statistic};
use fedtvd_core::memory::Memory;
use fedtvd_core::model::{Layout, Params};
use fedtvd_core::round::{
    ClientFailure, ClientId, Job, Mode, Outcome, Profile, ReadFailure, Report, Run, State, UpdatePart,
    Updates, Upload, check, plan,
};
use fedtvd_core::rules::notation;
use fedtvd_core::train::Local;
use std::ops::Range;
use std::sync::Arc;

/// Updates held in memory.
#[derive(Debug)]
pub(crate) struct InMemory {
    outcomes: Vec<Outcome>,
    uploads: Vec<Option<(Params, Memory)>>,
}

impl InMemory {
    /// Checks answers that may have arrived in any order. A duplicate answer counts once; different answers of the same
    /// client, and answers of clients that were not asked, are not used.
    pub(crate) fn new(
        run: &Run,
        state: &State,
        jobs: &[Job],
        mut answers: Vec<(ClientId, Result<Upload, ClientFailure>)>,
    ) -> Self {
        // Floating-point sums depend on their order; arrival order is not reproducible.
        answers.sort_by_key(|(client, _)| *client);
        answers.dedup_by(|later, first| {
            let again = later.0 == first.0;
            if again && later.1 != first.1 {
                first.1 = Err(ClientFailure::Twice);
            }
            again
        });
        let needs = run.strategy.needs();
        let (mut outcomes, mut uploads) = (Vec::new(), Vec::new());
        for (client, answer) in answers {
            let Some(job) = jobs.iter().find(|job| job.client == client) else { continue };
            let size = state.profile(client).map_or(0, |profile| profile.size);
            let checked = answer.and_then(|upload| Ok((check(&needs, size, job, &upload)?, upload)));
            let (answer, upload) = match checked {
                Ok((checked, upload)) => (Ok(checked), Some((upload.params, upload.carried))),
                Err(failure) => (Err(failure), None),
            };
            outcomes.push(Outcome { client, answer });
            uploads.push(upload);
        }
        Self { outcomes, uploads }
    }

    fn part(&self, index: usize, part: UpdatePart<'_>) -> Option<&[f32]> {
        let (params, carried) = self.uploads[index].as_ref()?;
        match part {
            UpdatePart::Model => Some(&params.values),
            UpdatePart::Carried(name) => carried.f32(name),
        }
    }
}

impl Updates for InMemory {
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
        let missing =
            || ReadFailure { client, why: format!("values {}..{} are missing", range.start, range.end) };
        let values =
            self.part(index, part).and_then(|values| values.get(range.clone())).ok_or_else(missing)?;
        out.copy_from_slice(values);
        Ok(())
    }
}

#[test]
fn a_duplicate_answer_counts_once_and_two_different_ones_do_not_count() {
    let run = Run {
        strategy: notation::strategy("fedavg", []).unwrap(),
        seed: 1,
        cohort_seed: 1,
        fraction: 1.0,
        extra: 0,
        stratum: None,
        local: Local::default(),
        class_weights: Default::default(),
        quorum: 1,
        mode: Mode::Paper,
        screen: 3.0,
        largest_size: 100,
        fixed_roster: false,
    };
    let start = Params::zeros(Arc::new(Layout::vector(1)));
    let mut state = State::new(&run, start.clone(), Reference::uniform(2));
    for client in [1, 2] {
        state.enrol(&run, Profile::new(client, 10, Statistic::Nothing)).unwrap();
    }
    let answer = |client: ClientId, value: f32| {
        let params = Params { values: vec![value], ..start.clone() };
        let report =
            Report { round: 0, steps: 1, reach: 0.01, losses: [1.0, 1.0], remembers: true, branch: 0 };
        (client, Ok(Upload { client, params, carried: Memory::default(), report }))
    };
    for answers in [
        vec![answer(2, 1.0), answer(1, 5.0), answer(2, 1.0), answer(1, 6.0), answer(1, 5.0)],
        vec![answer(1, 5.0), answer(1, 5.0), answer(1, 6.0), answer(2, 1.0), answer(3, 1.0)],
    ] {
        let updates = InMemory::new(&run, &state, &plan(&run, &state), answers);
        let outcomes: Vec<_> = updates.outcomes().iter().map(|o| (o.client, o.answer.is_ok())).collect();
        assert_eq!(outcomes, [(1, false), (2, true)]);
        assert_eq!(updates.outcomes()[0].answer, Err(ClientFailure::Twice));
    }
}
