//! Evaluates the models that simulated clients use themselves, each on its client's hold-out; without hold-outs on the test
//! set, with each class weighted by its share among the client's labels.

use crate::directory::Memories;
use crate::fleet::threads::share_out;
use crate::setup::Setup;
use fedtvd_core::labels::size;
use fedtvd_core::round::{
    ClientData, ClientEvaluation, ClientFailure, EvaluatedOn, Job, OwnResult, OwnResults,
};
use fedtvd_core::rules::{OwnModel, Strategy};
use fedtvd_core::train::{Trainer, client};

/// The clients of a simulation, as far as they make models of their own.
pub(super) struct OwnModels<'a> {
    pub(super) setup: &'a Setup,
    pub(super) memories: &'a Memories,
    pub(super) strategy: &'a Strategy,
}

impl OwnModels<'_> {
    /// The results of these clients, on the test set only if `test` allows it.
    pub(super) fn evaluate(&self, jobs: &[Job], test: bool, workers: &mut [Box<dyn Trainer>]) -> OwnResults {
        let held_out = self.setup.clients.iter().any(|client| !client.holdout.is_empty());
        let on = if held_out { EvaluatedOn::HoldOuts } else { EvaluatedOn::TestByLabels };
        let mut results = OwnResults { on, clients: Vec::new(), failed: Vec::new() };
        if !held_out && !test {
            return results;
        }
        let found =
            share_out(workers, jobs.len(), |trainer, place| self.of_client(&jobs[place], on, trainer));
        for (job, found) in jobs.iter().zip(found) {
            match found {
                Ok(Some(result)) => results.clients.push((job.client, result)),
                Ok(None) => {}
                Err(failure) => results.failed.push((job.client, failure.to_string())),
            }
        }
        results
    }

    /// The result of one client; `None` if there is nothing to evaluate its model on.
    fn of_client(
        &self,
        job: &Job,
        on: EvaluatedOn,
        trainer: &mut dyn Trainer,
    ) -> Result<Option<OwnResult>, ClientFailure> {
        let Some(data) = self.setup.clients.get(job.client as usize) else { return Ok(None) };
        let rows = match on {
            EvaluatedOn::HoldOuts => data.holdout.clone(),
            EvaluatedOn::TestByLabels => self.test_rows(data),
        };
        if rows.is_empty() {
            return Ok(None);
        }
        let memory = job.accepted.and_then(|round| self.memories.get(&job.client)?.get(&round));
        let OwnModel { params, offsets } =
            client::own_model(self.strategy, &self.setup.layout, job, data, memory, trainer)?;
        let evaluation = trainer.evaluate(&params, &rows, offsets.as_deref())?;
        Ok(Some(match on {
            EvaluatedOn::HoldOuts => OwnResult::from(&ClientEvaluation::from(evaluation)),
            EvaluatedOn::TestByLabels => OwnResult {
                accuracy: by_labels(&data.counts, &evaluation.class_accuracies()),
                loss: None,
                samples: size(&data.counts),
            },
        }))
    }

    /// The test rows of the classes that a client has.
    fn test_rows(&self, data: &ClientData) -> Vec<u32> {
        let label = |row: &u32| self.setup.samples.labels()[*row as usize] as usize;
        self.setup.samples.test_rows().into_iter().filter(|row| data.counts[label(row)] > 0).collect()
    }
}

/// Σ_c P_k[c] acc_c: accuracy of a model on a client's label distribution, over the evaluated classes; 0 without any.
pub(crate) fn by_labels(counts: &[u64], classes: &[Option<f64>]) -> f64 {
    let known = counts.iter().zip(classes).filter_map(|(&h, accuracy)| Some((h as f64, (*accuracy)?)));
    let (hits, total) = known.fold((0.0, 0.0), |(hits, total), (h, a)| (hits + h * a, total + h));
    if total > 0.0 { hits / total } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn per_client_accuracy_weights_classes_by_the_clients_labels_and_leaves_out_those_not_evaluated() {
        // 3/4 of 0.8 and 1/4 of 0.4.
        assert!((by_labels(&[30, 10, 0], &[Some(0.8), Some(0.4), Some(0.1)]) - 0.7).abs() < 1e-15);
        // The second class has no test sample: 30 samples at 0.8 and 10 at 0.
        assert!((by_labels(&[30, 60, 10], &[Some(0.8), None, Some(0.0)]) - 0.6).abs() < 1e-15);
        assert_eq!(by_labels(&[0, 5], &[Some(1.0), None]), 0.0);
    }
}
