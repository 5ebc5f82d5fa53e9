//! A feature map: how the values between two layers lie in memory.
//!
//! Samples are grouped by as many as a register has lanes. Within a group the order is channel, row, column,
//! lane: one register holds one pixel of all samples of the group, so every layer is a loop over registers,
//! whatever its number of channels. A border of zeros provides the padding that a convolution needs. Lanes beyond
//! the last sample hold arbitrary values and zero gradients.

use fedtvd_core::model::Shape;
use std::ops::Range;

/// Shape, border and lanes of a feature map, for its values and its gradients alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Map {
    pub(crate) shape: Shape,
    /// Rows and columns of zeros on every side.
    pub(crate) border: usize,
    pub(crate) lanes: usize,
}

impl Map {
    /// Numbers from one row to the next.
    #[inline(always)]
    pub(crate) fn row(&self) -> usize {
        (self.shape[2] + 2 * self.border) * self.lanes
    }

    /// Numbers from one channel to the next.
    #[inline(always)]
    pub(crate) fn channel(&self) -> usize {
        (self.shape[1] + 2 * self.border) * self.row()
    }

    /// Numbers from one group of samples to the next.
    #[inline(always)]
    pub(crate) fn group(&self) -> usize {
        self.shape[0] * self.channel()
    }

    /// Where a pixel's register starts. Counted from inside the border, so -1 is the border's last line.
    #[inline(always)]
    pub(crate) fn at(&self, group: usize, channel: usize, y: isize, x: isize) -> usize {
        let (y, x) = (y + self.border as isize, x + self.border as isize);
        debug_assert!(y >= 0 && x >= 0);
        group * self.group() + channel * self.channel() + y as usize * self.row() + x as usize * self.lanes
    }

    /// The numbers of one row of one channel, without border.
    #[inline(always)]
    pub(crate) fn line(&self, group: usize, channel: usize, y: usize) -> Range<usize> {
        let start = self.at(group, channel, y as isize, 0);
        start..start + self.shape[2] * self.lanes
    }

    /// Group, channel and row of every line.
    pub(crate) fn lines(&self, groups: usize) -> impl Iterator<Item = (usize, usize, usize)> {
        let [channels, height, _] = self.shape;
        (0..groups * channels * height)
            .map(move |line| (line / height / channels, line / height % channels, line % height))
    }
}

/// A layer's end: which buffers, and how they lie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Port {
    /// Number of the values' buffer.
    pub(crate) value: usize,
    /// Number of the gradients' buffer.
    pub(crate) gradient: usize,
    pub(crate) map: Map,
    /// What a layer's backward pass does with the gradient of this input.
    pub(crate) write: Write,
}

/// How a gradient is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    /// Not needed: the input data.
    Skip,
    /// The first to write.
    Set,
    /// Another layer wrote before.
    Add,
}
