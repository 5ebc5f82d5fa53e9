//! The plot area of a chart: its scales, axes and ticks.

use super::palette::Colour;
use super::scene::{Anchor, Scene, Stroke};

/// The unit of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Fractions, shown in per cent.
    Percent,
    /// Any numbers.
    Plain,
    /// Whole numbers, such as rounds and samples.
    Whole,
}

impl Unit {
    /// A tick's label with the digits that `step` requires.
    pub(crate) fn label(self, value: f64, step: f64) -> String {
        let (value, step, end) = match self {
            Self::Percent => (100.0 * value, 100.0 * step, " %"),
            Self::Plain | Self::Whole => (value, step, ""),
        };
        let digits = (-(step.log10() + 1e-9).floor()).max(0.0) as usize;
        format!("{value:.digits$}{end}")
    }

    /// At most about eight ticks between two values, and their distance; whole numbers only for `Whole`.
    fn ticks(self, ends: [f64; 2]) -> (Vec<f64>, f64) {
        let most = if self == Self::Whole { (ends[1] - ends[0]).clamp(1.0, 8.0) } else { 8.0 };
        ticks(ends, most as usize)
    }
}

/// A rectangle with the scales of its two axes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// Left, top, right and bottom edge.
    pub(crate) edges: [f64; 4],
    /// The values at the left and right edge.
    pub(crate) x: [f64; 2],
    /// The values at the bottom and top edge.
    pub(crate) y: [f64; 2],
}

impl Frame {
    /// The horizontal position of a value.
    pub(crate) fn across(&self, value: f64) -> f64 {
        let [left, _, right, _] = self.edges;
        left + (right - left) * (value - self.x[0]) / (self.x[1] - self.x[0])
    }

    /// The vertical position of a value.
    pub(crate) fn down(&self, value: f64) -> f64 {
        let [_, top, _, bottom] = self.edges;
        bottom - (bottom - top) * (value.clamp(self.y[0], self.y[1]) - self.y[0]) / (self.y[1] - self.y[0])
    }

    /// Draws grid lines and labels of the vertical axis, with its name above.
    pub(crate) fn vertical(&self, scene: &mut Scene, unit: Unit, name: &str) {
        let [left, top, right, _] = self.edges;
        let (ticks, step) = unit.ticks(self.y);
        for tick in ticks {
            let y = self.down(tick);
            scene.line([[left, y], [right, y]], Stroke::solid(Colour::Grid, 1.0));
            scene.text([left - 7.0, y + 4.0], 12.0, Anchor::End, unit.label(tick, step));
        }
        if !name.is_empty() {
            scene.text([left, top - 9.0], 12.0, Anchor::Start, name);
        }
    }

    /// Draws ticks and labels of the horizontal axis, with its name below.
    pub(crate) fn horizontal(&self, scene: &mut Scene, unit: Unit, name: &str) {
        let [left, _, right, bottom] = self.edges;
        let (ticks, step) = unit.ticks(self.x);
        for tick in ticks {
            let x = self.across(tick);
            scene.line([[x, bottom], [x, bottom + 5.0]], Stroke::solid(Colour::Grid, 1.0));
            scene.text([x, bottom + 18.0], 12.0, Anchor::Middle, unit.label(tick, step));
        }
        scene.text([0.5 * (left + right), bottom + 34.0], 12.0, Anchor::Middle, name);
    }
}

/// About `about` round numbers between two values, and their distance.
pub(crate) fn ticks([low, high]: [f64; 2], about: usize) -> (Vec<f64>, f64) {
    let rough = (high - low) / about as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|m| m * power)
        .find(|step| *step >= rough * 0.999)
        .unwrap_or(rough);
    let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
    ((first..=last).map(|tick| tick as f64 * step).collect(), step)
}

/// Bounds around the values that end on ticks; 0 to 1 if there are no values.
pub(crate) fn bounds(values: impl Iterator<Item = f64>) -> [f64; 2] {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
    if low > high {
        return [0.0, 1.0];
    }
    let wide = if high > low { high - low } else { 0.1 * high.abs().max(1e-3) };
    let (_, step) = ticks([low, low + wide], 8);
    let (first, last) = ((low / step).floor() * step, (high / step).ceil() * step);
    [first, if last > first { last } else { first + step }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers_inside_the_bounds() {
        let (ticks, step) = ticks([0.0, 1.0], 5);
        assert_eq!((ticks.len(), step), (6, 0.2));
        let [low, high] = bounds([0.523, 0.871].into_iter());
        assert!((low - 0.5).abs() < 1e-9 && (high - 0.9).abs() < 1e-9, "{low} {high}");
        assert_eq!(bounds(std::iter::empty()), [0.0, 1.0]);
        let [low, high] = bounds([0.5].into_iter());
        assert!(low <= 0.5 && high > low, "a flat line has room around it: {low} {high}");
    }

    #[test]
    fn an_axis_of_whole_numbers_has_no_tick_between_them() {
        for last in 2..200 {
            let (ticks, _) = Unit::Whole.ticks([1.0, f64::from(last)]);
            assert!(ticks.len() >= 2 && ticks.iter().all(|tick| tick.fract() == 0.0), "{last}: {ticks:?}");
        }
        assert_eq!(Unit::Whole.ticks([0.0, 3.0]).0, [0.0, 1.0, 2.0, 3.0]);
        assert_eq!(Unit::Whole.ticks([0.0, 47.0]).0, [0.0, 10.0, 20.0, 30.0, 40.0]);
        assert_eq!(Unit::Whole.ticks([0.0, 100.0]).0, [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
    }

    #[test]
    fn labels_have_the_digits_that_steps_need() {
        assert_eq!(Unit::Percent.label(0.55, 0.05), "55 %");
        assert_eq!(Unit::Percent.label(0.555, 0.005), "55.5 %");
        assert_eq!(
            (Unit::Plain.label(20.0, 5.0), Unit::Plain.label(0.25, 0.05)),
            ("20".into(), "0.25".into())
        );
    }
}
