//! Pictures of a split: for the terminal, and as SVG or PNG without any installed font.

mod chart;
mod font;
mod raster;
mod scene;
mod svg;
mod terminal;

pub use chart::chart;
pub use raster::{PngError, png};
pub use scene::{Anchor, Color, Item, Scene};
pub use svg::svg;
pub use terminal::terminal;
