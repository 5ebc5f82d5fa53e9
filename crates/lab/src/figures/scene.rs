//! A chart as data: shapes and text, with positions in pixels from the upper left corner.

use super::palette::Colour;

/// Which part of a text is at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    /// Its left end.
    Start,
    /// Its middle.
    Middle,
    /// Its right end.
    End,
}

/// What is drawn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    /// A rectangle, by its upper left corner and its size.
    Rect { x: f64, y: f64, width: f64, height: f64 },
    /// A circle, by its centre.
    Circle { x: f64, y: f64, radius: f64 },
    /// A straight line.
    Line([[f64; 2]; 2]),
    /// A line through these points.
    Polyline(Vec<[f64; 2]>),
    /// The area between these points.
    Polygon(Vec<[f64; 2]>),
    /// A text on the base line `y`.
    Text { x: f64, y: f64, size: f64, anchor: Anchor, text: String },
}

/// A line's colour, width and dashes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stroke {
    pub(crate) colour: Colour,
    pub(crate) width: f64,
    pub(crate) dashes: &'static [f32],
}

impl Stroke {
    /// A solid line.
    pub(crate) fn solid(colour: Colour, width: f64) -> Self {
        Self { colour, width, dashes: &[] }
    }
}

/// A shape with fill and stroke, and attributes for the page's script.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Item {
    pub(crate) shape: Shape,
    /// The colour inside and its opacity.
    pub(crate) fill: Option<(Colour, f64)>,
    pub(crate) stroke: Option<Stroke>,
    /// The tooltip.
    pub(crate) title: Option<String>,
    /// Attributes for the page's script.
    pub(crate) data: String,
}

/// A chart that [`svg()`](super::svg()) and [`png()`](super::png()) render.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scene {
    pub(crate) title: String,
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// Attributes of the whole chart for the page's script and style.
    pub(crate) data: String,
    /// The shapes; later ones are drawn on top.
    pub(crate) items: Vec<Item>,
}

impl Scene {
    /// An empty chart.
    pub(crate) fn new(title: &str, [width, height]: [f64; 2]) -> Self {
        Self { title: title.to_owned(), width, height, ..Self::default() }
    }

    fn push(&mut self, shape: Shape, fill: Option<(Colour, f64)>, stroke: Option<Stroke>) -> &mut Item {
        self.items.push(Item { shape, fill, stroke, title: None, data: String::new() });
        self.items.last_mut().expect("one was pushed")
    }

    /// Adds a filled rectangle with this upper left corner and size.
    pub(crate) fn rect(&mut self, [x, y]: [f64; 2], [width, height]: [f64; 2], colour: Colour) -> &mut Item {
        self.push(Shape::Rect { x, y, width, height }, Some((colour, 1.0)), None)
    }

    /// Adds a filled circle.
    pub(crate) fn circle(&mut self, [x, y]: [f64; 2], radius: f64, colour: Colour) -> &mut Item {
        self.push(Shape::Circle { x, y, radius }, Some((colour, 1.0)), None)
    }

    /// Adds a straight line.
    pub(crate) fn line(&mut self, ends: [[f64; 2]; 2], stroke: Stroke) -> &mut Item {
        self.push(Shape::Line(ends), None, Some(stroke))
    }

    /// Adds a line through these points.
    pub(crate) fn polyline(&mut self, points: Vec<[f64; 2]>, stroke: Stroke) -> &mut Item {
        self.push(Shape::Polyline(points), None, Some(stroke))
    }

    /// Adds a filled polygon.
    pub(crate) fn polygon(&mut self, points: Vec<[f64; 2]>, colour: Colour, opacity: f64) -> &mut Item {
        self.push(Shape::Polygon(points), Some((colour, opacity)), None)
    }

    /// Adds a text.
    pub(crate) fn text(&mut self, [x, y]: [f64; 2], size: f64, anchor: Anchor, text: impl Into<String>) {
        self.push(Shape::Text { x, y, size, anchor, text: text.into() }, Some((Colour::Ink, 1.0)), None);
    }
}
