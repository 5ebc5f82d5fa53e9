//! A drawing as data: shapes and words at places, in pixels from the upper left corner.

/// Where a word's place is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// At its left end.
    Start,
    /// In its middle.
    Middle,
    /// At its right end.
    End,
}

/// Red, green, blue.
pub type Color = [u8; 3];

/// One thing to draw.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A filled rectangle.
    Rect {
        /// Left edge.
        x: f32,
        /// Upper edge.
        y: f32,
        /// From left to right.
        width: f32,
        /// From top to bottom.
        height: f32,
        /// Its colour.
        color: Color,
    },
    /// A filled circle.
    Circle {
        /// Middle, from the left.
        x: f32,
        /// Middle, from the top.
        y: f32,
        /// Radius.
        radius: f32,
        /// Its colour.
        color: Color,
    },
    /// A word.
    Text {
        /// From the left.
        x: f32,
        /// Its base line, from the top.
        y: f32,
        /// Height of its letters' square.
        size: f32,
        /// Where x is in it.
        anchor: Anchor,
        /// What it says.
        text: String,
    },
}

/// A drawing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scene {
    /// From left to right.
    pub width: f32,
    /// From top to bottom.
    pub height: f32,
    /// What is drawn, the later over the earlier.
    pub items: Vec<Item>,
}

/// The colour of words and axes.
pub(crate) const INK: Color = [40, 44, 52];

impl Scene {
    pub(crate) fn rect(&mut self, x: f32, y: f32, width: f32, height: f32, color: Color) {
        self.items.push(Item::Rect { x, y, width, height, color });
    }

    pub(crate) fn circle(&mut self, x: f32, y: f32, radius: f32, color: Color) {
        self.items.push(Item::Circle { x, y, radius, color });
    }

    pub(crate) fn text(&mut self, x: f32, y: f32, size: f32, anchor: Anchor, text: impl Into<String>) {
        self.items.push(Item::Text { x, y, size, anchor, text: text.into() });
    }
}
