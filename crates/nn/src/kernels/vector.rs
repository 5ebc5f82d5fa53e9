//! A register of numbers, one per sample of a lane group: what each instruction set offers of it.

/// A vector register. Every operation is exact or rounded once, so its bits depend on nothing else.
pub(crate) trait Vector: Copy {
    /// How many numbers it holds.
    const LANES: usize;

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

    /// self - other.
    fn less(self, other: Self) -> Self;

    /// The larger of both, lane by lane; `other` if one of them is NaN.
    fn max(self, other: Self) -> Self;

    /// Itself where `a` equals `b`, else zero.
    fn where_equal(self, a: Self, b: Self) -> Self;

    /// Sum of the lanes, always in the same order.
    fn sum(self) -> f32;
}

/// An array of numbers, for machines without any of the instruction sets below.
#[derive(Clone, Copy)]
pub(crate) struct Plain<const N: usize>([f32; N]);

impl<const N: usize> Vector for Plain<N> {
    const LANES: usize = N;

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
}
