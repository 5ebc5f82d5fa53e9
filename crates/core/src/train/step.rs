//! One optimiser step, exactly `torch.optim.SGD` with a proximal term and a constant vector:
//!
//! ```text
//! g = gradient + weight_decay w + mu (w - anchor) + push
//! v = momentum v + g                 (v is zero before the first step)
//! w = w - lr v                       (Nesterov: w - lr (g + momentum v))
//! ```
//!
//! and its reach, lr ‖a‖₁ in w_t - w_k = lr Σ_j a_j g_j: how far a constant gradient of one would move a parameter.

use crate::train::{Pass, Sgd};

/// Updates the trainable parameters in one pass over them.
///
/// Inlined so that a kernel crate can compile it for wider registers; no operation is reordered or fused,
/// so the bits are the same everywhere.
///
/// # Panics
/// Panics if the slices differ in length.
#[inline(always)]
pub fn step(pass: &Pass<'_>, w: &mut [f32], v: &mut [f32], gradient: &[f32]) {
    assert!(w.len() == v.len() && w.len() == gradient.len(), "one velocity and one gradient per parameter");
    let Sgd { lr, momentum, nesterov, weight_decay } = pass.sgd;
    let (lr, momentum, decay) = (lr as f32, momentum as f32, weight_decay as f32);
    match (pass.pull, pass.push) {
        (None, None) if weight_decay == 0.0 => {
            sweep(w, v, gradient, gradient, lr, momentum, nesterov, |g, _, _| g);
        }
        (None, None) => sweep(w, v, gradient, gradient, lr, momentum, nesterov, |g, w, _| g + decay * w),
        (Some(pull), None) => {
            let mu = pull.mu as f32;
            sweep(w, v, gradient, pull.anchor, lr, momentum, nesterov, |g, w, anchor| {
                (g + decay * w) + mu * (w - anchor)
            });
        }
        (None, Some(push)) => {
            sweep(w, v, gradient, push, lr, momentum, nesterov, |g, w, push| (g + decay * w) + push);
        }
        (Some(pull), Some(push)) => {
            assert!(pull.anchor.len() == w.len() && push.len() == w.len());
            let mu = pull.mu as f32;
            for i in 0..w.len() {
                let g = ((gradient[i] + decay * w[i]) + mu * (w[i] - pull.anchor[i])) + push[i];
                advance(&mut w[i], &mut v[i], g, lr, momentum, nesterov);
            }
        }
    }
}

#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "the loop that is monomorphised over the gradient's terms")]
fn sweep(
    w: &mut [f32],
    v: &mut [f32],
    gradient: &[f32],
    other: &[f32],
    lr: f32,
    momentum: f32,
    nesterov: bool,
    total: impl Fn(f32, f32, f32) -> f32,
) {
    assert_eq!(w.len(), other.len(), "one anchor or push per parameter");
    for (((w, v), &g), &other) in w.iter_mut().zip(v).zip(gradient).zip(other) {
        let g = total(g, *w, other);
        advance(w, v, g, lr, momentum, nesterov);
    }
}

#[inline(always)]
fn advance(w: &mut f32, v: &mut f32, g: f32, lr: f32, momentum: f32, nesterov: bool) {
    *v = momentum * *v + g;
    *w -= lr * if nesterov { g + momentum * *v } else { *v };
}

/// The reach of a sequence of passes, computed by stepping one number in f64 with gradient 1 and anchor 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reach {
    distance: f64,
    velocity: f64,
}

impl Reach {
    /// Advances by `steps` steps of a pass; `mu` is the pass's proximal term, 0 without one.
    pub fn advance(&mut self, sgd: &Sgd, mu: f64, keep_velocity: bool, steps: u64) {
        if !keep_velocity {
            self.velocity = 0.0;
        }
        for _ in 0..steps {
            // The distance is -w, so the pull of mu (w - 0) is -mu distance.
            let g = 1.0 - mu * self.distance;
            self.velocity = sgd.momentum * self.velocity + g;
            self.distance +=
                sgd.lr * if sgd.nesterov { g + sgd.momentum * self.velocity } else { self.velocity };
        }
    }

    /// Like [`Reach::advance`] with the velocity kept, up to rounding, in O(log `steps`) operations.
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
                    stepped.advance(&sgd, mu, true, 7);
                    let mut leapt = stepped;
                    stepped.advance(&sgd, mu, true, steps);
                    leapt.leap(&sgd, mu, steps);
                    // 12,345 steps, each rounded to 1e-16.
                    let gap = (leapt.distance - stepped.distance).abs() / stepped.distance.abs();
                    assert!(gap < 1e-12, "{sgd:?}, mu {mu}, {steps} steps: {leapt:?} and {stepped:?}");
                }
            }
        }
    }
}
