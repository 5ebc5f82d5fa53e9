//! The place of a JSON error.

/// The byte that an error is about; the parser counts lines and columns.
pub(crate) fn offset(bytes: &[u8], error: &serde_json::Error) -> u64 {
    let before = bytes.split_inclusive(|byte| *byte == b'\n').take(error.line().saturating_sub(1));
    before.map(<[u8]>::len).sum::<usize>() as u64 + error.column().saturating_sub(1) as u64
}
