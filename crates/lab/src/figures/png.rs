//! A chart as PNG.

use super::font::Font;
use super::palette::Colour;
use super::scene::{Item, Scene, Shape};
use thiserror::Error;
use tiny_skia::{FillRule, LineCap, LineJoin, Paint, Path, PathBuilder, Pixmap, Rect, StrokeDash, Transform};

/// Why a PNG cannot be written.
#[derive(Debug, Error)]
pub enum PngError {
    /// Too large or empty.
    #[error("cannot draw an image of {0} by {1} pixels; each side must be from 1 to 16384")]
    Size(f64, f64),
    /// The encoder failed.
    #[error("writing PNG: {0}")]
    Encoding(String),
}

/// Pixels per unit of the scene; 2 is sharp in print.
const SCALE: f32 = 2.0;

/// The chart as a PNG file.
pub fn png(scene: &Scene) -> Result<Vec<u8>, PngError> {
    let Scene { width, height, items, .. } = scene;
    let side = |length: f64| (1.0..=16_384.0).contains(&length).then_some((length as f32 * SCALE) as u32);
    let pixmap = side(*width).zip(side(*height)).and_then(|(width, height)| Pixmap::new(width, height));
    let mut pixmap = pixmap.ok_or(PngError::Size(*width, *height))?;
    pixmap.fill(tiny_skia::Color::WHITE);
    let font = Font::embedded();
    for item in items {
        paths(&item.shape, &font).iter().for_each(|path| draw(&mut pixmap, path, item));
    }
    pixmap.encode_png().map_err(|error| PngError::Encoding(error.to_string()))
}

fn draw(pixmap: &mut Pixmap, path: &Path, item: &Item) {
    let transform = Transform::from_scale(SCALE, SCALE);
    if let Some((colour, opacity)) = item.fill {
        pixmap.fill_path(path, &paint(colour, opacity), FillRule::Winding, transform, None);
    }
    if let Some(own) = item.stroke {
        let stroke = tiny_skia::Stroke {
            width: own.width as f32,
            line_cap: if own.dashes.is_empty() { LineCap::Round } else { LineCap::Butt },
            line_join: LineJoin::Round,
            dash: StrokeDash::new(own.dashes.to_vec(), 0.0),
            ..tiny_skia::Stroke::default()
        };
        pixmap.stroke_path(path, &paint(own.colour, 1.0), &stroke, transform, None);
    }
}

fn paint(colour: Colour, opacity: f64) -> Paint<'static> {
    let [_, red, green, blue] = colour.on_white().to_be_bytes();
    let mut paint = Paint::default();
    paint.set_color_rgba8(red, green, blue, (255.0 * opacity).round() as u8);
    paint
}

/// The outlines of a shape; an empty one has none.
fn paths(shape: &Shape, font: &Font) -> Vec<Path> {
    let path = match shape {
        Shape::Rect { x, y, width, height } => {
            let rect = Rect::from_xywh(*x as f32, *y as f32, *width as f32, *height as f32);
            rect.map(PathBuilder::from_rect)
        }
        Shape::Circle { x, y, radius } => PathBuilder::from_circle(*x as f32, *y as f32, *radius as f32),
        Shape::Line(ends) => through(ends, false),
        Shape::Polyline(points) => through(points, false),
        Shape::Polygon(points) => through(points, true),
        Shape::Text { x, y, size, anchor, text } => {
            let placed = |(letter, distance): (char, f64)| {
                let (scale, left) = (*size as f32, (x + distance * size) as f32);
                font.outline(letter)?.transform(Transform::from_row(scale, 0.0, 0.0, scale, left, *y as f32))
            };
            return font.letters(text, *anchor).into_iter().filter_map(placed).collect();
        }
    };
    path.into_iter().collect()
}

fn through(points: &[[f64; 2]], closed: bool) -> Option<Path> {
    let mut path = PathBuilder::new();
    let (first, rest) = points.split_first()?;
    path.move_to(first[0] as f32, first[1] as f32);
    rest.iter().for_each(|[x, y]| path.line_to(*x as f32, *y as f32));
    if closed {
        path.close();
    }
    path.finish()
}

#[cfg(test)]
mod tests {
    use super::super::scene::{Anchor, Stroke};
    use super::*;

    #[test]
    fn text_and_shapes_are_drawn_where_they_belong() {
        let mut scene = Scene::new("", [40.0, 20.0]);
        scene.rect([0.0, 0.0], [10.0, 10.0], Colour::Strategy(0));
        scene.text([39.0, 18.0], 12.0, Anchor::End, "I");
        scene.line([[14.0, 0.0], [14.0, 20.0]], Stroke::solid(Colour::Ink, 2.0));
        let picture = Pixmap::decode_png(&png(&scene).unwrap()).unwrap();
        assert_eq!((picture.width(), picture.height()), (80, 40));
        let green = |x: u32, y: u32| picture.pixel(x, y).unwrap().green();
        assert_eq!((green(5, 5), green(23, 5), green(28, 30)), (0x72, 255, 0x22));
        let all = |range: std::ops::Range<u32>| range.flat_map(|x| (0..40).map(move |y| (x, y)));
        assert!(all(60..80).any(|(x, y)| green(x, y) < 100), "the text is on the right");
        assert!(all(32..60).all(|(x, y)| green(x, y) == 255), "and nowhere else");
    }

    #[test]
    fn an_empty_image_is_refused() {
        let complaint = png(&Scene::default()).unwrap_err().to_string();
        assert!(complaint.starts_with("cannot draw an image of 0 by 0 pixels"), "{complaint}");
    }
}
