//! The transforms of one tile, between memory and registers; the matrices are in the module above.
//!
//! Rows of opposite points share their even and odd parts, which halves the operations.

use crate::kernels::vector::Vector;

/// The positive points, a and b or 1.
#[inline(always)]
fn point<const A: usize>(pair: usize) -> f32 {
    match (A, pair) {
        (4, _) => 1.0,
        (_, 0) => std::f32::consts::SQRT_2,
        _ => std::f32::consts::FRAC_1_SQRT_2,
    }
}

/// Their squares, which are exact.
#[inline(always)]
fn square<const A: usize>(pair: usize) -> f32 {
    match (A, pair) {
        (4, _) => 1.0,
        (_, 0) => 2.0,
        _ => 0.5,
    }
}

/// 1 / N_i.
#[inline(always)]
fn scale<const A: usize>(i: usize) -> f32 {
    match (A, i) {
        (4, 0) => -1.0,
        (4, 1 | 2) => 0.5,
        (6, 1 | 2) => 1.0 / 6.0,
        (6, 3 | 4) => -1.0 / 1.5,
        _ => 1.0,
    }
}

/// A c: the polynomial with coefficients c at every point.
#[inline(always)]
fn at_points<V: Vector, const N: usize, const A: usize>(c: [V; N]) -> [V; A] {
    let mut out = [c[0]; A];
    for pair in 0..A / 2 - 1 {
        let (p, pp) = (V::splat(point::<A>(pair)), V::splat(square::<A>(pair)));
        let mut even = c[0];
        let mut odd = c[1];
        if N > 2 {
            let last = if N > 4 { c[2].plus_product(c[N - 1], pp) } else { c[2] };
            even = even.plus_product(last, pp);
        }
        if N > 3 {
            odd = odd.plus_product(c[3], pp);
        }
        out[1 + 2 * pair] = even.plus_product(odd, p);
        out[2 + 2 * pair] = even.less_product(odd, p);
    }
    out[A - 1] = c[N - 1];
    out
}

/// Aᵀ m: the transpose of the above.
#[inline(always)]
fn collected<V: Vector, const A: usize, const N: usize>(m: [V; A]) -> [V; N] {
    let mut out = [V::splat(0.0); N];
    for j in 0..N {
        let mut sum = if j == 0 { m[0] } else { V::splat(0.0) };
        for pair in 0..A / 2 - 1 {
            let (plus, minus) = (m[1 + 2 * pair], m[2 + 2 * pair]);
            let part = if j % 2 == 0 { plus.plus(minus) } else { plus.less(minus) };
            let power = match j {
                0 => 1.0,
                1 => point::<A>(pair),
                2 => square::<A>(pair),
                3 => square::<A>(pair) * point::<A>(pair),
                _ => square::<A>(pair) * square::<A>(pair),
            };
            sum = match (j, pair) {
                (0, _) => sum.plus(part),
                (_, 0) => part.times(V::splat(power)),
                _ => sum.plus_product(part, V::splat(power)),
            };
        }
        out[j] = if j == N - 1 { sum.plus(m[A - 1]) } else { sum };
    }
    out
}

/// Bᵀ d.
#[inline(always)]
fn interpolating<V: Vector, const A: usize>(d: [V; A]) -> [V; A] {
    let mut out = d;
    if A == 4 {
        out[0] = d[2].less(d[0]);
        out[1] = d[2].plus(d[1]);
        out[2] = d[2].less(d[1]);
        out[3] = d[3].less(d[1]);
        return out;
    }
    let sum = V::splat(square::<A>(0) + square::<A>(1));
    out[0] = d[0].plus(d[4]).less_product(d[2], sum);
    for pair in 0..2 {
        let (p, other) = (V::splat(point::<A>(pair)), V::splat(square::<A>(1 - pair)));
        let even = d[4].less_product(d[2], other);
        let odd = d[3].less_product(d[1], other);
        out[1 + 2 * pair] = even.plus_product(odd, p);
        out[2 + 2 * pair] = even.less_product(odd, p);
    }
    out[5] = d[1].plus(d[5]).less_product(d[3], sum);
    out
}

/// B m: the transpose of the above.
#[inline(always)]
fn interpolated<V: Vector, const A: usize>(m: [V; A]) -> [V; A] {
    let mut out = m;
    let (plus, minus) = (m[1].plus(m[2]), m[1].less(m[2]));
    if A == 4 {
        out[0] = V::splat(0.0).less(m[0]);
        out[1] = minus.less(m[3]);
        out[2] = plus.plus(m[0]);
        return out;
    }
    let sum = V::splat(square::<A>(0) + square::<A>(1));
    let [of_first, of_second] = [V::splat(square::<A>(1)), V::splat(square::<A>(0))];
    let minus = minus.times(V::splat(point::<A>(0)));
    let (plus2, minus2) = (m[3].plus(m[4]), m[3].less(m[4]).times(V::splat(point::<A>(1))));
    let (first, last) = (m[0], m[5]);
    out[1] = last.less_product(minus, of_first).less_product(minus2, of_second);
    out[2] =
        V::splat(0.0).less_product(first, sum).less_product(plus, of_first).less_product(plus2, of_second);
    out[3] = minus.plus(minus2).less_product(last, sum);
    out[4] = first.plus(plus).plus(plus2);
    out
}

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
