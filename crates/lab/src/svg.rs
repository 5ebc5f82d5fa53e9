//! What figures are drawn with: a frame with axes, and the two places where they are seen.

use crate::palette::colour;
use std::fmt::Write as _;

/// Where a figure is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// In a file of its own: colours are fixed, the ground is white.
    File,
    /// Inside the page, whose colours it takes.
    Page,
}

impl Medium {
    /// The colour of a strategy by its place in the tables.
    pub fn colour(self, place: usize) -> String {
        match self {
            Self::File => colour(place).to_owned(),
            Self::Page => format!("var(--s{})", place % crate::palette::LIGHT.len()),
        }
    }

    /// The beginning of the element.
    pub fn open(self, [width, height]: [f64; 2], label: &str, more: &str) -> String {
        let label = escaped(label);
        let font = "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\"";
        match self {
            Self::File => format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
                 viewBox=\"0 0 {width} {height}\" {font} fill=\"#222\">\n<title>{label}</title>\n\
                 <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n"
            ),
            Self::Page => format!(
                "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\" font-size=\"12\" \
                 fill=\"currentColor\"{more}>\n"
            ),
        }
    }

    /// The colour of axes and of what only guides the eye.
    pub fn pale(self) -> &'static str {
        match self {
            Self::File => "#d9d9d9",
            Self::Page => "var(--line)",
        }
    }
}

/// How an axis counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Fractions, shown in per cent.
    PerCent,
    /// Numbers as they are.
    Plain,
}

impl Unit {
    /// A tick's words; `step` says how many digits it needs.
    pub fn word(self, value: f64, step: f64) -> String {
        let (value, step, end) = match self {
            Self::PerCent => (100.0 * value, 100.0 * step, " %"),
            Self::Plain => (value, step, ""),
        };
        let digits = (-(step.log10() + 1e-9).floor()).max(0.0) as usize;
        format!("{value:.digits$}{end}")
    }
}

/// A rectangle that numbers are drawn in.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Left, top, right and bottom edge.
    pub edges: [f64; 4],
    /// The numbers at the left and right edge.
    pub x: [f64; 2],
    /// The numbers at the bottom and top edge.
    pub y: [f64; 2],
}

impl Frame {
    /// Where a number stands horizontally.
    pub fn across(&self, value: f64) -> f64 {
        let [left, _, right, _] = self.edges;
        left + (right - left) * (value - self.x[0]) / (self.x[1] - self.x[0])
    }

    /// Where a number stands vertically.
    pub fn down(&self, value: f64) -> f64 {
        let [_, top, _, bottom] = self.edges;
        bottom - (bottom - top) * (value.clamp(self.y[0], self.y[1]) - self.y[0]) / (self.y[1] - self.y[0])
    }

    /// Lines and words of the vertical axis.
    pub fn vertical(&self, unit: Unit, medium: Medium) -> String {
        let [left, _, right, _] = self.edges;
        let (ticks, step) = ticks(self.y, 8);
        let mut text = String::new();
        for tick in ticks {
            let height = self.down(tick);
            let _ = writeln!(
                text,
                "<line x1=\"{left:.1}\" x2=\"{right:.1}\" y1=\"{height:.1}\" y2=\"{height:.1}\" stroke=\"{}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                medium.pale(),
                left - 7.0,
                height + 4.0,
                unit.word(tick, step)
            );
        }
        text
    }

    /// Marks and words of the horizontal axis, and what it counts.
    pub fn horizontal(&self, unit: Unit, name: &str, medium: Medium) -> String {
        let [left, _, right, bottom] = self.edges;
        // Rounds and samples are whole numbers.
        let about = (self.x[1] - self.x[0]).clamp(1.0, 8.0) as usize;
        let (ticks, step) = ticks(self.x, about);
        let mut text = String::new();
        for tick in ticks {
            let place = self.across(tick);
            let _ = writeln!(
                text,
                "<line x1=\"{place:.1}\" x2=\"{place:.1}\" y1=\"{bottom:.1}\" y2=\"{:.1}\" stroke=\"{}\"/>\
                 <text x=\"{place:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                bottom + 5.0,
                medium.pale(),
                bottom + 18.0,
                unit.word(tick, step)
            );
        }
        let _ = writeln!(
            text,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            0.5 * (left + right),
            bottom + 34.0,
            escaped(name)
        );
        text
    }
}

/// Round numbers between two, about as many as asked for, and their distance.
pub fn ticks([low, high]: [f64; 2], about: usize) -> (Vec<f64>, f64) {
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

/// Bounds around some numbers that end on ticks; 0 to 1 of nothing.
pub fn bounds(values: impl Iterator<Item = f64>) -> [f64; 2] {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
    if low > high {
        return [0.0, 1.0];
    }
    let wide = if high > low { high - low } else { 0.1 * high.abs().max(1e-3) };
    let (_, step) = ticks([low, low + wide], 8);
    let (first, last) = ((low / step).floor() * step, (high / step).ceil() * step);
    [first, if last > first { last } else { first + step }]
}

/// The points of a line.
pub fn points(places: impl Iterator<Item = [f64; 2]>) -> String {
    places.map(|[x, y]| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ")
}

/// Text that may stand in HTML and SVG.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
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
    fn no_tick_stands_between_two_rounds() {
        for last in 2..20 {
            let frame = Frame { edges: [0.0, 0.0, 100.0, 100.0], x: [1.0, f64::from(last)], y: [0.0, 1.0] };
            let drawn = frame.horizontal(Unit::Plain, "", Medium::File);
            assert!(!drawn.contains(".5</text>"), "{drawn}");
        }
    }

    #[test]
    fn words_have_the_digits_that_steps_need() {
        assert_eq!(Unit::PerCent.word(0.55, 0.05), "55 %");
        assert_eq!(Unit::PerCent.word(0.555, 0.005), "55.5 %");
        assert_eq!((Unit::Plain.word(20.0, 5.0), Unit::Plain.word(0.25, 0.05)), ("20".into(), "0.25".into()));
    }
}
