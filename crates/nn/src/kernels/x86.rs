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
    const REGISTERS: usize = 16;

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
    fn less_product(self, a: Self, b: Self) -> Self {
        Self(unsafe { _mm256_fnmadd_ps(a.0, b.0, self.0) })
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        Self(unsafe { _mm256_add_ps(self.0, other.0) })
    }

    #[inline(always)]
    fn times(self, other: Self) -> Self {
        Self(unsafe { _mm256_mul_ps(self.0, other.0) })
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

    #[inline(always)]
    unsafe fn transpose(from: *const f32, from_row: usize, to: *mut f32, to_row: usize) {
        unsafe {
            // Rows i and i + 4 side by side, so that all that follows stays within halves.
            let load = |i: usize, j: usize| {
                let low = _mm256_castps128_ps256(_mm_loadu_ps(from.add(i * from_row + j)));
                _mm256_insertf128_ps::<1>(low, _mm_loadu_ps(from.add((i + 4) * from_row + j)))
            };
            for j in [0, 4] {
                let (a, b, c, d) = (load(0, j), load(1, j), load(2, j), load(3, j));
                let (ab, ab2) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
                let (cd, cd2) = (_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
                let columns = [
                    _mm256_shuffle_ps::<0x44>(ab, cd),
                    _mm256_shuffle_ps::<0xee>(ab, cd),
                    _mm256_shuffle_ps::<0x44>(ab2, cd2),
                    _mm256_shuffle_ps::<0xee>(ab2, cd2),
                ];
                for k in 0..4 {
                    _mm256_storeu_ps(to.add((j + k) * to_row), columns[k]);
                }
            }
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
    const REGISTERS: usize = 32;

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
    fn less_product(self, a: Self, b: Self) -> Self {
        Self(unsafe { _mm512_fnmadd_ps(a.0, b.0, self.0) })
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        Self(unsafe { _mm512_add_ps(self.0, other.0) })
    }

    #[inline(always)]
    fn times(self, other: Self) -> Self {
        Self(unsafe { _mm512_mul_ps(self.0, other.0) })
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

    #[inline(always)]
    unsafe fn transpose(from: *const f32, from_row: usize, to: *mut f32, to_row: usize) {
        unsafe {
            // Rows i, i + 4, i + 8 and i + 12 side by side, so that all that follows stays within quarters.
            let load = |i: usize, j: usize| {
                let row = |i: usize| _mm_loadu_ps(from.add(i * from_row + j));
                let rows = _mm512_castps128_ps512(row(i));
                let rows = _mm512_insertf32x4::<1>(rows, row(i + 4));
                let rows = _mm512_insertf32x4::<2>(rows, row(i + 8));
                _mm512_insertf32x4::<3>(rows, row(i + 12))
            };
            for j in [0, 4, 8, 12] {
                let (a, b, c, d) = (load(0, j), load(1, j), load(2, j), load(3, j));
                let (ab, ab2) = (_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
                let (cd, cd2) = (_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
                let columns = [
                    _mm512_shuffle_ps::<0x44>(ab, cd),
                    _mm512_shuffle_ps::<0xee>(ab, cd),
                    _mm512_shuffle_ps::<0x44>(ab2, cd2),
                    _mm512_shuffle_ps::<0xee>(ab2, cd2),
                ];
                for k in 0..4 {
                    _mm512_storeu_ps(to.add((j + k) * to_row), columns[k]);
                }
            }
        }
    }
}
