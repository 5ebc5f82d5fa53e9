//! The memory that a run needs: data, trainers, models, updates up to their budget, and clients' memories.

use crate::configuration::Experiment;
use crate::setup::Setup;
use crate::simulation::Resources;
use fedtvd_core::round::cohort_size;

/// What a run's memory depends on; sizes in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Footprint {
    /// A model.
    pub(crate) model: u64,
    /// Number of models that a client is sent.
    pub(crate) models: u64,
    /// The vectors sent along with a model.
    pub(crate) carried: u64,
    /// A client's memory between rounds.
    pub(crate) memory: u64,
    /// Number of clients.
    pub(crate) clients: usize,
    /// Number of clients per round.
    pub(crate) cohort: usize,
    /// Number of rounds.
    pub(crate) rounds: u32,
}

impl Footprint {
    /// The footprint of an experiment.
    pub(crate) fn of(experiment: &Experiment, setup: &Setup) -> Self {
        let model = 4 * setup.parts.shared.len() as u64;
        let needs = experiment.run.strategy.needs();
        let carried = needs.carries.iter().map(|carried| 4 * carried.extent.len(&setup.layout) as u64).sum();
        // A client with a memory keeps its own copy of each carried vector, or else a model, or the tensors that stay.
        let kept = match (experiment.run.strategy.local.needs().remembers, carried) {
            (false, _) => 0,
            (true, 0) => 4 * setup.layout.len() as u64,
            (true, carried) => carried,
        };
        let memory = kept + 4 * setup.parts.own.len() as u64;
        let clients = setup.clients.len();
        let cohort = cohort_size(experiment.run.fraction, clients);
        let models = experiment.run.strategy.models() as u64;
        Self { model, models, carried, memory, clients, cohort, rounds: experiment.rounds }
    }

    /// Size of an update.
    pub(crate) fn update(&self) -> u64 {
        self.model + self.carried
    }

    /// Size of a job.
    pub(crate) fn job(&self) -> u64 {
        self.models * self.model + self.carried
    }

    /// Peak memory of a run that uses `before` bytes before it creates its trainers, each of which needs `trainer`
    /// bytes, including a model.
    pub(crate) fn peak(&self, before: u64, trainer: u64, resources: &Resources) -> u64 {
        let workers = resources.workers as u64;
        before
            + workers * trainer
            + self.job()
            + self.kept(resources)
            + self.remembered()
            + self.working(workers)
    }

    /// Updates that stay in memory: as many as fit into the budget.
    fn kept(&self, resources: &Resources) -> u64 {
        (resources.update_memory as u64 / self.update().max(1)).min(self.cohort as u64) * self.update()
    }

    /// Clients' memories after all rounds: one for every client that was ever selected, and the new ones of a round.
    fn remembered(&self) -> u64 {
        let never = (1.0 - self.cohort as f64 / self.clients as f64).powf(f64::from(self.rounds));
        let asked = ((1.0 - never) * self.clients as f64).ceil() as u64;
        (asked + self.cohort as u64) * self.memory
    }

    /// Working memory beyond the model that each trainer holds: the local rule's vectors while clients train, or a sum
    /// in f64 and the next model afterwards.
    fn working(&self, workers: u64) -> u64 {
        let training = workers * 3 * self.carried;
        let closing = 3 * self.update();
        training.max(closing.saturating_sub(workers * self.model))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: u64 = 44_734_248;

    fn resnet18() -> Footprint {
        Footprint { model: MODEL, models: 1, carried: 0, memory: 0, clients: 1000, cohort: 100, rounds: 1 }
    }

    #[test]
    fn updates_beyond_their_budget_take_no_memory() {
        let peak =
            |update_memory| resnet18().peak(0, 0, &Resources { update_memory, ..Resources::workers(2) });
        // 128 MiB hold three updates of 45 MB.
        assert_eq!(peak(128 << 20) - peak(0), 3 * MODEL);
        assert_eq!(peak(usize::MAX) - peak(0), 100 * MODEL);
    }

    #[test]
    fn client_memories_grow_as_clients_are_selected() {
        let one = Footprint { carried: MODEL, memory: MODEL, ..resnet18() };
        assert_eq!(one.remembered(), (100 + 100) * MODEL);
        let many = Footprint { rounds: 1000, ..one };
        assert_eq!(many.remembered(), (1000 + 100) * MODEL);
    }
}
