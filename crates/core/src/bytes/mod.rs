//! The byte form of jobs, uploads, memories and states: what is stored, spooled and sent.
//! An upload can be checked while its bytes arrive.

pub(crate) mod messages;
pub(crate) mod reader;
pub mod upload_head;
pub(crate) mod upload_stream;
pub(crate) mod writer;

pub use reader::{BytesError, VERSION};
pub use upload_head::UploadHead;
pub use upload_stream::UploadStream;
