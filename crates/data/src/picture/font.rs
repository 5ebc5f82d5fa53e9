//! The letters of the embedded font as outlines (see `font/README.md`).

use super::scene::Anchor;
use ttf_parser::{Face, GlyphId, OutlineBuilder};

const FONT: &[u8] = include_bytes!("../../font/DejaVuSans-subset.ttf");

/// One stroke of a letter's outline, in units of the letter's size, y downwards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Stroke {
    Move([f32; 2]),
    Line([f32; 2]),
    Curve([f32; 2], [f32; 2]),
    Close,
}

pub(crate) struct Font(Face<'static>);

impl Font {
    pub(crate) fn embedded() -> Self {
        Self(Face::parse(FONT, 0).expect("the embedded font is a font"))
    }

    /// The letters of a word, each with its distance from the word's start, in units of the letters' size.
    pub(crate) fn letters(&self, text: &str) -> (Vec<(char, f32)>, f32) {
        let mut width = 0.0;
        let mut letters = Vec::new();
        for letter in text.chars() {
            letters.push((letter, width));
            let advance = self.0.glyph_hor_advance(self.glyph(letter)).unwrap_or(0);
            width += f32::from(advance) / f32::from(self.0.units_per_em());
        }
        (letters, width)
    }

    /// How far left of its place a word starts, in units of the letters' size.
    pub(crate) fn shift(anchor: Anchor, width: f32) -> f32 {
        match anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => width / 2.0,
            Anchor::End => width,
        }
    }

    /// A letter's outline; empty for a blank.
    pub(crate) fn outline(&self, letter: char) -> Vec<Stroke> {
        let mut outline = Outline { strokes: Vec::new(), scale: 1.0 / f32::from(self.0.units_per_em()) };
        self.0.outline_glyph(self.glyph(letter), &mut outline);
        outline.strokes
    }

    fn glyph(&self, letter: char) -> GlyphId {
        // What the font does not have shows as a question mark.
        self.0.glyph_index(letter).or_else(|| self.0.glyph_index('?')).unwrap_or(GlyphId(0))
    }
}

struct Outline {
    strokes: Vec<Stroke>,
    scale: f32,
}

impl Outline {
    fn point(&self, x: f32, y: f32) -> [f32; 2] {
        [x * self.scale, -y * self.scale]
    }
}

impl OutlineBuilder for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        self.strokes.push(Stroke::Move(self.point(x, y)));
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.strokes.push(Stroke::Line(self.point(x, y)));
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.strokes.push(Stroke::Curve(self.point(x1, y1), self.point(x, y)));
    }

    fn curve_to(&mut self, x1: f32, y1: f32, _: f32, _: f32, x: f32, y: f32) {
        // TrueType outlines have no cubic curves.
        self.quad_to(x1, y1, x, y);
    }

    fn close(&mut self) {
        self.strokes.push(Stroke::Close);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_printable_letter_has_an_outline_and_a_width() {
        let font = Font::embedded();
        for letter in ('!'..='~').chain("·×–−".chars()) {
            assert!(font.outline(letter).len() > 3, "{letter}");
            assert!(font.0.glyph_index(letter).is_some(), "{letter}");
            assert!(font.letters(&letter.to_string()).1 > 0.2, "{letter}");
        }
        assert!(font.outline(' ').is_empty());
        assert_eq!(font.outline('字'), font.outline('?'));
    }
}
