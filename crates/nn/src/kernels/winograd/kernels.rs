//! The kernels of a convolution, transformed: U[point][row, column], whose rows are what the product makes and whose columns
//! what it reads: outputs and inputs, or for dx inputs and outputs.

use super::apart;
use super::transforms::kernel;
use crate::kernels::vector::Vector;

/// The weights of a convolution, w[o, c, u, v].
#[derive(Clone, Copy, Debug)]
pub(super) struct Kernels<'a> {
    pub(super) weights: &'a [f32],
    pub(super) outputs: usize,
    pub(super) inputs: usize,
    /// Whether rows are inputs.
    pub(super) exchanged: bool,
}

impl Kernels<'_> {
    /// Rows and columns of a point's matrix.
    #[inline(always)]
    pub(super) fn sides(&self) -> [usize; 2] {
        if self.exchanged { [self.inputs, self.outputs] } else { [self.outputs, self.inputs] }
    }

    /// Transforms them; the lanes of a register are columns.
    ///
    /// # Safety
    /// There must be R x R weights per kernel, and `to` must hold A x A matrices, `apart` of `stride` times the rows each.
    #[inline(always)]
    pub(super) unsafe fn transform<V: Vector, const A: usize, const R: usize>(&self, to: *mut f32) {
        let [rows, columns] = self.sides();
        let (stride, area) = (row_stride(columns, V::LANES), R * R);
        let points = apart(rows * stride);
        let (of_row, of_column) = match self.exchanged {
            true => (area, self.inputs * area),
            false => (self.inputs * area, area),
        };
        // Whole cache lines of each matrix are written at a time.
        for line in (0..columns).step_by(16) {
            for row in 0..rows {
                for first in (line..columns.min(line + 16)).step_by(V::LANES) {
                    let mut taps = [[0f32; 16]; 25];
                    for lane in 0..V::LANES.min(columns - first) {
                        let start = row * of_row + (first + lane) * of_column;
                        for tap in 0..area {
                            // SAFETY: the kernel is one of those that the weights hold.
                            taps[tap][lane] = unsafe { *self.weights.get_unchecked(start + tap) };
                        }
                    }
                    let mut g = [[V::splat(0.0); R]; R];
                    for u in 0..R {
                        for v in 0..R {
                            g[u][v] = V::of(&taps[u * R + v]);
                        }
                    }
                    // SAFETY: a row has room for whole registers.
                    unsafe { kernel::<V, A, R>(g, to.add(row * stride + first), points) };
                }
            }
        }
    }
}

/// Numbers from one row of a matrix to the next: whole registers.
#[inline(always)]
pub(super) fn row_stride(columns: usize, lanes: usize) -> usize {
    columns.next_multiple_of(lanes)
}
