//! The rules of a strategy, the definition of a method, and how the names of methods combine
//! (`fedprox+fedtvd:lambda=0.25`).

pub(crate) mod grouping;
pub mod notation;
pub(crate) mod outside;
pub(crate) mod personal;
pub(crate) mod questions;
pub(crate) mod recipe;
pub(crate) mod spec;

pub use grouping::{BranchRound, Grouping, Split};
pub use notation::NotationError;
pub use outside::{Build, Origin, Outside};
pub use personal::{OwnModel, OwnTask, Personal, Sharing};
pub use questions::{
    Carried, Combine, Combined, Extent, LocalRule, Loss, Needs, Selection, ServerRule, Shares, Step, Task,
    Trained, Weighting,
};
pub use recipe::{Recipe, Rule, Strategy};
pub use spec::{Guide, Property, Settings, Spec};
