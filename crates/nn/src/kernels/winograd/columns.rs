//! A block's tiles as the columns of a product. Where the last group of a batch has fewer samples than lanes, several tiles
//! share a register: a batch of 10 costs as many products as 10 samples, not as 16.

use super::BLOCK;
use super::panels::width;
use super::tiles::{Block, Tiles};
use crate::kernels::vector::Vector;

/// Where each tile of a block lies in a matrix of panels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Columns {
    /// Registers per row.
    pub(super) registers: usize,
    samples: usize,
    /// Tiles per panel; a tile never lies in two panels.
    tiles: usize,
}

/// Tiles with this number of samples that fit into a panel.
#[inline(always)]
fn in_panel<V: Vector>(samples: usize) -> usize {
    width::<V>() * V::LANES / samples
}

/// The next block of tiles for a product.
#[inline(always)]
pub(super) fn next_block<V: Vector>(tiles: &Tiles, first: usize) -> Block {
    tiles.block(first, |samples| BLOCK / V::LANES / width::<V>() * in_panel::<V>(samples))
}

impl Columns {
    #[inline(always)]
    pub(super) fn of<V: Vector>(block: &Block) -> Self {
        let (samples, tiles) = (block.samples, in_panel::<V>(block.samples));
        let (panels, rest) = (block.tiles().len() / tiles, block.tiles().len() % tiles);
        let registers = panels * width::<V>() + (rest * samples).div_ceil(V::LANES);
        Self { registers, samples, tiles }
    }

    /// Where the n-th tile starts in row `row` of a matrix with `rows` rows.
    #[inline(always)]
    pub(super) fn place<V: Vector>(&self, rows: usize, row: usize, n: usize) -> usize {
        let first = n / self.tiles * width::<V>();
        let wide = width::<V>().min(self.registers - first);
        (first * rows + row * wide) * V::LANES + n % self.tiles * self.samples
    }

    /// Copies the samples of a tile's points to their places, which are `apart` numbers apart.
    ///
    /// # Safety
    /// `from` must hold A x A registers, and all places must be writable.
    #[inline(always)]
    pub(super) unsafe fn pack<V: Vector, const A: usize>(&self, from: &[f32], to: *mut f32, apart: usize) {
        for point in 0..A * A {
            for lane in 0..self.samples {
                // SAFETY: by this function's contract.
                unsafe { *to.add(point * apart + lane) = *from.get_unchecked(point * V::LANES + lane) };
            }
        }
    }
}

/// Ones in the lanes that hold samples, zeros in the others.
#[inline(always)]
pub(super) fn real<V: Vector>(samples: usize) -> V {
    let mut lanes = [0f32; 16];
    lanes[..samples].fill(1.0);
    V::of(&lanes)
}
