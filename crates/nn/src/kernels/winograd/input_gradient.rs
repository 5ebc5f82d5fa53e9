//! dx: the gradient of a convolution's input, tile by tile of dy. Tiles of dx overlap and are added in the tiles' order.

use super::columns::{Columns, next_block, real};
use super::kernels::{Kernels, row_stride};
use super::panels::{Shape, multiply};
use super::tiles::{Block, Square, Tiles};
use super::transforms::{input_gradient, output_gradient};
use super::{BLOCK, Scheme, apart};
use crate::kernels::isa::{Isa, Work};
use crate::kernels::vector::Vector;
use crate::map::Map;

/// One gradient; see the module.
pub(crate) struct InputGradient<'a> {
    pub(crate) scheme: Scheme,
    /// w[o, c, u, v].
    pub(crate) weights: &'a [f32],
    pub(crate) dy: &'a [f32],
    pub(crate) from: Map,
    pub(crate) dx: &'a mut [f32],
    pub(crate) to: Map,
    /// Zeros around x.
    pub(crate) pad: usize,
    pub(crate) samples: usize,
    /// Whether it is added to what `dx` holds.
    pub(crate) adds: bool,
    /// At least `scratch` numbers.
    pub(crate) scratch: &'a mut [f32],
}

/// Numbers of the transformed kernels, of a block of gradients, and of a block of results; `from` is the map of dy.
fn parts(scheme: Scheme, from: &Map, to: &Map, samples: usize) -> [usize; 3] {
    let [inputs, outputs] = [to.shape[0], from.shape[0]];
    let columns = BLOCK.min(Tiles::of(from, scheme.out(), samples).count() * from.lanes);
    [inputs * row_stride(outputs, from.lanes), outputs * columns, inputs * columns]
        .map(|part| scheme.points() * apart(part))
}

/// Numbers of working memory that the gradient between these maps needs; `from` is the map of dy.
pub(crate) fn scratch(scheme: Scheme, from: &Map, to: &Map, samples: usize) -> usize {
    parts(scheme, from, to, samples).iter().sum()
}

impl InputGradient<'_> {
    /// Computes it.
    ///
    /// # Panics
    /// When a slice is too short for its map.
    pub(crate) fn run(self, isa: Isa) {
        let [inputs, outputs] = [self.to.shape[0], self.from.shape[0]];
        let groups = self.samples.div_ceil(isa.lanes());
        assert_eq!(self.weights.len(), inputs * outputs * self.scheme.kernel().pow(2), "one kernel per pair");
        assert!(self.dy.len() >= groups * self.from.group(), "all groups of dy");
        assert!(self.dx.len() >= groups * self.to.group(), "all groups of dx");
        assert!([self.from.lanes, self.to.lanes] == [isa.lanes(); 2], "maps of this set's registers");
        assert!(
            self.scratch.len() >= scratch(self.scheme, &self.from, &self.to, self.samples),
            "working memory"
        );
        isa.run(self);
    }
}

impl Work for InputGradient<'_> {
    #[inline(always)]
    fn run<V: Vector>(self) {
        match self.scheme {
            Scheme::Two3 => self.tiled::<V, 4, 2, 3>(),
            Scheme::Four3 => self.tiled::<V, 6, 4, 3>(),
            Scheme::Two5 => self.tiled::<V, 6, 2, 5>(),
        }
    }
}

