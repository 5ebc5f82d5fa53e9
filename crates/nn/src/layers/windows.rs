//! The windows of a pooling: output (i, j) of a channel sees the pixels from (i s, j s) on.

use crate::map::Port;

/// A pooling's ends and the size of its windows.
pub(crate) struct Windows {
    pub(crate) input: Port,
    pub(crate) output: Port,
    pub(crate) size: usize,
    pub(crate) stride: usize,
}

impl Windows {
    /// Where the window of an output starts in the input.
    #[inline(always)]
    pub(super) fn first(&self, group: usize, channel: usize, i: usize, j: usize) -> usize {
        self.input.map.at(group, channel, (i * self.stride) as isize, (j * self.stride) as isize)
    }
}
