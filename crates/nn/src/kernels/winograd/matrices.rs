//! Products with the matrices A, B and G of the module above, of one row or column of a tile.
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
pub(super) fn scale<const A: usize>(i: usize) -> f32 {
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
pub(super) fn at_points<V: Vector, const N: usize, const A: usize>(c: [V; N]) -> [V; A] {
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
pub(super) fn collected<V: Vector, const A: usize, const N: usize>(m: [V; A]) -> [V; N] {
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
pub(super) fn interpolating<V: Vector, const A: usize>(d: [V; A]) -> [V; A] {
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
pub(super) fn interpolated<V: Vector, const A: usize>(m: [V; A]) -> [V; A] {
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
