//! Sums of registers, lane by lane, in f64: rounding grows with what was summed in f32 before, not with the total.

use super::vector::Vector;

/// One f64 per lane; zeros to begin with.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sums([f64; 16]);

impl Sums {
    /// Adds a register.
    #[inline(always)]
    pub(crate) fn add<V: Vector>(&mut self, register: V) {
        let mut lanes = [0f32; 16];
        register.put(&mut lanes);
        for (sum, lane) in self.0.iter_mut().zip(lanes).take(V::LANES) {
            *sum += f64::from(lane);
        }
    }

    /// Adds other sums times a factor.
    #[inline(always)]
    pub(crate) fn add_scaled(&mut self, other: &Self, factor: f64) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, other)| *sum += factor * other);
    }

    /// Lane by lane, `f` of the sum, as a register.
    #[inline(always)]
    pub(crate) fn register<V: Vector>(&self, f: impl Fn(f64) -> f64) -> V {
        V::of(&self.0.map(|sum| f(sum) as f32))
    }

    /// The sum of the first lanes.
    #[inline(always)]
    pub(crate) fn total(&self, lanes: usize) -> f64 {
        self.0[..lanes].iter().sum()
    }
}
