//! The gradient of a convolution's weights:
//!
//! ```text
//! gradient[r, k] += Σ_p Σ_lane c[r, p] * b[k, p]
//! ```
//!
//! with the same tables of taps and places as the product that made `c` from `b`.

use super::isa::{Isa, Work};
use super::product::{Place, Table, Tap, even_parts};
use super::vector::Vector;

/// One sum over places and samples; see the module.
pub(crate) struct WeightGradient<'a> {
    /// The gradient of the product's result.
    pub(crate) c: &'a [f32],
    /// From one row of `c` to the next.
    pub(crate) c_row: usize,
    pub(crate) b: &'a [f32],
    pub(crate) gradient: &'a mut [f32],
    /// From one row of the gradient to the next.
    pub(crate) gradient_row: usize,
    pub(crate) rows: usize,
    pub(crate) table: &'a Table,
    /// How many of the places, the first ones, take part.
    pub(crate) count: usize,
}

/// Places per tile: four rows of `c` stay in the first-level cache while all taps pass over them.
const TILE: usize = 128;

impl WeightGradient<'_> {
    /// Computes it.
    ///
    /// # Panics
    /// When a table points outside a slice.
    pub(crate) fn run(self, isa: Isa) {
        if self.rows == 0 || self.count == 0 || self.table.taps.is_empty() {
            return;
        }
        let (rows, lanes) = (self.rows - 1, isa.lanes());
        let farthest = rows * self.gradient_row + self.table.farthest_tap.a as usize;
        assert!(farthest < self.gradient.len(), "a row or tap outside the gradient");
        assert!(self.table.b_len(lanes) <= self.b.len(), "a tap or place outside b");
        assert!(self.table.c_len(rows * self.c_row, lanes) <= self.c.len(), "a place outside c");
        isa.run(self);
    }
}

impl Work for WeightGradient<'_> {
    #[inline(always)]
    fn run<V: Vector>(mut self) {
        for tile in self.table.places[..self.count].chunks(TILE) {
            let mut row = 0;
            for rows in row_parts(self.rows) {
                let mut first = 0;
                for count in even_parts(self.table.taps.len(), columns(rows)) {
                    let taps = &self.table.taps[first..first + count];
                    // SAFETY: `WeightGradient::run` checked that all rows, taps and places lie inside.
                    unsafe {
                        match (rows, count) {
                            (1, 1) => block::<V, 1, 1>(&mut self, row, taps, tile),
                            (1, 2) => block::<V, 1, 2>(&mut self, row, taps, tile),
                            (1, 3) => block::<V, 1, 3>(&mut self, row, taps, tile),
                            (2, 1) => block::<V, 2, 1>(&mut self, row, taps, tile),
                            (2, 2) => block::<V, 2, 2>(&mut self, row, taps, tile),
                            (2, 3) => block::<V, 2, 3>(&mut self, row, taps, tile),
                            (3, 1) => block::<V, 3, 1>(&mut self, row, taps, tile),
                            (3, 2) => block::<V, 3, 2>(&mut self, row, taps, tile),
                            (3, 3) => block::<V, 3, 3>(&mut self, row, taps, tile),
                            (4, 1) => block::<V, 4, 1>(&mut self, row, taps, tile),
                            (4, 2) => block::<V, 4, 2>(&mut self, row, taps, tile),
                            (4, 3) => block::<V, 4, 3>(&mut self, row, taps, tile),
                            (5, 1) => block::<V, 5, 1>(&mut self, row, taps, tile),
                            (5, 2) => block::<V, 5, 2>(&mut self, row, taps, tile),
                            (_, 1) => block::<V, 6, 1>(&mut self, row, taps, tile),
                            _ => block::<V, 6, 2>(&mut self, row, taps, tile),
                        }
                    }
                    first += count;
                }
                row += rows;
            }
        }
    }
}

/// Rows of each block. Sixteen registers hold 4 x 3 or 6 x 2 sums and what is multiplied.
#[inline(always)]
fn row_parts(rows: usize) -> impl Iterator<Item = usize> {
    even_parts(rows, if rows <= 6 { 6 } else { 4 })
}

/// The most columns of a block with this number of rows.
#[inline(always)]
fn columns(rows: usize) -> usize {
    if rows > 4 { 2 } else { 3 }
}

/// R rows times T taps, all sums in registers.
///
/// # Safety
/// Rows `row..row + R`, the taps and the places must lie inside the slices, and there are T taps.
#[inline(always)]
unsafe fn block<V: Vector, const R: usize, const T: usize>(
    work: &mut WeightGradient<'_>,
    row: usize,
    taps: &[Tap],
    places: &[Place],
) {
    // SAFETY: by this function's contract every pointer below stays inside its slice.
    unsafe {
        let c = work.c.as_ptr().add(row * work.c_row);
        let mut b = [work.b.as_ptr(); T];
        for t in 0..T {
            b[t] = b[t].add(taps.get_unchecked(t).b as usize);
        }
        let mut sum = [[V::splat(0.0); T]; R];
        for place in places {
            let mut column = [V::splat(0.0); T];
            for t in 0..T {
                column[t] = V::load(b[t].add(place.b as usize));
            }
            for r in 0..R {
                let above = V::load(c.add(r * work.c_row + place.c as usize));
                for t in 0..T {
                    sum[r][t] = sum[r][t].plus_product(above, column[t]);
                }
            }
        }
        for r in 0..R {
            let gradient = work.gradient.as_mut_ptr().add((row + r) * work.gradient_row);
            for t in 0..T {
                *gradient.add(taps.get_unchecked(t).a as usize) += sum[r][t].sum();
            }
        }
    }
}
