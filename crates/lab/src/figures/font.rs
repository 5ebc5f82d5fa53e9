//! The glyph outlines of the embedded font (see `font/README.md`).

use super::scene::Anchor;
use tiny_skia::{Path, PathBuilder};
use ttf_parser::{Face, GlyphId, OutlineBuilder};

const FONT: &[u8] = include_bytes!("../../font/DejaVuSans-subset.ttf");

/// The embedded font. Lengths are in units of the font size, with y pointing down.
pub(crate) struct Font(Face<'static>);

impl Font {
    pub(crate) fn embedded() -> Self {
        Self(Face::parse(FONT, 0).expect("the embedded font is a font"))
    }

    /// The characters of a text, each with its distance from the anchor.
    pub(crate) fn letters(&self, text: &str, anchor: Anchor) -> Vec<(char, f64)> {
        let mut x = match anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => -0.5 * self.width(text),
            Anchor::End => -self.width(text),
        };
        let placed = |letter| {
            let start = x;
            x += self.advance(letter);
            (letter, start)
        };
        text.chars().map(placed).collect()
    }

    /// The width of a text.
    pub(crate) fn width(&self, text: &str) -> f64 {
        text.chars().map(|letter| self.advance(letter)).sum()
    }

    /// A character's outline; a space has none.
    pub(crate) fn outline(&self, letter: char) -> Option<Path> {
        let mut outline = Outline(PathBuilder::new(), 1.0 / f32::from(self.0.units_per_em()));
        self.0.outline_glyph(self.glyph(letter), &mut outline);
        outline.0.finish()
    }

    fn advance(&self, letter: char) -> f64 {
        let advance = self.0.glyph_hor_advance(self.glyph(letter)).unwrap_or(0);
        f64::from(advance) / f64::from(self.0.units_per_em())
    }

    fn glyph(&self, letter: char) -> GlyphId {
        // Characters that the font lacks are shown as a question mark.
        self.0.glyph_index(letter).or_else(|| self.0.glyph_index('?')).unwrap_or(GlyphId(0))
    }
}

/// An outline under construction, and its scale.
struct Outline(PathBuilder, f32);

impl OutlineBuilder for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        self.0.move_to(x * self.1, -y * self.1);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.0.line_to(x * self.1, -y * self.1);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.0.quad_to(x1 * self.1, -y1 * self.1, x * self.1, -y * self.1);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, _: f32, _: f32, x: f32, y: f32) {
        // TrueType outlines have no cubic curves.
        self.quad_to(x1, y1, x, y);
    }

    fn close(&mut self) {
        self.0.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_printable_letter_has_an_outline_and_a_width() {
        let font = Font::embedded();
        for letter in ('!'..='~').chain("·×–−".chars()) {
            assert!(font.outline(letter).is_some_and(|path| path.len() > 3), "{letter}");
            assert!(font.0.glyph_index(letter).is_some(), "{letter}");
            assert!(font.width(&letter.to_string()) > 0.2, "{letter}");
        }
        assert!(font.outline(' ').is_none());
        assert_eq!(font.outline('字'), font.outline('?'));
    }
}
