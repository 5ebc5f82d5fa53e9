//! A report: `findings` computes all of it once, the other files write it as a page, Markdown, LaTeX, CSV and JSON.
//! `table` decides columns and cells for all of them, `heading` and `commands` what stands above and below.

pub mod commands;
pub(crate) mod csv;
pub mod findings;
pub mod heading;
pub mod json;
mod latex;
pub mod markdown;
mod page;
pub mod slug;
pub mod table;
pub(crate) mod text_table;
pub mod timing;
