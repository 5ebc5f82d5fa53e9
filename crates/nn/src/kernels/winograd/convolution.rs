//! y: the convolution of one map into another.

use super::columns::{Columns, next_block, real};
use super::kernels::{Kernels, row_stride};
use super::panels::{Shape, multiply};
use super::tiles::{Block, Square, Tiles};
use super::transforms::{input, output};
use super::{BLOCK, Scheme, apart};
use crate::kernels::isa::{Isa, Work};
use crate::kernels::product::Start;
use crate::kernels::vector::Vector;
use crate::map::Map;

/// One convolution; see the module above.
pub(crate) struct Convolution<'a> {
    pub(crate) scheme: Scheme,
    /// w[o, c, u, v].
    pub(crate) weights: &'a [f32],
    pub(crate) x: &'a [f32],
    pub(crate) from: Map,
    pub(crate) y: &'a mut [f32],
    pub(crate) to: Map,
    /// Zeros around x.
    pub(crate) pad: usize,
    pub(crate) samples: usize,
    pub(crate) start: Start<'a>,
    /// Whether negative results become zero.
    pub(crate) relu: bool,
    /// At least `scratch` numbers.
    pub(crate) scratch: &'a mut [f32],
}

/// Numbers of the transformed kernels, of a block of inputs, and of a block of results.
fn parts(scheme: Scheme, from: &Map, to: &Map, samples: usize) -> [usize; 3] {
    let [inputs, outputs] = [from.shape[0], to.shape[0]];
    let columns = BLOCK.min(Tiles::of(to, scheme.out(), samples).count() * from.lanes);
    [outputs * row_stride(inputs, from.lanes), inputs * columns, outputs * columns]
        .map(|part| scheme.points() * apart(part))
}

/// Numbers of working memory that a convolution between these maps needs.
pub(crate) fn scratch(scheme: Scheme, from: &Map, to: &Map, samples: usize) -> usize {
    parts(scheme, from, to, samples).iter().sum()
}

impl Convolution<'_> {
    /// Computes it.
    ///
    /// # Panics
    /// When a slice is too short for its map.
    pub(crate) fn run(self, isa: Isa) {
        let [inputs, outputs] = [self.from.shape[0], self.to.shape[0]];
        let groups = self.samples.div_ceil(isa.lanes());
        assert_eq!(self.weights.len(), inputs * outputs * self.scheme.kernel().pow(2), "one kernel per pair");
        assert!(self.x.len() >= groups * self.from.group(), "all groups of the input");
        assert!(self.y.len() >= groups * self.to.group(), "all groups of the output");
        assert!([self.from.lanes, self.to.lanes] == [isa.lanes(); 2], "maps of this set's registers");
        assert!(
            self.scratch.len() >= scratch(self.scheme, &self.from, &self.to, self.samples),
            "working memory"
        );
        if let Start::Bias(bias) = self.start {
            assert!(bias.len() >= outputs, "one bias per output");
        }
        isa.run(self);
    }
}

impl Work for Convolution<'_> {
    #[inline(always)]
    fn run<V: Vector>(self) {
        match self.scheme {
            Scheme::Two3 => self.tiled::<V, 4, 2, 3>(),
            Scheme::Four3 => self.tiled::<V, 6, 4, 3>(),
            Scheme::Two5 => self.tiled::<V, 6, 2, 5>(),
        }
    }
}

