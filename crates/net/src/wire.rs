//! What travels: protobuf messages of service `fedtvd.v1.Federation`.
//!
//! ```text
//! Hello  (Hello)          → Welcome           versions, the run, the model's layers
//! Enrol  (Enrolment)      → Done              size and statistic, once
//! Pull   (Ask)            → stream Work       what to do next; waits until there is something
//! Upload (stream Piece)   → stream Answer     a ticket, "go on", the update's bytes in parts, a receipt
//! Fail   (Failure)        → Done              why there will be no update
//! Judge  (Counts)         → Done              what a model does on the client's hold-out: counts, not data
//! Status (Ask)            → Text              for the operator only
//! ```
//!
//! Jobs and updates travel in core's byte form, cut into parts. Who a client is comes from its certificate and
//! never from a message. The messages are written by hand, so that a build needs no `protoc`.

/// Version of this protocol; a change that an old peer would misread counts it up.
pub const PROTOCOL: u32 = 1;

/// Bytes of a job or an update in one message.
pub const PART: usize = 32 << 10;

/// Most bytes of any message: a part and its envelope, a welcome with a long model.
pub const LARGEST_MESSAGE: usize = 1 << 20;

/// The key of the status metadata that holds a refusal's code.
pub const CODE: &str = "fedtvd-code";

/// The key of the metadata with which a client names itself where there is no TLS.
pub const CLIENT: &str = "fedtvd-client";

/// Paths of the methods.
pub mod path {
    /// Versions, the run, the model's layers.
    pub const HELLO: &str = "/fedtvd.v1.Federation/Hello";
    /// Size and statistic.
    pub const ENROL: &str = "/fedtvd.v1.Federation/Enrol";
    /// What to do next.
    pub const PULL: &str = "/fedtvd.v1.Federation/Pull";
    /// An update.
    pub const UPLOAD: &str = "/fedtvd.v1.Federation/Upload";
    /// Why there is no update.
    pub const FAIL: &str = "/fedtvd.v1.Federation/Fail";
    /// Counts of an evaluation.
    pub const JUDGE: &str = "/fedtvd.v1.Federation/Judge";
    /// How the federation stands.
    pub const STATUS: &str = "/fedtvd.v1.Federation/Status";
}

/// A client's first word.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Hello {
    /// The protocol that it speaks.
    #[prost(uint32, tag = "1")]
    pub protocol: u32,
    /// The version of its program.
    #[prost(string, tag = "2")]
    pub version: String,
}

/// The server's first word.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Welcome {
    /// The protocol that it speaks.
    #[prost(uint32, tag = "1")]
    pub protocol: u32,
    /// The run.
    #[prost(string, tag = "2")]
    pub run: String,
    /// Who the client is, by its certificate.
    #[prost(uint32, tag = "3")]
    pub client: u32,
    /// Its name.
    #[prost(string, tag = "4")]
    pub name: String,
    /// The model's layers, as JSON.
    #[prost(string, tag = "5")]
    pub network: String,
    /// What is done to training images.
    #[prost(uint64, tag = "6")]
    pub crop: u64,
    /// Whether every second one is mirrored.
    #[prost(bool, tag = "7")]
    pub flip: bool,
    /// The strategy's label.
    #[prost(string, tag = "8")]
    pub strategy: String,
    /// How far clients' claims are believed: paper or hardened.
    #[prost(string, tag = "9")]
    pub mode: String,
    /// How many rounds there will be.
    #[prost(uint32, tag = "10")]
    pub rounds: u32,
    /// What the classes are called, by number.
    #[prost(string, repeated, tag = "11")]
    pub classes: Vec<String>,
}

/// What a client says of itself, once.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Enrolment {
    /// The run.
    #[prost(string, tag = "1")]
    pub run: String,
    /// Training samples.
    #[prost(uint64, tag = "2")]
    pub size: u64,
    /// The statistic that was asked for, as JSON.
    #[prost(string, tag = "3")]
    pub statistic: String,
    /// Samples that it keeps back to judge models by.
    #[prost(uint64, tag = "4")]
    pub holdout: u64,
}

/// A question without content.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Ask {
    /// The run.
    #[prost(string, tag = "1")]
    pub run: String,
}

/// An answer without content.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Done {}

