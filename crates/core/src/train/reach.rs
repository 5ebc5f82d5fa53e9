//! The reach of local training, lr ‖a‖₁ in w_t - w_k = lr Σ_j a_j g_j: how far a constant gradient of one would move a
//! parameter.
//!
//! Gradients are those that the optimiser sees, after clipping; weight decay is left out. SGD is linear in them, so the
//! reach says how much of a client's change is due to how long it trained. Adam is not linear: it moves a parameter with
//! a constant gradient, proximal term included, by lr / (1 + eps) per step, however large the gradient is. So nothing may
//! be divided by a reach of Adam, and rules that do so refuse it (`needs_sgd`).

use crate::train::{Optimizer, Sgd};

/// The reach of a sequence of passes; that of SGD is computed by stepping one number in f64 with gradient 1 and anchor 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reach {
    distance: f64,
    velocity: f64,
}

impl Reach {
    /// Advances by `steps` steps of a pass; `mu` is the pass's proximal term, 0 without one.
    pub fn advance(&mut self, optimizer: &Optimizer, mu: f64, keep_state: bool, steps: u64) {
        if !keep_state {
            self.velocity = 0.0;
        }
        match optimizer {
            Optimizer::Sgd(sgd) => self.step(sgd, mu, steps),
            Optimizer::Adam(adam) | Optimizer::AdamW(adam) => {
                self.distance += steps as f64 * (adam.lr / (1.0 + adam.eps));
            }
        }
    }

    fn step(&mut self, sgd: &Sgd, mu: f64, steps: u64) {
        for _ in 0..steps {
            // The distance is -w, so the pull of mu (w - 0) is -mu distance.
            let g = 1.0 - mu * self.distance;
            self.velocity = sgd.momentum * self.velocity + g;
            self.distance +=
                sgd.lr * if sgd.nesterov { g + sgd.momentum * self.velocity } else { self.velocity };
        }
    }

    /// Like [`Reach::advance`] with SGD and the velocity kept, up to rounding, in O(log `steps`) operations.
    pub(crate) fn leap(&mut self, sgd: &Sgd, mu: f64, mut steps: u64) {
        let mut jump = Jump::of_one_step(sgd, mu);
        while steps > 0 {
            if steps % 2 == 1 {
                [self.distance, self.velocity] = jump.from([self.distance, self.velocity]);
            }
            jump = jump.twice();
            steps /= 2;
        }
    }

    /// lr ‖a‖₁ so far.
    pub fn distance(&self) -> f64 {
        self.distance
    }
}

/// Several steps at once: an affine map x -> A x + b of (distance, velocity).
#[derive(Clone, Copy)]
struct Jump {
    a: [[f64; 2]; 2],
    b: [f64; 2],
}

impl Jump {
    /// v <- m v + g and d <- d + lr v (Nesterov: d + lr (g + m v)), with g = 1 - mu d.
    fn of_one_step(sgd: &Sgd, mu: f64) -> Self {
        let Sgd { lr, momentum: m, nesterov, .. } = *sgd;
        let [of_g, of_v] = if nesterov { [lr * (1.0 + m), lr * m * m] } else { [lr, lr * m] };
        Self { a: [[1.0 - of_g * mu, of_v], [-mu, m]], b: [of_g, 1.0] }
    }

    fn from(&self, [d, v]: [f64; 2]) -> [f64; 2] {
        [0, 1].map(|row| self.a[row][0] * d + self.a[row][1] * v + self.b[row])
    }

    /// A (A x + b) + b.
    fn twice(&self) -> Self {
        let columns = [0, 1].map(|column| {
            let linear = Self { b: [0.0; 2], ..*self };
            linear.from([self.a[0][column], self.a[1][column]])
        });
        let a = [0, 1].map(|row| [columns[0][row], columns[1][row]]);
        Self { a, b: self.from(self.b) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leap_reaches_as_far_as_its_steps() {
        for nesterov in [false, true] {
            for (momentum, mu) in [(0.0, 0.0), (0.9, 0.0), (0.9, 0.1), (0.5, 1e-3), (0.99, 30.0)] {
                let sgd = Sgd { lr: 0.01, momentum, nesterov, weight_decay: 0.0 };
                for steps in [0, 1, 2, 3, 12_345] {
                    let mut stepped = Reach::default();
                    stepped.step(&sgd, mu, 7);
                    let mut leapt = stepped;
                    stepped.step(&sgd, mu, steps);
                    leapt.leap(&sgd, mu, steps);
                    // 12,345 steps, each rounded to 1e-16.
                    let gap = (leapt.distance - stepped.distance).abs() / stepped.distance.abs();
                    assert!(gap < 1e-12, "{sgd:?}, mu {mu}, {steps} steps: {leapt:?} and {stepped:?}");
                }
            }
        }
    }
}
