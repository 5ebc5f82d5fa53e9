//! The binary format of jobs, uploads, memories and states, used on disk, in spool files and on the wire.
//! An upload can be checked while its bytes arrive.

mod local_header;
pub(crate) mod messages;
pub(crate) mod reader;
pub mod upload_head;
pub(crate) mod upload_stream;
pub(crate) mod writer;

pub use reader::{BytesError, VERSION};
pub(crate) use reader::{ENTRY, Envelope};
pub use upload_head::UploadHead;
pub use upload_stream::UploadStream;
