//! Data sets, and every way of splitting them over clients.

pub mod decode;
pub mod export;
pub mod holdout;
pub mod mini;
pub mod set;
pub mod split;
pub mod statistics;

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
