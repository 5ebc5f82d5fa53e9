//! The protocol: service `fedtvd.v1.Federation` as `proto/fedtvd.proto` defines and documents it.
//!
//! `generated.rs` is made from that file by `proto/codegen`, whose test fails when the two differ, so that a build needs no
//! protobuf compiler.

#[rustfmt::skip]
#[expect(
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    reason = "code made by tonic-prost-build"
)]
mod generated;
mod version;

pub use generated::*;
pub(crate) use version::VERSION;
pub use version::VersionMismatch;

/// Version of this protocol; a change that an old peer would misread increments it.
pub const PROTOCOL: u32 = 1;

/// Bytes of a job, a model or an update in one message.
pub const CHUNK: usize = 32 << 10;

/// Most bytes of any message: a welcome with a long model, a confusion matrix.
pub const LARGEST_MESSAGE: usize = 1 << 20;

/// The key of the status metadata that holds a refusal's code.
pub const CODE: &str = "fedtvd-code";

/// The key of the metadata with which a client names itself where there is no TLS.
pub const CLIENT: &str = "fedtvd-client";

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message as _;
    use prost::bytes::Bytes;

    /// Bytes by hand: (field number << 3 | type), then the value; type 0 is a number, 1 a double, 2 has a length.
    #[test]
    fn field_numbers_are_those_that_deployed_peers_use() {
        let text = str::to_owned;
        let ticket = Ticket { run: text("r"), round: 1, client: 2, hash: text("h"), bytes: 3 };
        assert_eq!(ticket.encode_to_vec(), b"\x0a\x01r\x10\x01\x18\x02\x22\x01h\x28\x03");
        let hello = HelloRequest { protocol: 1, version: text("v") };
        assert_eq!(hello.encode_to_vec(), b"\x08\x01\x12\x01v");
        let welcome = Welcome {
            protocol: 1,
            run: text("r"),
            client: 2,
            name: text("n"),
            network: text("w"),
            crop: 3,
            flip: true,
            strategy: text("s"),
            mode: text("m"),
            rounds: 4,
            classes: vec![text("c")],
            version: text("v"),
        };
        let bytes = b"\x08\x01\x12\x01r\x18\x02\x22\x01n\x2a\x01w\x30\x03\x38\x01\x42\x01s\x4a\x01m\x50\x04\x5a\x01c\x62\x01v";
        assert_eq!(welcome.encode_to_vec(), bytes);
        let enrolment = Enrolment { run: text("r"), size: 5, statistic: text("s"), holdout: 6 };
        assert_eq!(enrolment.encode_to_vec(), b"\x0a\x01r\x10\x05\x1a\x01s\x20\x06");
        let counts = Counts { run: text("r"), round: 1, loss: 2.0, confusion: vec![3, 4] };
        assert_eq!(counts.encode_to_vec(), b"\x0a\x01r\x10\x01\x19\0\0\0\0\0\0\0\x40\x22\x02\x03\x04");
        let failure = Failure { run: text("r"), round: 1, why: text("w") };
        assert_eq!(failure.encode_to_vec(), b"\x0a\x01r\x10\x01\x1a\x01w");
        let transfer = Transfer { round: 1, bytes: 2 };
        let items = [
            (
                work::Item::Survey(Survey { ask: text("a"), reference: text("q") }),
                &b"\x0a\x06\x0a\x01a\x12\x01q"[..],
            ),
            (work::Item::Train(transfer), b"\x12\x04\x08\x01\x10\x02"),
            (work::Item::Evaluate(transfer), b"\x1a\x04\x08\x01\x10\x02"),
            (work::Item::Wait(Empty {}), b"\x22\x00"),
            (
                work::Item::Finished(Finished { rounds: 1, model_hash: text("h") }),
                b"\x2a\x05\x08\x01\x12\x01h",
            ),
            (work::Item::Chunk(Bytes::from_static(b"c")), b"\x32\x01c"),
        ];
        for (item, bytes) in items {
            assert_eq!(Work { item: Some(item) }.encode_to_vec(), bytes);
        }
        let upload = |content| UploadRequest { content: Some(content) }.encode_to_vec();
        assert_eq!(
            upload(upload_request::Content::Ticket(Ticket { round: 1, ..Ticket::default() })),
            b"\x0a\x02\x10\x01"
        );
        assert_eq!(upload(upload_request::Content::Chunk(Bytes::from_static(b"c"))), b"\x12\x01c");
        let reply = |step| UploadReply { step: Some(step) }.encode_to_vec();
        assert_eq!(reply(upload_reply::Step::Proceed(Empty {})), b"\x0a\x00");
        assert_eq!(reply(upload_reply::Step::Receipt(Receipt { already: true })), b"\x12\x02\x08\x01");
        assert_eq!(PullRequest { run: text("r") }.encode_to_vec(), b"\x0a\x01r");
        assert_eq!(StatusReply { json: text("j") }.encode_to_vec(), b"\x0a\x01j");
    }
}
