//! The transforms of one tile, between memory and registers: the products of `matrices`, of all columns and then of all rows.

use super::matrices::{at_points, collected, interpolated, interpolating, scale};
use crate::kernels::vector::Vector;

/// dx = B m Bᵀ, the tile's part of the gradient of its input.
///
/// # Safety
/// The points must be readable.
#[inline(always)]
pub(super) unsafe fn input_gradient<V: Vector, const A: usize>(
    from: *const f32,
    apart: usize,
) -> [[V; A]; A] {
    let mut half = [[V::splat(0.0); A]; A];
    for j in 0..A {
        let mut column = [V::splat(0.0); A];
        for i in 0..A {
            // SAFETY: by this function's contract.
            column[i] = unsafe { V::load(from.add((i * A + j) * apart)) };
        }
        let column = interpolated(column);
        for i in 0..A {
            half[i][j] = column[i];
        }
    }
    for i in 0..A {
        half[i] = interpolated(half[i]);
    }
    half
}

/// V = Bᵀ d B, from pixels whose rows are `row` numbers apart to points that are `apart` numbers apart.
///
/// # Safety
/// The tile must be readable and the points writable.
#[inline(always)]
pub(super) unsafe fn input<V: Vector, const A: usize>(
    from: *const f32,
    row: usize,
    to: *mut f32,
    apart: usize,
) {
    let mut half = [[V::splat(0.0); A]; A];
    for j in 0..A {
        let mut column = [V::splat(0.0); A];
        for i in 0..A {
            // SAFETY: by this function's contract.
            column[i] = unsafe { V::load(from.add(i * row + j * V::LANES)) };
        }
        let column = interpolating(column);
        for i in 0..A {
            half[i][j] = column[i];
        }
    }
    for i in 0..A {
        let line = interpolating(half[i]);
        for j in 0..A {
            // SAFETY: by this function's contract.
            unsafe { line[j].store(to.add((i * A + j) * apart)) };
        }
    }
}

/// y = Aᵀ m A, the tile's outputs.
///
/// # Safety
/// The points must be readable.
#[inline(always)]
pub(super) unsafe fn output<V: Vector, const A: usize, const M: usize>(
    from: *const f32,
    apart: usize,
) -> [[V; M]; M] {
    // SAFETY: by this function's contract.
    unsafe { collect_both_ways::<V, A, M>(from, apart, false) }
}

/// dg = Gᵀ du G, a kernel's gradient.
///
/// # Safety
/// The points must be readable.
#[inline(always)]
pub(super) unsafe fn kernel_gradient<V: Vector, const A: usize, const R: usize>(
    from: *const f32,
    apart: usize,
) -> [[V; R]; R] {
    // SAFETY: by this function's contract.
    unsafe { collect_both_ways::<V, A, R>(from, apart, true) }
}

#[inline(always)]
unsafe fn collect_both_ways<V: Vector, const A: usize, const N: usize>(
    from: *const f32,
    apart: usize,
    scaled: bool,
) -> [[V; N]; N] {
    let mut half = [[V::splat(0.0); A]; N];
    for j in 0..A {
        let mut column = [V::splat(0.0); A];
        for i in 0..A {
            // SAFETY: by the callers' contract.
            column[i] = unsafe { V::load(from.add((i * A + j) * apart)) };
            if scaled {
                column[i] = column[i].times(V::splat(scale::<A>(i) * scale::<A>(j)));
            }
        }
        let column = collected::<V, A, N>(column);
        for i in 0..N {
            half[i][j] = column[i];
        }
    }
    let mut out = [[V::splat(0.0); N]; N];
    for i in 0..N {
        out[i] = collected::<V, A, N>(half[i]);
    }
    out
}

/// A dy Aᵀ, from pixels whose rows are `row` numbers apart.
///
/// # Safety
/// The tile must be readable and the points writable.
#[inline(always)]
pub(super) unsafe fn output_gradient<V: Vector, const A: usize, const M: usize>(
    from: *const f32,
    row: usize,
    to: *mut f32,
    apart: usize,
) {
    let mut pixels = [[V::splat(0.0); M]; M];
    for i in 0..M {
        for j in 0..M {
            // SAFETY: by this function's contract.
            pixels[i][j] = unsafe { V::load(from.add(i * row + j * V::LANES)) };
        }
    }
    // SAFETY: by this function's contract.
    unsafe { evaluate_both_ways::<V, M, A>(pixels, to, apart, false) }
}

/// U = G g Gᵀ.
///
/// # Safety
/// The points must be writable.
#[inline(always)]
pub(super) unsafe fn kernel<V: Vector, const A: usize, const R: usize>(
    g: [[V; R]; R],
    to: *mut f32,
    apart: usize,
) {
    // SAFETY: by this function's contract.
    unsafe { evaluate_both_ways::<V, R, A>(g, to, apart, true) }
}

#[inline(always)]
unsafe fn evaluate_both_ways<V: Vector, const N: usize, const A: usize>(
    c: [[V; N]; N],
    to: *mut f32,
    apart: usize,
    scaled: bool,
) {
    let mut half = [[V::splat(0.0); N]; A];
    for j in 0..N {
        let mut column = [V::splat(0.0); N];
        for i in 0..N {
            column[i] = c[i][j];
        }
        let column = at_points::<V, N, A>(column);
        for i in 0..A {
            half[i][j] = column[i];
        }
    }
    for i in 0..A {
        let line = at_points::<V, N, A>(half[i]);
        for j in 0..A {
            let value = if scaled { line[j].times(V::splat(scale::<A>(i) * scale::<A>(j))) } else { line[j] };
            // SAFETY: by the callers' contract.
            unsafe { value.store(to.add((i * A + j) * apart)) };
        }
    }
}
