//! The legend below a chart.

use super::font::Font;
use super::palette::{Colour, LIGHT, dashes};
use super::scene::{Anchor, Scene, Stroke};

/// The sample before a strategy's label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sample {
    /// A piece of a curve.
    Curve,
    /// A dot.
    Dot,
    /// A piece of a bar.
    Bar,
}

const LINE: f64 = 20.0;

/// Adds a legend below a chart, which becomes higher; strategies are given with their positions in the tables.
pub(crate) fn legend<'a>(
    scene: &mut Scene,
    left: f64,
    sample: Sample,
    strategies: impl Iterator<Item = (usize, &'a str)>,
) {
    let font = Font::embedded();
    let (mut x, mut y) = (left, scene.height + 6.0);
    let sample_width = if sample == Sample::Curve { 26.0 } else { 11.0 };
    for (place, label) in strategies {
        let wide = sample_width + 6.0 + 12.0 * font.width(label);
        if x > left && x + wide > scene.width {
            (x, y) = (left, y + LINE);
        }
        match sample {
            Sample::Curve => {
                let stroke = Stroke { colour: Colour::Strategy(place), width: 2.0, dashes: dashes(place) };
                scene.line([[x, y], [x + sample_width, y]], stroke);
            }
            Sample::Dot => dot(scene, [x + 5.0, y], 4.0, place, ""),
            Sample::Bar => {
                scene.rect([x, y - 6.0], [sample_width, 11.0], Colour::Strategy(place));
            }
        }
        scene.text([x + sample_width + 6.0, y + 4.0], 12.0, Anchor::Start, label);
        x += wide + 20.0;
    }
    scene.height = y + 16.0;
}

/// Adds a strategy's dot: filled for the first eight strategies, a ring for the rest.
pub(crate) fn dot(scene: &mut Scene, centre: [f64; 2], radius: f64, place: usize, title: &str) {
    let item = scene.circle(centre, radius, Colour::Strategy(place));
    if place >= LIGHT.len() {
        (item.fill, item.stroke) = (None, Some(Stroke::solid(Colour::Strategy(place), 1.6)));
    }
    if !title.is_empty() {
        (item.title, item.data) = (Some(title.to_owned()), format!(" data-s=\"{place}\""));
    }
}
