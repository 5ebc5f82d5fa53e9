//! All charts. A chart is a [`Scene`] of shapes and text that [`svg()`] and [`png()`] render. Axes, legend, palette and font
//! are shared; each kind of chart has a file: curves, bubbles, classes, clients' accuracy, the paper's three clients, splits.
//! `setting_figures` and `paper_figures` choose the charts of a report; `*_text` are charts for a terminal.

mod axis;
mod bubbles;
mod classes;
mod client_accuracy;
mod curves;
mod curves_text;
mod font;
mod illustration;
mod legend;
mod palette;
mod paper_figures;
mod png;
mod scene;
mod series;
mod setting_figures;
mod split;
mod split_text;
mod svg;

pub use curves_text::{MARKS, curves_text};
pub use illustration::{distinct, illustration, papers_clients};
pub use paper_figures::{PaperFigure, figure_table, paper_figures};
pub use png::{PngError, png};
pub use scene::Scene;
pub use setting_figures::Figure;
pub use split::split_chart;
pub use split_text::split_text;
pub use svg::{Medium, svg};

pub(crate) use palette::{DARK, LIGHT, dashes};
pub(crate) use setting_figures::{number_equal_names, setting_figures};
pub(crate) use svg::{dash_array, escaped};
