//! Generates the Rust code of the protocol, `crates/net/src/wire/generated.rs`, from `crates/net/proto/fedtvd.proto`.
//!
//! `cargo run` writes it; `cargo test` checks that it is up to date. Only Rust is needed: protox is a protobuf
//! compiler.

use std::error::Error;
use std::path::{Path, PathBuf};

fn net() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn generated_path() -> PathBuf {
    net().join("src/wire/generated.rs")
}

/// The code that tonic and prost generate from the protocol.
fn generated() -> Result<String, Box<dyn Error>> {
    let folder = net().join("proto");
    let descriptors = protox::compile(["fedtvd.proto"], [folder])?;
    let out = tempfile::tempdir()?;
    tonic_prost_build::configure()
        // Chunks are slices of the message that they arrived in.
        .bytes(".")
        .use_arc_self(true)
        .build_transport(false)
        .out_dir(out.path())
        .compile_fds(descriptors)?;
    Ok(std::fs::read_to_string(out.path().join("fedtvd.v1.rs"))?)
}

fn main() -> Result<(), Box<dyn Error>> {
    Ok(std::fs::write(generated_path(), generated()?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generated_code_is_up_to_date() {
        let stored = std::fs::read_to_string(generated_path()).unwrap();
        assert!(
            stored == generated().unwrap(),
            "fedtvd.proto has changed; generate the code with \"cargo run\" in this folder"
        );
    }
}
