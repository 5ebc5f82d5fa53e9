//! Files of each format made in memory, their checksums mended, and what they say that they hold.

use flate2::Compression;
use std::io::Write;

pub(crate) fn idx_file(words: &[u32], content: usize) -> Vec<u8> {
    let head = words.iter().flat_map(|word| word.to_be_bytes());
    head.chain((0..content).map(|x| (x % 10) as u8)).collect()
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory does not fail");
    encoder.finish().expect("memory does not fail")
}

pub(crate) fn tar(content: &[u8]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for name in ["folder/one.bin", "folder/two.bin"] {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, content).expect("memory does not fail");
    }
    tar.into_inner().expect("memory does not fail")
}

/// The chunks of a PNG with their checksums computed again.
pub(crate) fn mend_png(mut bytes: Vec<u8>) -> Vec<u8> {
    let mut place = 8;
    while place + 12 <= bytes.len() {
        let length = words(&bytes, &[place]);
        let Some(end) = place.checked_add(8).and_then(|start| start.checked_add(length)) else { break };
        if end + 4 > bytes.len() {
            break;
        }
        let mut crc = flate2::Crc::new();
        crc.update(&bytes[place + 4..end]);
        bytes[end..end + 4].copy_from_slice(&crc.sum().to_be_bytes());
        place = end + 4;
    }
    bytes
}

/// A member of a tar has its header's checksum computed again.
pub(crate) fn mend_tar(mut bytes: Vec<u8>) -> Vec<u8> {
    for start in (0..bytes.len().saturating_sub(511)).step_by(512) {
        if bytes[start + 257..start + 262] == *b"ustar" {
            bytes[start + 148..start + 156].fill(b' ');
            let sum: u32 = bytes[start..start + 512].iter().map(|byte| u32::from(*byte)).sum();
            let text = format!("{sum:06o}\0 ");
            bytes[start + 148..start + 156].copy_from_slice(text.as_bytes());
        }
    }
    bytes
}

pub(crate) fn words(bytes: &[u8], places: &[usize]) -> usize {
    let word = |place: &usize| match bytes.get(*place..place + 4) {
        Some(word) => word.iter().fold(0usize, |number, byte| number << 8 | usize::from(*byte)),
        None => 0,
    };
    places.iter().map(word).fold(1, usize::saturating_mul)
}

/// What the header of an NPY file says that it holds: once as bytes, once as numbers.
pub(crate) fn npy_declared(bytes: &[u8]) -> usize {
    let text = String::from_utf8_lossy(bytes);
    let after = |words: &str| text.split(words).nth(1).map(str::to_owned).unwrap_or_default();
    let width = match after("'descr': '").get(..3) {
        Some("|u1") => 1,
        Some("<f4" | "<i4") => 4,
        Some("<i8") => 8,
        _ => 0,
    };
    let sides = after("'shape': (");
    let sides = sides.split(')').next().unwrap_or_default().split(',');
    sides.filter_map(|side| side.trim().parse().ok()).fold(2 * width, usize::saturating_mul)
}
