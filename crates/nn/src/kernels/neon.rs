//! Registers of 64-bit ARM.

use super::vector::Vector;
use std::arch::aarch64::*;

/// Two registers of four lanes with fused multiply-add.
#[derive(Clone, Copy)]
pub(crate) struct Neon(float32x4_t, float32x4_t);

// SAFETY of every block below: NEON is part of every 64-bit ARM, and pointers are valid by the trait's
// contract.
impl Vector for Neon {
    const LANES: usize = 8;
    // Thirty-two of four lanes.
    const REGISTERS: usize = 16;

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
    fn less_product(self, a: Self, b: Self) -> Self {
        unsafe { Self(vfmsq_f32(self.0, a.0, b.0), vfmsq_f32(self.1, a.1, b.1)) }
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        unsafe { Self(vaddq_f32(self.0, other.0), vaddq_f32(self.1, other.1)) }
    }

    #[inline(always)]
    fn times(self, other: Self) -> Self {
        unsafe { Self(vmulq_f32(self.0, other.0), vmulq_f32(self.1, other.1)) }
    }

    #[inline(always)]
    fn less(self, other: Self) -> Self {
        unsafe { Self(vsubq_f32(self.0, other.0), vsubq_f32(self.1, other.1)) }
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        // Not `vmaxq_f32`, which gives NaN if either is.
        let larger = |a, b| unsafe { vbslq_f32(vcgtq_f32(a, b), a, b) };
        Self(larger(self.0, other.0), larger(self.1, other.1))
    }

    #[inline(always)]
    fn where_equal(self, a: Self, b: Self) -> Self {
        let keep =
            |x, a, b| unsafe { vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(x), vceqq_f32(a, b))) };
        Self(keep(self.0, a.0, b.0), keep(self.1, a.1, b.1))
    }

    #[inline(always)]
    fn sum(self) -> f32 {
        unsafe { vaddvq_f32(vaddq_f32(self.0, self.1)) }
    }
    #[inline(always)]
    unsafe fn transpose(from: *const f32, from_row: usize, to: *mut f32, to_row: usize) {
        // Four squares of 4 x 4, each read with its columns spread over four registers.
        for (i, j) in [(0, 0), (0, 4), (4, 0), (4, 4)] {
            unsafe {
                let row = |k: usize| vld1q_f32(from.add((i + k) * from_row + j));
                let (a, b, c, d) = (row(0), row(1), row(2), row(3));
                let (ab, ba, cd, dc) =
                    (vtrn1q_f32(a, b), vtrn2q_f32(a, b), vtrn1q_f32(c, d), vtrn2q_f32(c, d));
                let pair = |low, high| (vreinterpretq_f64_f32(low), vreinterpretq_f64_f32(high));
                let first = |(low, high)| vreinterpretq_f32_f64(vtrn1q_f64(low, high));
                let second = |(low, high)| vreinterpretq_f32_f64(vtrn2q_f64(low, high));
                let columns =
                    [first(pair(ab, cd)), first(pair(ba, dc)), second(pair(ab, cd)), second(pair(ba, dc))];
                for k in 0..4 {
                    vst1q_f32(to.add((j + k) * to_row + i), columns[k]);
                }
            }
        }
    }
}
