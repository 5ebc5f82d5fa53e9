//! Where a convolution's tiles lie in a map.

use super::BLOCK;
use crate::kernels::vector::Vector;
use crate::map::Map;

/// The tiles of a map's outputs, numbered group by group, row by row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tiles {
    out: usize,
    down: usize,
    across: usize,
    samples: usize,
    lanes: usize,
}

/// A tile: its group and its first output.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tile {
    pub(super) group: usize,
    pub(super) y: usize,
    pub(super) x: usize,
}

/// Tiles that are transformed together, all with the same number of samples.
pub(super) struct Block {
    tiles: [Tile; 2 * BLOCK],
    count: usize,
    /// Lanes of each tile that hold samples, the first ones.
    pub(super) samples: usize,
}

impl Block {
    pub(super) fn tiles(&self) -> &[Tile] {
        &self.tiles[..self.count]
    }
}

impl Tiles {
    pub(super) fn of(map: &Map, out: usize, samples: usize) -> Self {
        let [down, across] = [map.shape[1], map.shape[2]].map(|side| side.div_ceil(out));
        Self { out, down, across, samples, lanes: map.lanes }
    }

    pub(super) fn count(&self) -> usize {
        self.samples.div_ceil(self.lanes) * self.down * self.across
    }

    /// The tiles from number `first` on: at most as many as `most` says for their number of samples.
    #[inline(always)]
    pub(super) fn block(&self, first: usize, most: impl Fn(usize) -> usize) -> Block {
        let whole = self.samples / self.lanes * self.down * self.across;
        let (samples, end) = match first < whole {
            true => (self.lanes, whole),
            false => (self.samples % self.lanes, self.count()),
        };
        let count = most(samples).min(end - first);
        let mut tiles = [Tile::default(); 2 * BLOCK];
        for (n, tile) in tiles[..count].iter_mut().enumerate() {
            let (row, x) = ((first + n) / self.across, (first + n) % self.across * self.out);
            *tile = Tile { group: row / self.down, y: row % self.down * self.out, x };
        }
        Block { tiles, count, samples }
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
