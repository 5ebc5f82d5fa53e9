//! Where a direct convolution finds its numbers: tables of its products.

use super::Window;
use crate::kernels::product::{Place, Table, Tap};
use crate::map::Map;

/// One tap per input channel and pixel of the kernel.
pub(super) fn taps(x: &Map, window: Window) -> Vec<Tap> {
    let [high, wide] = window.kernel;
    let mut taps = Vec::with_capacity(x.shape[0] * high * wide);
    for channel in 0..x.shape[0] {
        for u in 0..high {
            for v in 0..wide {
                let b = channel * x.channel() + u * x.row() + v * x.lanes;
                taps.push(Tap { a: taps.len() as u32, b: b as u32 });
            }
        }
    }
    taps
}

/// One place per pixel of y.
pub(super) fn places(x: &Map, y: &Map, window: Window, groups: usize) -> Vec<Place> {
    let pad = window.pad as isize;
    let mut places = Vec::with_capacity(groups * y.shape[1] * y.shape[2]);
    for group in 0..groups {
        for i in 0..y.shape[1] {
            for j in 0..y.shape[2] {
                let from = |step: usize| (step * window.stride) as isize - pad;
                places.push(Place {
                    b: x.at(group, 0, from(i), from(j)) as u32,
                    c: y.at(group, 0, i as isize, j as isize) as u32,
                });
            }
        }
    }
    places
}

/// Per phase: the taps (u, v) with u = m + pad and v = n + pad modulo the stride, and the pixels of x in it.
pub(super) fn phases(x: &Map, y: &Map, window: Window, groups: usize) -> Vec<Table> {
    let (stride, [high, wide]) = (window.stride, window.kernel);
    let (lines, columns) = (stride.min(x.shape[1]), stride.min(x.shape[2]));
    let mut phases = Vec::with_capacity(lines * columns);
    for (m0, n0) in (0..lines).flat_map(|m| (0..columns).map(move |n| (m, n))) {
        let (u0, v0) = ((m0 + window.pad) % stride, (n0 + window.pad) % stride);
        // The first pixel's tap (u, v) meets dy at ((m0 + pad - u) / stride, …), which may lie in the border.
        let corner = |start: usize, tap: usize| {
            ((start + window.pad) as isize - tap as isize).div_euclid(stride as isize)
        };
        // Taps count from the farthest one, so that offsets are never negative.
        let (last_u, last_v) = (last_in_phase(high, u0, stride), last_in_phase(wide, v0, stride));
        let count = |size: usize, first: usize| (first..size).step_by(stride).len();
        let mut taps = Vec::with_capacity(y.shape[0] * count(high, u0) * count(wide, v0));
        if let (Some(last_u), Some(last_v)) = (last_u, last_v) {
            for output in 0..y.shape[0] {
                for u in (u0..high).step_by(stride) {
                    for v in (v0..wide).step_by(stride) {
                        let a = output * x.shape[0] * high * wide + u * wide + v;
                        let b = output * y.channel()
                            + (last_u - u) / stride * y.row()
                            + (last_v - v) / stride * y.lanes;
                        taps.push(Tap { a: a as u32, b: b as u32 });
                    }
                }
            }
        }
        let first = (corner(m0, last_u.unwrap_or(u0)), corner(n0, last_v.unwrap_or(v0)));
        let mut places = Vec::with_capacity(groups * count(x.shape[1], m0) * count(x.shape[2], n0));
        for group in 0..groups {
            for (i, m) in (m0..x.shape[1]).step_by(stride).enumerate() {
                for (j, n) in (n0..x.shape[2]).step_by(stride).enumerate() {
                    let b = match taps.is_empty() {
                        true => 0,
                        false => y.at(group, 0, first.0 + i as isize, first.1 + j as isize),
                    };
                    let c = x.at(group, 0, m as isize, n as isize);
                    places.push(Place { b: b as u32, c: c as u32 });
                }
            }
        }
        phases.push(Table::new(taps, places));
    }
    phases
}

fn last_in_phase(size: usize, first: usize, stride: usize) -> Option<usize> {
    (first..size).step_by(stride).next_back()
}
