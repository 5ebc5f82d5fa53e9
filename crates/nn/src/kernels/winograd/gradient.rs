//! dg: the gradient of a convolution's weights. The lanes of its sums are input channels, so that no sum over lanes is
//! needed: the transformed inputs are transposed, and samples and tiles are what is summed over.

use super::kernels::row_stride;
use super::panels::{Shape, multiply, place};
use super::tiles::{Block, Square, Tiles};
use super::transforms::{input, kernel_gradient, output_gradient};
use super::{BLOCK, Scheme, apart};
use crate::kernels::isa::{Isa, Work};
use crate::kernels::vector::Vector;
use crate::map::Map;

/// One gradient; see the module.
pub(crate) struct WeightGradient<'a> {
    pub(crate) scheme: Scheme,
    pub(crate) x: &'a [f32],
    pub(crate) from: Map,
    pub(crate) dy: &'a [f32],
    pub(crate) to: Map,
    /// Zeros around x.
    pub(crate) pad: usize,
    pub(crate) samples: usize,
    /// Is set, not added to.
    pub(crate) gradient: &'a mut [f32],
    /// At least `scratch` numbers.
    pub(crate) scratch: &'a mut [f32],
}

/// Numbers of samples and tiles that a block sums over at most.
const DEPTH: usize = 2 * BLOCK;

/// Numbers of the transformed gradients of a block, of its inputs, and of the sums.
fn parts(scheme: Scheme, from: &Map, to: &Map, samples: usize) -> [usize; 3] {
    let [inputs, outputs] = [row_stride(from.shape[0], from.lanes), to.shape[0]];
    let depth = DEPTH.min(Tiles::of(to, scheme.out(), samples).count() * from.lanes) + from.lanes;
    [outputs * depth, inputs * depth, outputs * inputs].map(|part| scheme.points() * apart(part))
}

/// Numbers of working memory that the gradient between these maps needs.
pub(crate) fn scratch(scheme: Scheme, from: &Map, to: &Map, samples: usize) -> usize {
    parts(scheme, from, to, samples).iter().sum()
}

impl WeightGradient<'_> {
    /// Computes it.
    ///
    /// # Panics
    /// When a slice is too short for its map.
    pub(crate) fn run(self, isa: Isa) {
        let [inputs, outputs] = [self.from.shape[0], self.to.shape[0]];
        let groups = self.samples.div_ceil(isa.lanes());
        assert_eq!(
            self.gradient.len(),
            inputs * outputs * self.scheme.kernel().pow(2),
            "one kernel per pair"
        );
        assert!(self.x.len() >= groups * self.from.group(), "all groups of the input");
        assert!(self.dy.len() >= groups * self.to.group(), "all groups of the output");
        assert!([self.from.lanes, self.to.lanes] == [isa.lanes(); 2], "maps of this set's registers");
        assert!(
            self.scratch.len() >= scratch(self.scheme, &self.from, &self.to, self.samples),
            "working memory"
        );
        isa.run(self);
    }
}

impl Work for WeightGradient<'_> {
    #[inline(always)]
    fn run<V: Vector>(self) {
        match self.scheme {
            Scheme::Two3 => self.tiled::<V, 4, 2, 3>(),
            Scheme::Four3 => self.tiled::<V, 6, 4, 3>(),
            Scheme::Two5 => self.tiled::<V, 6, 2, 5>(),
        }
    }
}

