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

    /// The larger of both, lane by lane; `other` where one of them is NaN.
    fn max(self, other: Self) -> Self;

    /// Itself where `a` equals `b`, else zero.
    fn where_equal(self, a: Self, b: Self) -> Self;

    /// Sum of the lanes, always in the same order.
    fn sum(self) -> f32;
}

/// Plain numbers: for machines without any of the instruction sets below.
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

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Vector;
    use std::arch::x86_64::*;

    /// Eight lanes with fused multiply-add.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx2(__m256);

    // SAFETY of every block below: `Isa` runs code with this type only where AVX2 and FMA were detected, and
    // pointers are valid by the trait's contract.
    impl Vector for Avx2 {
        const LANES: usize = 8;

        #[inline(always)]
        fn splat(x: f32) -> Self {
            Self(unsafe { _mm256_set1_ps(x) })
        }

        #[inline(always)]
        unsafe fn load(from: *const f32) -> Self {
            Self(unsafe { _mm256_loadu_ps(from) })
        }

        #[inline(always)]
        unsafe fn store(self, to: *mut f32) {
            unsafe { _mm256_storeu_ps(to, self.0) }
        }

        #[inline(always)]
        fn plus_product(self, a: Self, b: Self) -> Self {
            Self(unsafe { _mm256_fmadd_ps(a.0, b.0, self.0) })
        }

        #[inline(always)]
        fn less(self, other: Self) -> Self {
            Self(unsafe { _mm256_sub_ps(self.0, other.0) })
        }

        #[inline(always)]
        fn max(self, other: Self) -> Self {
            Self(unsafe { _mm256_max_ps(self.0, other.0) })
        }

        #[inline(always)]
        fn where_equal(self, a: Self, b: Self) -> Self {
            Self(unsafe { _mm256_and_ps(self.0, _mm256_cmp_ps::<_CMP_EQ_OQ>(a.0, b.0)) })
        }

        #[inline(always)]
        fn sum(self) -> f32 {
            unsafe {
                let four = _mm_add_ps(_mm256_castps256_ps128(self.0), _mm256_extractf128_ps::<1>(self.0));
                let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
                _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
            }
        }
    }

    /// Sixteen lanes with fused multiply-add.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx512(__m512);

    // SAFETY of every block below: `Isa` runs code with this type only where AVX-512F was detected, and
    // pointers are valid by the trait's contract.
    impl Vector for Avx512 {
        const LANES: usize = 16;

        #[inline(always)]
        fn splat(x: f32) -> Self {
            Self(unsafe { _mm512_set1_ps(x) })
        }

        #[inline(always)]
        unsafe fn load(from: *const f32) -> Self {
            Self(unsafe { _mm512_loadu_ps(from) })
        }

        #[inline(always)]
        unsafe fn store(self, to: *mut f32) {
            unsafe { _mm512_storeu_ps(to, self.0) }
        }

        #[inline(always)]
        fn plus_product(self, a: Self, b: Self) -> Self {
            Self(unsafe { _mm512_fmadd_ps(a.0, b.0, self.0) })
        }

        #[inline(always)]
        fn less(self, other: Self) -> Self {
            Self(unsafe { _mm512_sub_ps(self.0, other.0) })
        }

        #[inline(always)]
        fn max(self, other: Self) -> Self {
            Self(unsafe { _mm512_max_ps(self.0, other.0) })
        }

        #[inline(always)]
        fn where_equal(self, a: Self, b: Self) -> Self {
            unsafe { Self(_mm512_maskz_mov_ps(_mm512_cmp_ps_mask::<_CMP_EQ_OQ>(a.0, b.0), self.0)) }
        }

        #[inline(always)]
        fn sum(self) -> f32 {
            unsafe { _mm512_reduce_add_ps(self.0) }
        }
    }
}

#[cfg(target_arch = "aarch64")]
pub(crate) use arm::Neon;

#[cfg(target_arch = "aarch64")]
mod arm {
    use super::Vector;
    use std::arch::aarch64::*;

    /// Two registers of four lanes with fused multiply-add.
    #[derive(Clone, Copy)]
    pub(crate) struct Neon(float32x4_t, float32x4_t);

    // SAFETY of every block below: NEON is part of every 64-bit ARM, and pointers are valid by the trait's
    // contract.
    impl Vector for Neon {
        const LANES: usize = 8;

        #[inline(always)]
        fn splat(x: f32) -> Self {
            unsafe { Self(vdupq_n_f32(x), vdupq_n_f32(x)) }
        }

        #[inline(always)]
        unsafe fn load(from: *const f32) -> Self {
            unsafe { Self(vld1q_f32(from), vld1q_f32(from.add(4))) }
        }

        #[inline(always)]
        unsafe fn store(self, to: *mut f32) {
            unsafe {
                vst1q_f32(to, self.0);
                vst1q_f32(to.add(4), self.1);
            }
        }

        #[inline(always)]
        fn plus_product(self, a: Self, b: Self) -> Self {
            unsafe { Self(vfmaq_f32(self.0, a.0, b.0), vfmaq_f32(self.1, a.1, b.1)) }
        }

        #[inline(always)]
        fn less(self, other: Self) -> Self {
            unsafe { Self(vsubq_f32(self.0, other.0), vsubq_f32(self.1, other.1)) }
        }

        #[inline(always)]
        fn max(self, other: Self) -> Self {
            unsafe { Self(vmaxq_f32(self.0, other.0), vmaxq_f32(self.1, other.1)) }
        }

        #[inline(always)]
        fn where_equal(self, a: Self, b: Self) -> Self {
            let keep = |x, a, b| unsafe {
                vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(x), vceqq_f32(a, b)))
            };
            Self(keep(self.0, a.0, b.0), keep(self.1, a.1, b.1))
        }

        #[inline(always)]
        fn sum(self) -> f32 {
            unsafe { vaddvq_f32(vaddq_f32(self.0, self.1)) }
        }
    }
}
