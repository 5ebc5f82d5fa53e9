//! A dense matrix product of panels, as many columns as registers hold sums of:
//!
//! ```text
//! c[r, p] = start + Σ_k a[r, k] * b[k, p]      start: 0, or what c holds
//! ```
//!
//! `a` holds numbers, `b` and `c` registers. A matrix of registers lies panel by panel, and within a panel row by row, so that
//! a product reads it from front to back.

use crate::kernels::product::even_parts;
use crate::kernels::vector::Vector;

/// Columns of a panel: 6 x 2 sums, a weight and two columns fit sixteen registers; 6 x 4 and four columns thirty-two.
#[inline(always)]
pub(super) fn width<V: Vector>() -> usize {
    if V::REGISTERS >= 32 { 4 } else { 2 }
}

/// Where row `row` of column `column` starts in a matrix of `rows` x `columns` registers.
#[inline(always)]
pub(super) fn place<V: Vector>(rows: usize, columns: usize, row: usize, column: usize) -> usize {
    let (panel, within) = (column / width::<V>() * width::<V>(), column % width::<V>());
    let wide = width::<V>().min(columns - panel);
    (panel * rows + row * wide + within) * V::LANES
}

/// Sizes of a product, the rows that a panel of `b` has room for, and how many numbers apart the rows of `a` and of `c` are.
/// `c_row` of none: `c` lies in panels, too.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) rows: usize,
    pub(super) depth: usize,
    pub(super) columns: usize,
    pub(super) b_rows: usize,
    pub(super) a_row: usize,
    pub(super) c_row: Option<usize>,
    pub(super) adds: bool,
}

/// Computes it.
///
/// # Safety
/// The matrices must have the sizes, and `c` must not overlap the others.
#[inline(always)]
pub(super) unsafe fn multiply<V: Vector>(shape: Shape, a: *const f32, b: *const f32, c: *mut f32) {
    let mut first = 0;
    while first < shape.columns {
        let wide = width::<V>().min(shape.columns - first);
        let c_row = shape.c_row.unwrap_or(wide * V::LANES);
        // SAFETY: by this function's contract.
        unsafe {
            let b = b.add(first * shape.b_rows * V::LANES);
            let c = match shape.c_row {
                None => c.add(first * shape.rows * V::LANES),
                Some(_) => c.add(first * V::LANES),
            };
            match wide {
                1 => panel::<V, 1>(shape, c_row, a, b, c),
                2 => panel::<V, 2>(shape, c_row, a, b, c),
                3 if V::REGISTERS >= 32 => panel::<V, 3>(shape, c_row, a, b, c),
                _ if V::REGISTERS >= 32 => panel::<V, 4>(shape, c_row, a, b, c),
                _ => unreachable!("a panel of two columns"),
            }
        }
        first += wide;
    }
}

#[inline(always)]
unsafe fn panel<V: Vector, const P: usize>(
    shape: Shape,
    c_row: usize,
    a: *const f32,
    b: *const f32,
    c: *mut f32,
) {
    let mut row = 0;
    for rows in even_parts(shape.rows, 6) {
        // SAFETY: by the caller's contract.
        unsafe {
            let (a, c) = (a.add(row * shape.a_row), c.add(row * c_row));
            match rows {
                1 => block::<V, 1, P>(shape, c_row, a, b, c),
                2 => block::<V, 2, P>(shape, c_row, a, b, c),
                3 => block::<V, 3, P>(shape, c_row, a, b, c),
                4 => block::<V, 4, P>(shape, c_row, a, b, c),
                5 => block::<V, 5, P>(shape, c_row, a, b, c),
                _ => block::<V, 6, P>(shape, c_row, a, b, c),
            }
        }
        row += rows;
    }
}

#[inline(always)]
unsafe fn block<V: Vector, const R: usize, const P: usize>(
    shape: Shape,
    c_row: usize,
    a: *const f32,
    b: *const f32,
    c: *mut f32,
) {
    // SAFETY: by the caller's contract.
    unsafe {
        let mut sum = [[V::splat(0.0); P]; R];
        if shape.adds {
            for r in 0..R {
                for p in 0..P {
                    sum[r][p] = V::load(c.add(r * c_row + p * V::LANES));
                }
            }
        }
        for k in 0..shape.depth {
            let mut column = [V::splat(0.0); P];
            for p in 0..P {
                column[p] = V::load(b.add((k * P + p) * V::LANES));
            }
            for r in 0..R {
                let weight = V::splat(*a.add(r * shape.a_row + k));
                for p in 0..P {
                    sum[r][p] = sum[r][p].plus_product(weight, column[p]);
                }
            }
        }
        for r in 0..R {
            for p in 0..P {
                sum[r][p].store(c.add(r * c_row + p * V::LANES));
            }
        }
    }
}
