//! Registers of x86-64: AVX2 and AVX-512.

use super::vector::Vector;
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
