//! One optimiser step, exactly that of PyTorch with a proximal term, clipping and a constant vector:
//!
//! ```text
//! u = gradient + mu (w - anchor)
//! u = u min(1, clip / (‖u‖ + 1e-6))                  (clip_grad_norm_; without clip, u stays as it is)
//! g = u + weight_decay w + push                      (AdamW: u + push)
//!
//! SGD:    v = momentum v + g                         (v is zero before the first step)
//!         w = w - lr v                               (Nesterov: w - lr (g + momentum v))
//! Adam:   m = beta1 m + (1 - beta1) g                (m and v are zero before the first step)
//!         v = beta2 v + (1 - beta2) g²
//!         w = w - lr m / (1 - beta1^t) / (√(v / (1 - beta2^t)) + eps)       in step t = 1, 2, …
//! AdamW:  w = (1 - lr weight_decay) w, then Adam's step
//! ```
//!
//! So clipping covers what a PyTorch loop would differentiate: the loss and a proximal term that is part of it. Weight
//! decay belongs to the optimiser. The push is SCAFFOLD's correction c - c_k; it stays outside of the norm, so that c_k
//! remains the mean of the client's own clipped gradients. Frozen parameters are left out of everything, the norm too.

use crate::train::{Adam, Frozen, Optimizer, Pass, Pull, Sgd};
use std::ops::Range;
use std::slice;

/// What an optimiser keeps from step to step.
#[derive(Clone, Debug, Default)]
pub struct OptimizerState {
    /// SGD's velocity, Adam's m.
    first: Vec<f32>,
    /// Adam's v; empty with SGD.
    second: Vec<f32>,
    /// beta1^t and beta2^t after t steps of Adam.
    powers: [f64; 2],
}

impl OptimizerState {
    /// Prepares for a pass over this number of parameters: a new state, unless the pass keeps the last one.
    pub fn begin(&mut self, pass: &Pass<'_>, parameters: usize) {
        let second = if pass.optimizer.vectors() == 2 { parameters } else { 0 };
        if pass.keep_state && self.first.len() == parameters && self.second.len() == second {
            return;
        }
        for (vector, length) in [(&mut self.first, parameters), (&mut self.second, second)] {
            vector.clear();
            vector.resize(length, 0.0);
        }
        self.powers = [1.0; 2];
    }
}

/// Updates the trainable parameters in one sweep over them, after one for the norm if the pass clips.
///
/// Inlined so that a kernel crate can compile it for wider registers; no operation is reordered or fused,
/// so the bits are the same everywhere.
///
/// # Panics
/// Panics if the slices differ in length, or if the state was not prepared for the pass.
#[inline(always)]
pub fn step(pass: &Pass<'_>, w: &mut [f32], state: &mut OptimizerState, gradient: &[f32]) {
    let OptimizerState { first, second, powers } = state;
    assert!(w.len() == first.len() && w.len() == gradient.len(), "one state and one gradient per parameter");
    let whole = 0..w.len();
    let moving = pass.frozen.map_or(slice::from_ref(&whole), Frozen::moving);
    let scale = scale(pass, w, gradient, moving);
    if let Optimizer::Adam(adam) | Optimizer::AdamW(adam) = pass.optimizer {
        *powers = [powers[0] * adam.beta1, powers[1] * adam.beta2];
    }
    for range in moving.iter().cloned() {
        let pass = part(pass, &range);
        let (w, first, gradient) =
            (&mut w[range.clone()], &mut first[range.clone()], &gradient[range.clone()]);
        match pass.optimizer {
            Optimizer::Sgd(Sgd { lr, momentum, nesterov, weight_decay }) => {
                let rule = SgdSweep { w, v: first, lr: lr as f32, momentum: momentum as f32, nesterov };
                sweep(&pass, weight_decay as f32, scale, gradient, rule);
            }
            Optimizer::Adam(adam) => {
                let rule = AdamSweep::new(&adam, 1.0, powers, w, first, &mut second[range]);
                sweep(&pass, adam.weight_decay as f32, scale, gradient, rule);
            }
            Optimizer::AdamW(adam) => {
                let kept = 1.0 - adam.lr * adam.weight_decay;
                let rule = AdamSweep::new(&adam, kept, powers, w, first, &mut second[range]);
                sweep(&pass, 0.0, scale, gradient, rule);
            }
        }
    }
}

