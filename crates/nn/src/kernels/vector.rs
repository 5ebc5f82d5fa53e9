//! A register of numbers, one per sample of a lane group: what each instruction set offers of it.

/// A vector register. Every operation is exact or rounded once, so its bits depend on nothing else.
pub(crate) trait Vector: Copy {
    /// How many numbers it holds.
    const LANES: usize;

    /// How many of them the machine has.
    const REGISTERS: usize;

    /// The same number in every lane.
    fn splat(x: f32) -> Self;

    /// Reads `LANES` numbers.
    ///
    /// # Safety
    /// `from` must be valid for reading `LANES` numbers.
    unsafe fn load(from: *const f32) -> Self;

    /// Writes `LANES` numbers.
    ///
    /// # Safety
    /// `to` must be valid for writing `LANES` numbers.
    unsafe fn store(self, to: *mut f32);

    /// The first `LANES` numbers of a slice.
    #[inline(always)]
    fn of(from: &[f32]) -> Self {
        assert!(from.len() >= Self::LANES);
        // SAFETY: the slice is long enough.
        unsafe { Self::load(from.as_ptr()) }
    }

    /// Becomes the first `LANES` numbers of a slice.
    #[inline(always)]
    fn put(self, to: &mut [f32]) {
        assert!(to.len() >= Self::LANES);
        // SAFETY: the slice is long enough.
        unsafe { self.store(to.as_mut_ptr()) }
    }

    /// self + a * b, rounded once where the hardware can.
    fn plus_product(self, a: Self, b: Self) -> Self;

    /// self - a * b, rounded once where the hardware can.
    fn less_product(self, a: Self, b: Self) -> Self;

    /// self + other.
    fn plus(self, other: Self) -> Self;

    /// self * other.
    fn times(self, other: Self) -> Self;

    /// self - other.
    fn less(self, other: Self) -> Self;

    /// The larger of both, lane by lane; `other` if one of them is NaN.
    fn max(self, other: Self) -> Self;

    /// Itself where `a` equals `b`, else zero.
    fn where_equal(self, a: Self, b: Self) -> Self;

    /// Sum of the lanes, always in the same order.
    fn sum(self) -> f32;

    /// Exchanges rows and columns of a square of `LANES` x `LANES` numbers. Rows are `from_row` and `to_row` numbers apart.
    ///
    /// # Safety
    /// All rows must be valid for reading or writing `LANES` numbers, and the squares must not overlap.
    unsafe fn transpose(from: *const f32, from_row: usize, to: *mut f32, to_row: usize);
}

/// Exchanges rows and columns of a square of `LANES` x `LANES` numbers. Rows are `from_row` and `to_row` numbers apart.
#[inline(always)]
pub(crate) fn transpose<V: Vector>(from: &[f32], from_row: usize, to: &mut [f32], to_row: usize) {
    let reach = |row: usize| (V::LANES - 1) * row + V::LANES;
    assert!(from.len() >= reach(from_row) && to.len() >= reach(to_row), "the square lies in both slices");
    assert!(from_row >= V::LANES && to_row >= V::LANES, "rows do not overlap");
    // SAFETY: all rows lie in the slices, which do not overlap.
    unsafe { V::transpose(from.as_ptr(), from_row, to.as_mut_ptr(), to_row) }
}

/// An array of numbers, for machines without any of the instruction sets below.
#[derive(Clone, Copy)]
pub(crate) struct Plain<const N: usize>([f32; N]);

impl<const N: usize> Vector for Plain<N> {
    const LANES: usize = N;
    const REGISTERS: usize = 16;

    #[inline(always)]
    fn splat(x: f32) -> Self {
        Self([x; N])
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the caller promises N readable numbers; arrays of f32 have its alignment.
        Self(unsafe { from.cast::<[f32; N]>().read() })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller promises N writable numbers.
        unsafe { to.cast::<[f32; N]>().write(self.0) }
    }

    #[inline(always)]
    fn plus_product(mut self, a: Self, b: Self) -> Self {
        for lane in 0..N {
            self.0[lane] += a.0[lane] * b.0[lane];
        }
        self
    }

    #[inline(always)]
    fn less_product(mut self, a: Self, b: Self) -> Self {
        for lane in 0..N {
            self.0[lane] -= a.0[lane] * b.0[lane];
        }
        self
    }

    #[inline(always)]
    fn plus(mut self, other: Self) -> Self {
        for lane in 0..N {
            self.0[lane] += other.0[lane];
        }
        self
    }

    #[inline(always)]
    fn times(mut self, other: Self) -> Self {
        for lane in 0..N {
            self.0[lane] *= other.0[lane];
        }
        self
    }

    #[inline(always)]
    fn less(mut self, other: Self) -> Self {
        for lane in 0..N {
            self.0[lane] -= other.0[lane];
        }
        self
    }

    #[inline(always)]
    fn max(mut self, other: Self) -> Self {
        for lane in 0..N {
            self.0[lane] = if self.0[lane] > other.0[lane] { self.0[lane] } else { other.0[lane] };
        }
        self
    }

    #[inline(always)]
    fn where_equal(mut self, a: Self, b: Self) -> Self {
        for lane in 0..N {
            self.0[lane] = if a.0[lane] == b.0[lane] { self.0[lane] } else { 0.0 };
        }
        self
    }

    #[inline(always)]
    fn sum(self) -> f32 {
        let (mut sums, mut width) = (self.0, N / 2);
        while width > 0 {
            for lane in 0..width {
                sums[lane] += sums[lane + width];
            }
            width /= 2;
        }
        sums[0]
    }
    #[inline(always)]
    unsafe fn transpose(from: *const f32, from_row: usize, to: *mut f32, to_row: usize) {
        for i in 0..N {
            for j in 0..N {
                // SAFETY: by the trait's contract.
                unsafe { *to.add(j * to_row + i) = *from.add(i * from_row + j) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::kernels::isa::{Isa, Work};
    use crate::kernels::vector::Vector;

    struct Check;

    impl Work for Check {
        fn run<V: Vector>(self) {
            let n = V::LANES;
            let from: Vec<f32> = (0..n * (n + 3)).map(|i| i as f32).collect();
            let mut to = vec![-1.0; n * (n + 1)];
            // SAFETY: both have n rows of n numbers.
            unsafe { V::transpose(from.as_ptr(), n + 3, to.as_mut_ptr(), n + 1) };
            for i in 0..n {
                for j in 0..n {
                    assert_eq!(to[j * (n + 1) + i], from[i * (n + 3) + j]);
                }
                assert_eq!(to[i * (n + 1) + n], -1.0);
            }
            let (a, b, c) = (V::of(&from[1..]), V::of(&from[n..]), V::splat(3.0));
            let mut lanes = vec![0.0; n];
            for (found, right) in [
                (a.plus(b), [1.0, 1.0, 0.0]),
                (a.less(b), [1.0, -1.0, 0.0]),
                (a.plus_product(b, c), [1.0, 3.0, 0.0]),
                (a.less_product(b, c), [1.0, -3.0, 0.0]),
                (a.times(b), [0.0, 0.0, 1.0]),
            ] {
                found.put(&mut lanes);
                for i in 0..n {
                    let (a, b) = (from[1 + i], from[n + i]);
                    assert_eq!(lanes[i], right[0] * a + right[1] * b + right[2] * a * b);
                }
            }
        }
    }

    #[test]
    fn every_instruction_set_computes_and_transposes_alike() {
        Isa::available().into_iter().for_each(|isa| isa.run(Check));
    }
}
