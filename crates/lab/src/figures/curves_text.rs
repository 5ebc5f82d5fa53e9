//! Curves as text for a terminal.

use std::fmt::Write as _;

/// Marks of the curves, in their order.
pub const MARKS: [char; 8] = ['o', '+', 'x', '#', '*', '%', '@', '&'];

/// Draws curves over rounds in `width` by `height` characters, with an axis in per cent; unknown values leave gaps.
///
/// Where curves overlap, the first one is on top.
pub fn curves_text(curves: &[Vec<Option<f64>>], width: usize, height: usize) -> String {
    let points = || curves.iter().flatten().copied().flatten();
    let (low, high) = (points().fold(1.0, f64::min), points().fold(0.0, f64::max));
    let rounds = curves.iter().map(Vec::len).max().unwrap_or(0);
    if rounds < 2 || high <= low || height < 2 || width < 2 {
        return String::new();
    }
    let mut field = vec![vec![' '; width]; height];
    for (place, curve) in curves.iter().enumerate().rev() {
        let nearest = |column: usize| (column * (rounds - 1) + (width - 1) / 2) / (width - 1);
        let known = |column: usize| Some((column, (*curve.get(nearest(column))?)?));
        for (column, value) in (0..width).filter_map(known) {
            let row = ((high - value) / (high - low) * (height - 1) as f64).round() as usize;
            field[row][column] = MARKS[place % MARKS.len()];
        }
    }
    let mut text = String::new();
    for (row, line) in field.iter().enumerate() {
        let value = high - (high - low) * row as f64 / (height - 1) as f64;
        let line: String = line.iter().collect();
        let _ = writeln!(text, "{:5.1} % │{}", 100.0 * value, line.trim_end());
    }
    let _ = writeln!(text, "        └{}", "─".repeat(width));
    let _ = writeln!(text, "         1{:>1$}", format!("round {rounds}"), width - 1);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rising_curve_goes_from_bottom_left_to_top_right() {
        let text = curves_text(&[vec![Some(0.1), Some(0.2), Some(0.3)]], 9, 3);
        let expected =
            " 30.0 % │      ooo\n 20.0 % │  oooo\n 10.0 % │oo\n        └─────────\n         1 round 3\n";
        assert_eq!(text, expected, "\n{text}");
    }

    #[test]
    fn a_round_without_a_value_leaves_a_gap() {
        let text = curves_text(&[vec![None, Some(0.1), Some(0.3)]], 9, 2);
        assert_eq!(text, " 30.0 % │      ooo\n 10.0 % │  oooo\n        └─────────\n         1 round 3\n");
    }

    #[test]
    fn empty_curves_draw_nothing() {
        assert_eq!(curves_text(&[], 10, 5), "");
        assert_eq!(curves_text(&[vec![Some(0.5)]], 10, 5), "");
    }
}