impl WeightGradient<'_> {
    /// With tiles of A x A pixels and M x M outputs, and kernels of R x R.
    #[inline(always)]
    fn tiled<V: Vector, const A: usize, const M: usize, const R: usize>(mut self) {
        let [inputs, outputs] = [row_stride(self.from.shape[0], V::LANES), self.to.shape[0]];
        let [of_outputs, of_inputs, _] = parts(self.scheme, &self.from, &self.to, self.samples);
        let dm = self.scratch.as_mut_ptr();
        // SAFETY: `run` checked that the working memory has all parts.
        let (v, du) = unsafe { (dm.add(of_outputs), dm.add(of_outputs + of_inputs)) };
        let tiles = Tiles::of(&self.to, M, self.samples);
        let mut first = 0;
        while first < tiles.count() {
            let block = tiles.block(first, |samples| DEPTH / samples);
            let depth = block.tiles().len() * block.samples;
            // The last tile is written as whole registers, too.
            let rows = depth + V::LANES;
            let (dm_apart, v_apart) = (apart(outputs * rows), apart(inputs * rows));
            // SAFETY: `run` checked that the maps lie in their slices and that there is room for every block.
            unsafe {
                self.transform_gradients::<V, A, M>(&block, rows, dm, dm_apart);
                self.transform_inputs::<V, A>(&block, rows, v, v_apart);
                for point in 0..A * A {
                    let shape = Shape {
                        rows: outputs,
                        depth,
                        columns: inputs / V::LANES,
                        b_rows: rows,
                        a_row: rows,
                        c_row: Some(inputs),
                        adds: first > 0,
                    };
                    let (dm, v) = (dm.add(point * dm_apart), v.add(point * v_apart));
                    multiply::<V>(shape, dm, v, du.add(point * apart(outputs * inputs)));
                }
            }
            first += block.tiles().len();
        }
        // SAFETY: all sums are complete.
        unsafe { self.transform_sums::<V, A, R>(du) };
    }

    /// A dy Aᵀ of every tile, samples beside each other: row o, depth (tile, lane).
    #[inline(always)]
    unsafe fn transform_gradients<V: Vector, const A: usize, const M: usize>(
        &self,
        block: &Block,
        rows: usize,
        dm: *mut f32,
        apart: usize,
    ) {
        let mut spare = [0f32; 16 * 16];
        // A tile's samples follow those of the tile before it, and are written over its other lanes.
        for (n, tile) in block.tiles().iter().enumerate() {
            let square = Square::new(&self.to, M, tile.group, tile.y as isize, tile.x as isize);
            for channel in 0..self.to.shape[0] {
                // SAFETY: by the caller's contract.
                unsafe {
                    let (pixels, row) =
                        square.read::<V, M>(&self.to, channel, self.dy.as_ptr(), spare.as_mut_ptr());
                    let to = dm.add(channel * rows + n * block.samples);
                    output_gradient::<V, A, M>(pixels, row, to, apart);
                }
            }
        }
    }

    /// Bᵀ d B of every tile, channels beside each other: depth (tile, lane), column c.
    #[inline(always)]
    unsafe fn transform_inputs<V: Vector, const A: usize>(
        &self,
        block: &Block,
        rows: usize,
        v: *mut f32,
        apart: usize,
    ) {
        let mut spare = [0f32; 36 * 16];
        let mut registers = [0f32; 36 * 16 * 16];
        let inputs = self.from.shape[0];
        let columns = row_stride(inputs, V::LANES) / V::LANES;
        let square_size = V::LANES * V::LANES;
        for (n, tile) in block.tiles().iter().enumerate() {
            let (y, x) = (tile.y as isize - self.pad as isize, tile.x as isize - self.pad as isize);
            let square = Square::new(&self.from, A, tile.group, y, x);
            for column in 0..columns {
                let channels = V::LANES.min(inputs.saturating_sub(column * V::LANES));
                if channels < V::LANES {
                    registers.fill(0.0);
                }
                // SAFETY: by the caller's contract; `registers` holds a square of lanes per point.
                unsafe {
                    for lane in 0..channels {
                        let channel = column * V::LANES + lane;
                        let (pixels, row) =
                            square.read::<V, A>(&self.from, channel, self.x.as_ptr(), spare.as_mut_ptr());
                        input::<V, A>(pixels, row, registers.as_mut_ptr().add(lane * V::LANES), square_size);
                    }
                    let to = v.add(place::<V>(rows, columns, n * block.samples, column));
                    let step = place::<V>(rows, columns, 1, column) - place::<V>(rows, columns, 0, column);
                    for point in 0..A * A {
                        let from = registers.as_ptr().add(point * square_size);
                        V::transpose(from, V::LANES, to.add(point * apart), step);
                    }
                }
            }
        }
    }

    /// Gᵀ dU G of every kernel.
    #[inline(always)]
    unsafe fn transform_sums<V: Vector, const A: usize, const R: usize>(&mut self, du: *const f32) {
        let [inputs, outputs] = [self.from.shape[0], self.to.shape[0]];
        let stride = row_stride(inputs, V::LANES);
        for output in 0..outputs {
            for first in (0..inputs).step_by(V::LANES) {
                let mut taps = [[0f32; 16]; 25];
                // SAFETY: by the caller's contract; a row has whole registers.
                unsafe {
                    let from = du.add(output * stride + first);
                    let dg = kernel_gradient::<V, A, R>(from, apart(outputs * stride));
                    for u in 0..R {
                        for v in 0..R {
                            dg[u][v].store(taps[u * R + v].as_mut_ptr());
                        }
                    }
                }
                for lane in 0..V::LANES.min(inputs - first) {
                    let start = (output * inputs + first + lane) * R * R;
                    let kernel = &mut self.gradient[start..start + R * R];
                    for (tap, gradient) in kernel.iter_mut().enumerate() {
                        *gradient = taps[tap][lane];
                    }
                }
            }
        }
    }
}
