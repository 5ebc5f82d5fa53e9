//! A report: `findings` computes it once, the other files write it as an HTML page, Markdown, LaTeX, CSV and JSON.
//! `table` has the columns and cells that all of them show; `heading` and `commands` are the text above and below it.

pub mod cells;
pub mod clients;
pub(crate) mod clusters;
pub mod commands;
pub mod compact_table;
pub(crate) mod csv;
pub mod findings;
pub mod heading;
pub mod json;
mod latex;
pub mod markdown;
pub mod missed;
mod page;
pub mod slug;
pub mod table;
pub(crate) mod test_set;
pub(crate) mod text_table;
pub mod timing;
pub(crate) mod troubles;
pub mod tuning;
