//! The one matrix product behind convolutions and linear layers, forward and backward:
//!
//! ```text
//! c[r, p] = start + Σ_k a[r, k] * b[k, p]
//! ```
//!
//! where every `b[k, p]` and `c[r, p]` is a register of samples. Tables say where the numbers lie, so that
//! padding, stride and kernel size cost nothing inside the loop, and nothing is copied before it.

use super::isa::{Isa, Work};
use super::vector::Vector;
use crate::map::Write;

/// Where the k-th numbers of `a` and `b` lie, relative to a row and to a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tap {
    pub(crate) a: u32,
    pub(crate) b: u32,
}

/// Where the p-th columns of `b` and `c` start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) b: u32,
    pub(crate) c: u32,
}

/// All taps and places of a product, with the farthest of them, which is what bounds need to know.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) taps: Vec<Tap>,
    pub(crate) places: Vec<Place>,
    pub(super) farthest_tap: Tap,
    pub(super) farthest_place: Place,
}

impl Table {
    /// Bytes of a table with this number of taps and places.
    pub(crate) fn bytes(taps: u128, places: u128) -> u128 {
        taps * size_of::<Tap>() as u128 + places * size_of::<Place>() as u128
    }

    pub(crate) fn new(taps: Vec<Tap>, places: Vec<Place>) -> Self {
        let farthest = |of: &mut dyn Iterator<Item = u32>| of.max().unwrap_or(0);
        let farthest_tap = Tap {
            a: farthest(&mut taps.iter().map(|tap| tap.a)),
            b: farthest(&mut taps.iter().map(|tap| tap.b)),
        };
        let farthest_place = Place {
            b: farthest(&mut places.iter().map(|place| place.b)),
            c: farthest(&mut places.iter().map(|place| place.c)),
        };
        Self { taps, places, farthest_tap, farthest_place }
    }

    /// Length of `b` that registers with this number of lanes need.
    pub(super) fn b_len(&self, lanes: usize) -> usize {
        self.farthest_tap.b as usize + self.farthest_place.b as usize + lanes
    }

    /// Numbers of `c` that they reach in its last row, which starts at `row`.
    pub(super) fn c_len(&self, row: usize, lanes: usize) -> usize {
        row + self.farthest_place.c as usize + lanes
    }
}

/// What a sum starts from.
#[derive(Clone, Copy)]
pub(crate) enum Start<'a> {
    Zero,
    /// One number per row.
    Bias(&'a [f32]),
    /// What `c` holds.
    Add,
}

impl Start<'_> {
    /// Of a gradient that is written in this way.
    pub(crate) fn of(write: Write) -> Self {
        if write == Write::Add { Self::Add } else { Self::Zero }
    }
}

/// One product; see the module.
pub(crate) struct Product<'a> {
    pub(crate) a: &'a [f32],
    /// From one row of `a` to the next.
    pub(crate) a_row: usize,
    pub(crate) b: &'a [f32],
    pub(crate) c: &'a mut [f32],
    /// From one row of `c` to the next.
    pub(crate) c_row: usize,
    pub(crate) rows: usize,
    pub(crate) table: &'a Table,
    /// How many of the taps, the first ones, take part.
    pub(crate) depth: usize,
    /// How many of the places, the first ones, take part.
    pub(crate) count: usize,
    pub(crate) start: Start<'a>,
    /// Whether negative results become zero.
    pub(crate) relu: bool,
}

/// Places per tile: their part of `b` stays in the second-level cache while all rows pass over it.
const TILE: usize = 96;

/// Taps per part: the weights and columns of a block stay in the first-level cache.
const DEPTH: usize = 144;

impl Product<'_> {
    /// Computes it.
    ///
    /// # Panics
    /// When a table points outside a slice.
    pub(crate) fn run(self, isa: Isa) {
        if self.rows == 0 || self.count == 0 {
            return;
        }
        let (rows, lanes) = (self.rows - 1, isa.lanes());
        if !self.table.taps.is_empty() {
            let farthest = rows * self.a_row + self.table.farthest_tap.a as usize;
            assert!(farthest < self.a.len(), "a row or tap outside a");
            assert!(self.table.b_len(lanes) <= self.b.len(), "a tap or place outside b");
        }
        assert!(self.table.c_len(rows * self.c_row, lanes) <= self.c.len(), "a place outside c");
        if let Start::Bias(bias) = self.start {
            assert!(bias.len() >= self.rows, "one bias per row");
        }
        isa.run(self);
    }
}

