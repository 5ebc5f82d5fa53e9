//! Data sets by name, and the folders and tables that a user brings.

mod catalogue;
mod cifar;
mod fetch;
mod folder;
mod heart;
mod idx;
mod imbalance;
mod labelled_rows;
mod load;
mod made_schema;
mod npy;
mod places;
mod table;
mod test_rows;
mod unread_images;
mod verify;
mod without_effect;

pub use catalogue::{ALL, Archive, Entry, Part, named};
pub use fetch::{FetchError, Progress, fetch};
pub use folder::images;
pub use load::{DataOptions, LoadError, Loaded, known, read_schema};
pub use made_schema::MadeSchema;
pub use npy::{About, Site};
pub use places::{Missing, Places};
pub use table::{TableData, load_table, open_table};
pub use verify::{Check, Verdict, verify};