impl InputGradient<'_> {
    /// With tiles of A x A pixels and M x M outputs, and kernels of R x R.
    #[inline(always)]
    fn tiled<V: Vector, const A: usize, const M: usize, const R: usize>(mut self) {
        let [inputs, outputs] = [self.to.shape[0], self.from.shape[0]];
        let [kernels, block, _] = parts(self.scheme, &self.from, &self.to, self.samples);
        let u = self.scratch.as_mut_ptr();
        // SAFETY: `run` checked that the working memory has all parts.
        let (dm, dv) = unsafe { (u.add(kernels), u.add(kernels + block)) };
        let stride = row_stride(outputs, V::LANES);
        let kernels = Kernels { weights: self.weights, outputs, inputs, exchanged: true };
        // SAFETY: `run` checked the number of weights, and `parts` has room for all rows.
        unsafe { kernels.transform::<V, A, R>(u) };
        if !self.adds {
            self.dx[..self.samples.div_ceil(V::LANES) * self.to.group()].fill(0.0);
        }
        let tiles = Tiles::of(&self.from, M, self.samples);
        let mut first = 0;
        while first < tiles.count() {
            let block = next_block::<V>(&tiles, first);
            let columns = Columns::of::<V>(&block);
            let numbers = columns.registers * V::LANES;
            let (dm_apart, dv_apart) = (apart(outputs * numbers), apart(inputs * numbers));
            // SAFETY: `run` checked that the maps lie in their slices and that there is room for every block.
            unsafe {
                self.transform_gradients::<V, A, M>(&block, columns, dm, dm_apart);
                for point in 0..A * A {
                    let shape = Shape {
                        rows: inputs,
                        depth: outputs,
                        b_rows: outputs,
                        columns: columns.registers,
                        a_row: stride,
                        c_row: None,
                        adds: false,
                    };
                    let u = u.add(point * apart(inputs * stride));
                    multiply::<V>(shape, u, dm.add(point * dm_apart), dv.add(point * dv_apart));
                }
                self.add_results::<V, A>(&block, columns, dv, dv_apart);
            }
            first += block.tiles().len();
        }
    }

    /// A dy Aᵀ of every tile.
    #[inline(always)]
    unsafe fn transform_gradients<V: Vector, const A: usize, const M: usize>(
        &self,
        block: &Block,
        columns: Columns,
        dm: *mut f32,
        apart: usize,
    ) {
        let (mut spare, mut points) = ([0f32; 16 * 16], [0f32; 36 * 16]);
        let outputs = self.from.shape[0];
        for (n, tile) in block.tiles().iter().enumerate() {
            let square = Square::new(&self.from, M, tile.group, tile.y as isize, tile.x as isize);
            for channel in 0..outputs {
                // SAFETY: by the caller's contract.
                unsafe {
                    let (pixels, row) =
                        square.read::<V, M>(&self.from, channel, self.dy.as_ptr(), spare.as_mut_ptr());
                    let to = dm.add(columns.place::<V>(outputs, channel, n));
                    if block.samples == V::LANES {
                        output_gradient::<V, A, M>(pixels, row, to, apart);
                    } else {
                        output_gradient::<V, A, M>(pixels, row, points.as_mut_ptr(), V::LANES);
                        columns.pack::<V, A>(&points, to, apart);
                    }
                }
            }
        }
    }

    /// Adds B m Bᵀ of every tile to dx, but for what lies outside of it.
    #[inline(always)]
    unsafe fn add_results<V: Vector, const A: usize>(
        &mut self,
        block: &Block,
        columns: Columns,
        dv: *const f32,
        apart: usize,
    ) {
        let [inputs, height, width] = self.to.shape;
        let (real, one) = (real::<V>(block.samples), V::splat(1.0));
        for (n, tile) in block.tiles().iter().enumerate() {
            // Pixel (i, j) of the tile is (y + i - pad, x + j - pad) of dx.
            let inside = |start: usize, size: usize| {
                let first = self.pad.saturating_sub(start).min(A);
                (first, A.min((size + self.pad).saturating_sub(start)))
            };
            let (rows, across) = (inside(tile.y, height), inside(tile.x, width));
            let whole = rows == (0, A) && across == (0, A);
            let corner = [tile.y as isize - self.pad as isize, tile.x as isize - self.pad as isize];
            for channel in 0..inputs {
                // SAFETY: by the caller's contract, and rows and columns lie inside of dx.
                unsafe {
                    let from = dv.add(columns.place::<V>(inputs, channel, n));
                    let mut part = input_gradient::<V, A>(from, apart);
                    if block.samples < V::LANES {
                        // The other lanes hold other tiles. A closure would not be compiled for the instruction set.
                        for i in 0..A {
                            for j in 0..A {
                                part[i][j] = part[i][j].where_equal(real, one);
                            }
                        }
                    }
                    if whole {
                        let to = self.to.at(tile.group, channel, corner[0], corner[1]);
                        let to = self.dx.as_mut_ptr().add(to);
                        for i in 0..A {
                            for j in 0..A {
                                let to = to.add(i * self.to.row() + j * V::LANES);
                                V::load(to).plus(part[i][j]).store(to);
                            }
                        }
                    } else {
                        for i in rows.0..rows.1 {
                            for j in across.0..across.1 {
                                let (y, x) = (corner[0] + i as isize, corner[1] + j as isize);
                                let to = self.dx.as_mut_ptr().add(self.to.at(tile.group, channel, y, x));
                                V::load(to).plus(part[i][j]).store(to);
                            }
                        }
                    }
                }
            }
        }
    }
}
