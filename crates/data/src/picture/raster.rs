//! A scene as PNG.

use super::font::{Font, Stroke};
use super::scene::{Color, INK, Item, Scene};
use thiserror::Error;
use tiny_skia::{FillRule, Paint, Path, PathBuilder, Pixmap, Rect, Transform};

/// Why there is no PNG.
#[derive(Debug, Error)]
pub enum PngError {
    /// Too large or without extent.
    #[error("a picture of {width} by {height} pixels cannot be drawn; each side must be from 1 to 16384")]
    Size {
        /// From left to right.
        width: f32,
        /// From top to bottom.
        height: f32,
    },
    /// The encoder failed.
    #[error("writing PNG: {0}")]
    Encoding(String),
}

/// Pixels per unit of the scene: sharp in print.
const SCALE: f32 = 2.0;

/// The scene as a PNG file.
pub fn png(scene: &Scene) -> Result<Vec<u8>, PngError> {
    let Scene { width, height, items } = scene;
    let side = |length: f32| (1.0..=16_384.0).contains(&length).then_some((length * SCALE) as u32);
    let pixmap = side(*width).zip(side(*height)).and_then(|(width, height)| Pixmap::new(width, height));
    let mut pixmap = pixmap.ok_or(PngError::Size { width: *width, height: *height })?;
    pixmap.fill(tiny_skia::Color::WHITE);
    let font = Font::embedded();
    for item in items {
        match item {
            Item::Rect { x, y, width, height, color } => {
                if let Some(rect) = Rect::from_xywh(*x, *y, *width, *height) {
                    pixmap.fill_rect(rect, &paint(*color), Transform::from_scale(SCALE, SCALE), None);
                }
            }
            Item::Circle { x, y, radius, color } => {
                if let Some(path) = PathBuilder::from_circle(*x, *y, *radius) {
                    fill(&mut pixmap, &path, *color);
                }
            }
            Item::Text { x, y, size, anchor, text } => {
                let (letters, width) = font.letters(text);
                let start = x - Font::shift(*anchor, width) * size;
                for (letter, distance) in letters {
                    if let Some(path) = outline(&font.outline(letter), start + distance * size, *y, *size) {
                        fill(&mut pixmap, &path, INK);
                    }
                }
            }
        }
    }
    pixmap.encode_png().map_err(|error| PngError::Encoding(error.to_string()))
}

fn fill(pixmap: &mut Pixmap, path: &Path, color: Color) {
    pixmap.fill_path(path, &paint(color), FillRule::Winding, Transform::from_scale(SCALE, SCALE), None);
}

fn paint([red, green, blue]: Color) -> Paint<'static> {
    let mut paint = Paint::default();
    paint.set_color_rgba8(red, green, blue, 255);
    paint
}

fn outline(strokes: &[Stroke], x: f32, y: f32, size: f32) -> Option<Path> {
    let mut path = PathBuilder::new();
    let place = |[dx, dy]: [f32; 2]| (x + dx * size, y + dy * size);
    for stroke in strokes {
        match stroke {
            Stroke::Move(to) => {
                let (x, y) = place(*to);
                path.move_to(x, y);
            }
            Stroke::Line(to) => {
                let (x, y) = place(*to);
                path.line_to(x, y);
            }
            Stroke::Curve(by, to) => {
                let ((a, b), (x, y)) = (place(*by), place(*to));
                path.quad_to(a, b, x, y);
            }
            Stroke::Close => path.close(),
        }
    }
    path.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Source;
    use crate::decode::picture::picture;
    use crate::picture::Anchor;

    #[test]
    fn words_and_shapes_are_drawn_where_they_belong() {
        let mut scene = Scene { width: 40.0, height: 20.0, items: Vec::new() };
        scene.rect(0.0, 0.0, 10.0, 10.0, [255, 0, 0]);
        scene.text(39.0, 18.0, 12.0, Anchor::End, "I");
        let bytes = png(&scene).unwrap();
        let picture = picture(&mut Source::bytes("x", &bytes).unwrap()).unwrap();
        assert_eq!(picture.shape, [3, 40, 80]);
        let green = |x: usize, y: usize| picture.pixels[40 * 80 + y * 80 + x];
        assert_eq!((green(5, 5), green(25, 5)), (0, 255));
        let dark = |range: std::ops::Range<usize>| range.flat_map(|x| (0..40).map(move |y| (x, y)));
        assert!(dark(60..80).any(|(x, y)| green(x, y) < 100), "the word is on the right");
        assert!(dark(22..60).all(|(x, y)| green(x, y) == 255), "and nowhere else");
    }

    #[test]
    fn a_picture_without_extent_is_refused() {
        let complaint = png(&Scene::default()).unwrap_err().to_string();
        assert!(complaint.starts_with("a picture of 0 by 0 pixels"), "{complaint}");
    }
}