/// An answer as text.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Text {
    /// JSON.
    #[prost(string, tag = "1")]
    pub text: String,
}

/// What a client is to do, or a part of it.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Work {
    /// Which.
    #[prost(oneof = "work::Kind", tags = "1, 2, 3, 4, 5, 6")]
    pub kind: Option<work::Kind>,
}

/// Kinds of work.
pub mod work {
    /// What to do.
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Kind {
        /// Say once what your labels are like.
        #[prost(message, tag = "1")]
        Survey(super::Survey),
        /// Train: the job's bytes follow in parts.
        #[prost(message, tag = "2")]
        Train(super::Size),
        /// Judge a model by your hold-out: its bytes follow in parts.
        #[prost(message, tag = "3")]
        Judge(super::Size),
        /// Nothing yet; ask again.
        #[prost(message, tag = "4")]
        Wait(super::Done),
        /// Nothing more: the federation is done.
        #[prost(message, tag = "5")]
        Finished(super::Finished),
        /// A part of what was announced.
        #[prost(bytes = "bytes", tag = "6")]
        Part(prost::bytes::Bytes),
    }
}

/// Which label statistic, against which reference.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Survey {
    /// What is asked, as JSON.
    #[prost(string, tag = "1")]
    pub ask: String,
    /// Q, as JSON.
    #[prost(string, tag = "2")]
    pub reference: String,
}

/// What follows in parts.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Size {
    /// The round.
    #[prost(uint32, tag = "1")]
    pub round: u32,
    /// All parts' bytes together.
    #[prost(uint64, tag = "2")]
    pub bytes: u64,
}

/// How the federation ended.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Finished {
    /// Rounds done.
    #[prost(uint32, tag = "1")]
    pub rounds: u32,
    /// Hash of the final model.
    #[prost(string, tag = "2")]
    pub model_hash: String,
}

/// A piece of an upload: its ticket first, then parts.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Piece {
    /// Which.
    #[prost(oneof = "piece::Kind", tags = "1, 2")]
    pub kind: Option<piece::Kind>,
}

/// Kinds of pieces.
pub mod piece {
    /// What it is.
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Kind {
        /// What will come.
        #[prost(message, tag = "1")]
        Ticket(super::Ticket),
        /// A part of the bytes.
        #[prost(bytes = "bytes", tag = "2")]
        Part(prost::bytes::Bytes),
    }
}

/// What an upload is, so that it can be refused before a byte of it is read.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Ticket {
    /// The run.
    #[prost(string, tag = "1")]
    pub run: String,
    /// The round.
    #[prost(uint32, tag = "2")]
    pub round: u32,
    /// Whose it is; the certificate must say the same.
    #[prost(uint32, tag = "3")]
    pub client: u32,
    /// SHA-256 of the bytes.
    #[prost(string, tag = "4")]
    pub hash: String,
    /// How many bytes.
    #[prost(uint64, tag = "5")]
    pub bytes: u64,
}

/// The server's answer to an upload.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Answer {
    /// Which.
    #[prost(oneof = "answer::Kind", tags = "1, 2")]
    pub kind: Option<answer::Kind>,
}

/// Kinds of answers.
pub mod answer {
    /// What it is.
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Kind {
        /// The ticket is good: send the bytes.
        #[prost(message, tag = "1")]
        Go(super::Done),
        /// The update is on the server's disk.
        #[prost(message, tag = "2")]
        Receipt(super::Receipt),
    }
}

/// The update is on the server's disk.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Receipt {
    /// Whether it was there before.
    #[prost(bool, tag = "1")]
    pub already: bool,
}

/// Why there will be no update.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Failure {
    /// The run.
    #[prost(string, tag = "1")]
    pub run: String,
    /// The round.
    #[prost(uint32, tag = "2")]
    pub round: u32,
    /// In words.
    #[prost(string, tag = "3")]
    pub why: String,
}

/// What a model does on a client's hold-out.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Counts {
    /// The run.
    #[prost(string, tag = "1")]
    pub run: String,
    /// The round after which the model was made.
    #[prost(uint32, tag = "2")]
    pub round: u32,
    /// Sum of the loss over the samples.
    #[prost(double, tag = "3")]
    pub loss: f64,
    /// Samples by true and predicted class, row by row.
    #[prost(uint64, repeated, tag = "4")]
    pub confusion: Vec<u64>,
}
