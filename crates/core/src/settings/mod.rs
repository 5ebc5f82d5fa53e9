//! Parameters of strategies and keys of a configuration: one definition of name, kind, default, range and help.

pub(crate) mod nearest;
pub(crate) mod param;
pub(crate) mod range;
pub(crate) mod value;

pub use nearest::nearest;
pub use param::{Param, ParamError, ParamKind};
pub use range::Range;
pub use value::Value;
