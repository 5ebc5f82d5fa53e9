//! Where a convolution's tiles lie in a map.

use crate::kernels::vector::Vector;
use crate::map::Map;

/// The tiles of a map's outputs, numbered group by group, row by row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tiles {
    out: usize,
    down: usize,
    across: usize,
}

/// A tile: its group and its first output.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tile {
    pub(super) group: usize,
    pub(super) y: usize,
    pub(super) x: usize,
}

impl Tiles {
    pub(super) fn of(map: &Map, out: usize) -> Self {
        Self { out, down: map.shape[1].div_ceil(out), across: map.shape[2].div_ceil(out) }
    }

    pub(super) fn count(&self, groups: usize) -> usize {
        groups * self.down * self.across
    }

    /// The n-th tile.
    #[inline(always)]
    pub(super) fn tile(&self, n: usize) -> Tile {
        let (row, x) = (n / self.across, n % self.across * self.out);
        Tile { group: row / self.down, y: row % self.down * self.out, x }
    }
}

/// Some square of a map's pixels: of all channels of a group, from row y and column x on, perhaps beyond the borders.
#[derive(Clone, Copy, Debug)]
pub(super) struct Square {
    /// Where channel 0 starts in memory, if the whole square lies in memory.
    whole: Option<usize>,
    group: usize,
    y: isize,
    x: isize,
}

impl Square {
    /// The square with `side` rows whose first pixel is (y, x), which may be negative.
    #[inline(always)]
    pub(super) fn new(map: &Map, side: usize, group: usize, y: isize, x: isize) -> Self {
        let [border, side] = [map.border as isize, side as isize];
        let inside = |at: isize, size: usize| at >= -border && at + side <= size as isize + border;
        let whole = inside(y, map.shape[1]) && inside(x, map.shape[2]);
        Self { whole: whole.then(|| map.at(group, 0, y, x)), group, y, x }
    }

    /// A channel's pixels: where they start, and how far apart rows are. Squares that are not whole are copied into
    /// `spare`, with zeros outside of the map.
    ///
    /// # Safety
    /// The map must have the group and the channel and lie in `values`, and `spare` must hold the square.
    #[inline(always)]
    pub(super) unsafe fn read<V: Vector, const A: usize>(
        &self,
        map: &Map,
        channel: usize,
        values: *const f32,
        spare: *mut f32,
    ) -> (*const f32, usize) {
        if let Some(start) = self.whole {
            // SAFETY: the square is inside the map, with its border.
            return (unsafe { values.add(start + channel * map.channel()) }, map.row());
        }
        for i in 0..A {
            for j in 0..A {
                let (y, x) = (self.y + i as isize, self.x + j as isize);
                let inside = y >= 0 && x >= 0 && y < map.shape[1] as isize && x < map.shape[2] as isize;
                // SAFETY: the pixel is inside the map, and `spare` holds the square.
                unsafe {
                    let pixel = match inside {
                        true => V::load(values.add(map.at(self.group, channel, y, x))),
                        false => V::splat(0.0),
                    };
                    pixel.store(spare.add((i * A + j) * V::LANES));
                }
            }
        }
        (spare, A * V::LANES)
    }
}
