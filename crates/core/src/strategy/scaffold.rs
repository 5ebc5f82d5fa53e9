//! SCAFFOLD: control variates correct a client's gradient for its drift (option II).
//!
//! ```text
//! y  = local training from w_t with gradient g(y) - c_k + c
//! c_k+ = c_k - c + (w_t - y) / r_k,   r_k = lr ‖a‖₁          (plain SGD: lr times the steps)
//! w  = w_t + Σ_{k in round} s_k (y_k - w_t)
//! c  = c + Σ_{k in round} s_k^(N) (c_k+ - c_k),   s^(N): weights over all N clients
//! ```
//!
//! All variates start at zero, so round 1 is uniform averaging; c is the mean of all c_k after every round.
//! The correction is inside the momentum, so c_k+ divides by the reach and not by the number of steps.
//!
//! Karimireddy et al., "SCAFFOLD: Stochastic Controlled Averaging for Federated Learning", ICML 2020.

use crate::memory::Memory;
use crate::rules::{Carried, Extent, Guide, LocalRule, Needs, Property, Recipe, Rule, Spec, Task, Trained};
use crate::train::{LocalRun, TrainFailure, Trainer};
use std::sync::Arc;

const CONTROL: &str = "control";

pub(super) const SPEC: Spec = Spec {
    guide: Guide {
        formula: "gradient g(y) - damping (c_k - c);   c_k+ = mean gradient of the client;   c = Σ s_k^(N) c_k",
        choose: "where all clients, or many of them, take part in each round and skew is moderate: at alpha 0.5 it needs less than half of the rounds of `fedavg`",
        avoid: "at strong skew with momentum: a client's variate can feed back on itself and grow until the model is lost (`results/scaffold`); `damping=0.5` prevents it",
        cost: "twice the bytes of `fedavg` in both directions; each client keeps one vector as long as the model, the server one",
    },
    suggests: Some("uniform"),
    keeps: &[(
        Rule::Combine,
        "its control variate is the weighted mean of the clients' changes, and the model must move by the same mean",
    )],
    lacks: &[(
        Property::TrainsPlainly,
        "its gradient is corrected by control variates from the second round on",
    )],
    ..Spec::new(
        "scaffold",
        "control variates correct each client's gradient for client drift; clients keep state between rounds",
        "Karimireddy et al., SCAFFOLD: Stochastic Controlled Averaging for Federated Learning, ICML 2020",
        |_| Recipe { local: Some(Arc::new(Controlled)), ..Recipe::default() },
    )
};

#[derive(Debug)]
struct Controlled;

impl LocalRule for Controlled {
    fn needs(&self) -> Needs {
        Needs {
            carries: &[Carried { name: CONTROL, extent: Extent::Trainable }],
            remembers: true,
            mu: 0.0,
            sgd: Some(
                "a control variate is a client's change divided by its total step size, which is a mean gradient only with SGD",
            ),
        }
    }

    fn train(
        &self,
        task: &Task<'_>,
        memory: Option<&Memory>,
        trainer: &mut dyn Trainer,
    ) -> Result<Trained, TrainFailure> {
        let zeros = vec![0.0; task.base.layout.trainable()];
        let c = task.carried.f32(CONTROL).unwrap_or(&zeros);
        let c_k = memory.and_then(|memory| memory.f32(CONTROL)).unwrap_or(&zeros);
        let correction: Vec<f32> = c.iter().zip(c_k).map(|(c, c_k)| c - c_k).collect();
        let course = LocalRun::run(
            task.base,
            &task.client.rows,
            task.local,
            &task.pass,
            None,
            Some(&correction),
            trainer,
        )?;
        let moved = task.base.trainable().iter().zip(course.params.trainable());
        let next: Vec<f32> = moved
            .zip(&correction)
            .map(|((&w, &y), &correction)| {
                ((f64::from(w) - f64::from(y)) / course.reach - f64::from(correction)) as f32
            })
            .collect();
        let change: Vec<f32> = next.iter().zip(c_k).map(|(next, c_k)| next - c_k).collect();
        let mut trained = Trained::from(course);
        trained.carried.put(CONTROL, change);
        trained.memory.put(CONTROL, next);
        Ok(trained)
    }
}