/// A pass as a range of the parameters sees it.
#[inline(always)]
fn part<'a>(pass: &Pass<'a>, range: &Range<usize>) -> Pass<'a> {
    Pass {
        pull: pass.pull.map(|pull| Pull { anchor: &pull.anchor[range.clone()], ..pull }),
        push: pass.push.map(|push| &push[range.clone()]),
        ..*pass
    }
}

/// The sweep over all parameters: `total` makes g from the gradient, w, and the entries of two vectors.
trait Sweep {
    fn run(self, gradient: &[f32], vectors: [&[f32]; 2], total: impl Fn(f32, f32, f32, f32) -> f32);
}

/// Sweeps with the terms of the gradient that the pass has, so that plain passes read no more than they need.
#[inline(always)]
fn sweep(pass: &Pass<'_>, decay: f32, scale: Option<f32>, gradient: &[f32], rule: impl Sweep) {
    let push = pass.push.unwrap_or(gradient);
    match (pass.pull, scale) {
        (None, _) => {
            // A product with 1 is exact.
            let (scaled, s) = (scale.is_some(), scale.unwrap_or(1.0));
            match pass.push {
                None if decay == 0.0 && !scaled => rule.run(gradient, [gradient; 2], |g, _, _, _| g),
                None => rule.run(gradient, [gradient; 2], |g, w, _, _| g * s + decay * w),
                Some(push) => rule.run(gradient, [push; 2], |g, w, push, _| (g * s + decay * w) + push),
            }
        }
        (Some(pull), None) => {
            let (mu, vectors) = (pull.mu as f32, [pull.anchor, push]);
            let total = |g, w, anchor| (g + decay * w) + mu * (w - anchor);
            match pass.push {
                None => rule.run(gradient, vectors, |g, w, anchor, _| total(g, w, anchor)),
                Some(_) => rule.run(gradient, vectors, |g, w, anchor, push| total(g, w, anchor) + push),
            }
        }
        (Some(pull), Some(s)) => {
            let (mu, vectors) = (pull.mu as f32, [pull.anchor, push]);
            let total = |g, w, anchor| (g + mu * (w - anchor)) * s + decay * w;
            match pass.push {
                None => rule.run(gradient, vectors, |g, w, anchor, _| total(g, w, anchor)),
                Some(_) => rule.run(gradient, vectors, |g, w, anchor, push| total(g, w, anchor) + push),
            }
        }
    }
}

struct SgdSweep<'a> {
    w: &'a mut [f32],
    v: &'a mut [f32],
    lr: f32,
    momentum: f32,
    nesterov: bool,
}

impl Sweep for SgdSweep<'_> {
    #[inline(always)]
    fn run(self, gradient: &[f32], [a, b]: [&[f32]; 2], total: impl Fn(f32, f32, f32, f32) -> f32) {
        let Self { w, v, lr, momentum, nesterov } = self;
        assert!(w.len() == a.len() && w.len() == b.len(), "one anchor and one push per parameter");
        for ((((w, v), &g), &a), &b) in w.iter_mut().zip(v).zip(gradient).zip(a).zip(b) {
            let g = total(g, *w, a, b);
            *v = momentum * *v + g;
            *w -= lr * if nesterov { g + momentum * *v } else { *v };
        }
    }
}

