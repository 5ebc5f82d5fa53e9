//! Tensors that do not move in a pass, as parameters without a gradient in PyTorch.

use crate::model::{Layout, Tensor};
use std::ops::Range;

/// The tensors of a model that stay bit for bit in a pass.
///
/// The optimiser skips them and what it remembers of them; neither weight decay, pull nor push reach them, and clipping
/// counts the gradients of the others only. They still take part in the forward pass, with dropout as ever. A batch norm
/// whose running mean and variance are frozen normalises by them, as in evaluation, rather than by the batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frozen {
    /// The frozen ranges of the flat parameters, ascending and apart from each other.
    still: Vec<Range<usize>>,
    /// The ranges of the trainable parameters between them.
    moving: Vec<Range<usize>>,
    len: usize,
}

impl Frozen {
    /// The tensors of a layout for which this is true.
    pub fn of(layout: &Layout, frozen: impl Fn(&Tensor) -> bool) -> Self {
        let (still, moving): (Vec<&Tensor>, Vec<&Tensor>) =
            layout.tensors().iter().partition(|tensor| frozen(tensor));
        let moving = moving.into_iter().filter(|tensor| tensor.role.trainable());
        Self {
            still: joined(still.into_iter().map(Tensor::range)),
            moving: joined(moving.map(Tensor::range)),
            len: layout.len(),
        }
    }

    /// The ranges of the trainable parameters that move, ascending and apart from each other.
    pub fn moving(&self) -> &[Range<usize>] {
        &self.moving
    }

    /// Whether all parameters of a range are frozen.
    pub fn covers(&self, range: &Range<usize>) -> bool {
        self.still.iter().any(|still| still.start <= range.start && range.end <= still.end)
    }

    /// Sets the frozen entries of a gradient to zero.
    pub fn clear(&self, gradient: &mut [f32]) {
        for range in &self.still {
            let end = range.end.min(gradient.len());
            gradient[range.start.min(end)..end].fill(0.0);
        }
    }

    /// Number of parameters of the model whose tensors these are, buffers included.
    pub fn model_len(&self) -> usize {
        self.len
    }
}

/// Ascending ranges, with those that touch joined into one.
fn joined(ranges: impl Iterator<Item = Range<usize>>) -> Vec<Range<usize>> {
    let mut joined: Vec<Range<usize>> = Vec::new();
    for range in ranges.filter(|range| !range.is_empty()) {
        match joined.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => joined.push(range),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{LayerKind, Role};

    #[test]
    fn ranges_are_those_of_the_tensors_and_only_trainable_ones_move() {
        let tensor =
            |name: &str, len, layer, role| Tensor::new(name, vec![len], layer, LayerKind::BatchNorm, role);
        let layout = Layout::from_tensors(vec![
            tensor("a.weight", 2, 0, Role::Scale),
            tensor("a.bias", 3, 0, Role::Shift),
            tensor("b.weight", 4, 1, Role::Scale),
            tensor("a.running_mean", 1, 0, Role::RunningMean),
            tensor("b.running_mean", 1, 1, Role::RunningMean),
        ]);
        let first = Frozen::of(&layout, |tensor| tensor.layer == 0);
        let whole = 5..9;
        assert_eq!(first.moving(), std::slice::from_ref(&whole));
        assert_eq!(
            [0..5, 2..5, 9..10, 4..6, 10..11].map(|range| first.covers(&range)),
            [true, true, true, false, false]
        );
        let mut gradient = vec![1.0; 9];
        first.clear(&mut gradient);
        assert_eq!(gradient, [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0]);
        let second = Frozen::of(&layout, |tensor| tensor.name.ends_with("weight"));
        assert_eq!((second.moving(), second.model_len()), (std::slice::from_ref(&(2..5)), 11));
        assert!(Frozen::of(&layout, |_| true).moving().is_empty());
    }
}