impl Work for Product<'_> {
    #[inline(always)]
    fn run<V: Vector>(mut self) {
        let taps = &self.table.taps[..self.depth];
        for tile in self.table.places[..self.count].chunks(TILE) {
            let mut from = 0;
            // At least once, for products without taps.
            while from < taps.len().max(1) {
                let to = taps.len().min(from + DEPTH);
                let part = Part { taps: &taps[from..to], first: from == 0, last: to == taps.len() };
                let mut row = 0;
                for rows in even_parts(self.rows, 6) {
                    let mut first = 0;
                    for count in even_parts(tile.len(), 2) {
                        let places = &tile[first..first + count];
                        // SAFETY: `Product::run` checked that all rows, taps and places lie inside the slices.
                        unsafe {
                            match (rows, count) {
                                (1, 1) => block::<V, 1, 1>(&mut self, row, places, part),
                                (1, _) => block::<V, 1, 2>(&mut self, row, places, part),
                                (2, 1) => block::<V, 2, 1>(&mut self, row, places, part),
                                (2, _) => block::<V, 2, 2>(&mut self, row, places, part),
                                (3, 1) => block::<V, 3, 1>(&mut self, row, places, part),
                                (3, _) => block::<V, 3, 2>(&mut self, row, places, part),
                                (4, 1) => block::<V, 4, 1>(&mut self, row, places, part),
                                (4, _) => block::<V, 4, 2>(&mut self, row, places, part),
                                (5, 1) => block::<V, 5, 1>(&mut self, row, places, part),
                                (5, _) => block::<V, 5, 2>(&mut self, row, places, part),
                                (_, 1) => block::<V, 6, 1>(&mut self, row, places, part),
                                (_, _) => block::<V, 6, 2>(&mut self, row, places, part),
                            }
                        }
                        first += count;
                    }
                    row += rows;
                }
                from += DEPTH;
            }
        }
    }
}

/// Some of a product's taps.
#[derive(Clone, Copy)]
struct Part<'a> {
    taps: &'a [Tap],
    first: bool,
    last: bool,
}

/// Sizes of the fewest parts of at most `most` that make up `total`, as equal as possible, larger first.
#[inline(always)]
pub(super) fn even_parts(total: usize, most: usize) -> impl Iterator<Item = usize> {
    let parts = total.div_ceil(most);
    let (size, larger) = (total / parts.max(1), total % parts.max(1));
    (0..parts).map(move |part| size + usize::from(part < larger))
}

/// R rows times P places: at most 6 x 2 sums, which with a weight and two columns fit sixteen registers.
///
/// # Safety
/// Rows `row..row + R` and the places must lie inside the product's slices, and there are P places.
#[inline(always)]
unsafe fn block<V: Vector, const R: usize, const P: usize>(
    product: &mut Product<'_>,
    row: usize,
    places: &[Place],
    part: Part<'_>,
) {
    // SAFETY: by this function's contract every pointer below stays inside its slice.
    unsafe {
        let a = product.a.as_ptr().add(row * product.a_row);
        let c = product.c.as_mut_ptr().add(row * product.c_row);
        let mut b = [product.b.as_ptr(); P];
        for p in 0..P {
            b[p] = b[p].add(places.get_unchecked(p).b as usize);
        }
        let mut sum = [[V::splat(0.0); P]; R];
        match if part.first { product.start } else { Start::Add } {
            Start::Zero => {}
            Start::Bias(bias) => {
                for r in 0..R {
                    sum[r] = [V::splat(*bias.get_unchecked(row + r)); P];
                }
            }
            Start::Add => {
                for r in 0..R {
                    for p in 0..P {
                        sum[r][p] = V::load(c.add(r * product.c_row + places.get_unchecked(p).c as usize));
                    }
                }
            }
        }
        for tap in part.taps {
            let mut column = [V::splat(0.0); P];
            for p in 0..P {
                column[p] = V::load(b[p].add(tap.b as usize));
            }
            for r in 0..R {
                let weight = V::splat(*a.add(r * product.a_row + tap.a as usize));
                for p in 0..P {
                    sum[r][p] = sum[r][p].plus_product(weight, column[p]);
                }
            }
        }
        for r in 0..R {
            for p in 0..P {
                let value = if product.relu && part.last { V::splat(0.0).max(sum[r][p]) } else { sum[r][p] };
                value.store(c.add(r * product.c_row + places.get_unchecked(p).c as usize));
            }
        }
    }
}