struct AdamSweep<'a> {
    w: &'a mut [f32],
    m: &'a mut [f32],
    v: &'a mut [f32],
    /// Factor on w before the step.
    kept: f32,
    /// 1 - beta1.
    rise: f32,
    /// beta2 and 1 - beta2.
    squares: [f32; 2],
    /// lr / (1 - beta1^t).
    length: f32,
    /// √(1 - beta2^t).
    root: f32,
    eps: f32,
}

impl<'a> AdamSweep<'a> {
    /// `powers` are beta1^t and beta2^t.
    #[inline(always)]
    fn new(
        adam: &Adam,
        kept: f64,
        powers: &[f64; 2],
        w: &'a mut [f32],
        m: &'a mut [f32],
        v: &'a mut [f32],
    ) -> Self {
        let &Adam { lr, beta1, beta2, eps, .. } = adam;
        Self {
            w,
            m,
            v,
            kept: kept as f32,
            rise: (1.0 - beta1) as f32,
            squares: [beta2 as f32, (1.0 - beta2) as f32],
            length: (lr / (1.0 - powers[0])) as f32,
            root: (1.0 - powers[1]).sqrt() as f32,
            eps: eps as f32,
        }
    }
}

impl Sweep for AdamSweep<'_> {
    #[inline(always)]
    fn run(self, gradient: &[f32], [a, b]: [&[f32]; 2], total: impl Fn(f32, f32, f32, f32) -> f32) {
        let Self { w, m, v, kept, rise, squares: [old, new], length, root, eps } = self;
        assert!(w.len() == v.len() && w.len() == a.len() && w.len() == b.len(), "one number per parameter");
        for (((((w, m), v), &g), &a), &b) in w.iter_mut().zip(m).zip(v).zip(gradient).zip(a).zip(b) {
            let g = total(g, *w, a, b);
            *m += (g - *m) * rise;
            *v = old * *v + new * (g * g);
            *w = kept * *w - length * (*m / (v.sqrt() / root + eps));
        }
    }
}

/// The factor that clips u, if the pass clips.
#[inline(always)]
fn scale(pass: &Pass<'_>, w: &[f32], gradient: &[f32], moving: &[Range<usize>]) -> Option<f32> {
    let clip = pass.clip?;
    let mut total = 0.0;
    for range in moving.iter().cloned() {
        let (w, gradient) = (&w[range.clone()], &gradient[range.clone()]);
        total += match pass.pull {
            None => square(gradient, w, gradient, |g, _, _| g),
            Some(pull) => {
                let mu = pull.mu as f32;
                square(gradient, w, &pull.anchor[range], |g, w, anchor| g + mu * (w - anchor))
            }
        };
    }
    Some((clip / (total.sqrt() + 1e-6)).min(1.0) as f32)
}

/// Sums that run side by side in [`square`]. A constant, so that the bits do not depend on the width of registers.
const SUMS: usize = 16;

/// The squared norm of `u`, in f64: entry i goes to sum i % [`SUMS`], and the sums are added in order.
#[inline(always)]
fn square(gradient: &[f32], w: &[f32], anchor: &[f32], u: impl Fn(f32, f32, f32) -> f32) -> f64 {
    assert!(w.len() == gradient.len() && w.len() == anchor.len(), "one anchor per parameter");
    let mut sums = [0f64; SUMS];
    let mut add = |g: &[f32], w: &[f32], anchor: &[f32]| {
        for (((sum, &g), &w), &anchor) in sums.iter_mut().zip(g).zip(w).zip(anchor) {
            let u = f64::from(u(g, w, anchor));
            *sum += u * u;
        }
    };
    let whole = gradient.len() - gradient.len() % SUMS;
    let (gradients, ws, anchors) =
        (gradient.chunks_exact(SUMS), w.chunks_exact(SUMS), anchor.chunks_exact(SUMS));
    for ((g, w), anchor) in gradients.zip(ws).zip(anchors) {
        add(g, w, anchor);
    }
    add(&gradient[whole..], &w[whole..], &anchor[whole..]);
    sums.iter().sum()
}