impl Convolution<'_> {
    /// With tiles of A x A pixels and M x M outputs, and kernels of R x R.
    #[inline(always)]
    fn tiled<V: Vector, const A: usize, const M: usize, const R: usize>(mut self) {
        let [inputs, outputs] = [self.from.shape[0], self.to.shape[0]];
        let [kernels, block, _] = parts(self.scheme, &self.from, &self.to, self.samples);
        let u = self.scratch.as_mut_ptr();
        // SAFETY: `run` checked that the working memory has all parts.
        let (v, m) = unsafe { (u.add(kernels), u.add(kernels + block)) };
        let kernels = Kernels { weights: self.weights, outputs, inputs, exchanged: false };
        // SAFETY: `run` checked the number of weights, and `parts` has room for all rows.
        unsafe { kernels.transform::<V, A, R>(u) };
        let tiles = Tiles::of(&self.to, M, self.samples);
        let mut first = 0;
        while first < tiles.count() {
            let block = next_block::<V>(&tiles, first);
            let columns = Columns::of::<V>(&block);
            let numbers = columns.registers * V::LANES;
            let (v_apart, m_apart) = (apart(inputs * numbers), apart(outputs * numbers));
            // SAFETY: `run` checked that the maps lie in their slices and that there is room for every block.
            unsafe {
                self.transform_inputs::<V, A>(&block, columns, v, v_apart);
                for point in 0..A * A {
                    let shape = Shape {
                        rows: outputs,
                        depth: inputs,
                        b_rows: inputs,
                        columns: columns.registers,
                        a_row: row_stride(inputs, V::LANES),
                        c_row: None,
                        adds: false,
                    };
                    let u = u.add(point * apart(outputs * row_stride(inputs, V::LANES)));
                    multiply::<V>(shape, u, v.add(point * v_apart), m.add(point * m_apart));
                }
                self.transform_results::<V, A, M>(&block, columns, m, m_apart);
            }
            first += block.tiles().len();
        }
    }

    #[inline(always)]
    unsafe fn transform_inputs<V: Vector, const A: usize>(
        &self,
        block: &Block,
        columns: Columns,
        v: *mut f32,
        apart: usize,
    ) {
        let (mut spare, mut points) = ([0f32; 36 * 16], [0f32; 36 * 16]);
        let inputs = self.from.shape[0];
        for (n, tile) in block.tiles().iter().enumerate() {
            let (y, x) = (tile.y as isize - self.pad as isize, tile.x as isize - self.pad as isize);
            let square = Square::new(&self.from, A, tile.group, y, x);
            for channel in 0..inputs {
                // SAFETY: by the caller's contract.
                unsafe {
                    let (pixels, row) =
                        square.read::<V, A>(&self.from, channel, self.x.as_ptr(), spare.as_mut_ptr());
                    let to = v.add(columns.place::<V>(inputs, channel, n));
                    if block.samples == V::LANES {
                        input::<V, A>(pixels, row, to, apart);
                    } else {
                        input::<V, A>(pixels, row, points.as_mut_ptr(), V::LANES);
                        columns.pack::<V, A>(&points, to, apart);
                    }
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn transform_results<V: Vector, const A: usize, const M: usize>(
        &mut self,
        block: &Block,
        columns: Columns,
        m: *const f32,
        apart: usize,
    ) {
        let [outputs, height, width] = self.to.shape;
        let (real, one) = (real::<V>(block.samples), V::splat(1.0));
        for (n, tile) in block.tiles().iter().enumerate() {
            let (rows, across) = (M.min(height - tile.y), M.min(width - tile.x));
            for channel in 0..outputs {
                // SAFETY: by the caller's contract, and rows and columns end with the map.
                unsafe {
                    let from = m.add(columns.place::<V>(outputs, channel, n));
                    let y = output::<V, A, M>(from, apart);
                    let to = self.y.as_mut_ptr().add(self.to.at(
                        tile.group,
                        channel,
                        tile.y as isize,
                        tile.x as isize,
                    ));
                    let bias = match self.start {
                        Start::Bias(bias) => V::splat(*bias.get_unchecked(channel)),
                        _ => V::splat(0.0),
                    };
                    for i in 0..M {
                        for j in 0..M {
                            if i < rows && j < across {
                                let to = to.add(i * self.to.row() + j * V::LANES);
                                let start = match self.start {
                                    Start::Add => V::load(to),
                                    _ => bias,
                                };
                                let value = y[i][j].plus(start);
                                let value = if self.relu { V::splat(0.0).max(value) } else { value };
                                // The other lanes hold other tiles.
                                let value = match block.samples == V::LANES {
                                    true => value,
                                    false => value.where_equal(real, one),
                                };
                                value.store(to);
                            }
                        }
                    }
                }
            }
        }
    }
}
