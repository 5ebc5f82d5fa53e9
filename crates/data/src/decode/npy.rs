//! NPY, the format of `numpy.save`: magic, version, a Python dictionary with type and shape, then numbers.

use super::{Flaw, Source};

/// Numbers of one type.
#[derive(Clone, Debug, PartialEq)]
pub enum Numbers {
    /// `|u1`.
    Bytes(Vec<u8>),
    /// `<f4`.
    Floats(Vec<f32>),
    /// `<i4` or `<i8`, none negative.
    Counts(Vec<u32>),
}

/// An array.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Its sides.
    pub shape: Vec<usize>,
    /// Its numbers, the last side running fastest.
    pub numbers: Numbers,
}

const MAGIC: &[u8] = b"\x93NUMPY";

/// Reads an array.
pub fn array(source: &mut Source) -> Result<Array, Flaw> {
    let start = source.take(8, "the start of an NPY file")?;
    if &start[..6] != MAGIC || !(1..=3).contains(&start[6]) {
        let expected = "the start of an NPY file of version 1, 2 or 3".to_owned();
        return Err(source.flaw(0, expected, format!("{:?}", String::from_utf8_lossy(&start))));
    }
    let width = if start[6] == 1 { 2 } else { 4 };
    let length = source.take(width, "the length of the header")?;
    let length = length.iter().rev().fold(0, |length, byte| length << 8 | usize::from(*byte));
    if length > 1 << 16 {
        return Err(source.flaw(8, "a header of at most 65536 bytes".to_owned(), length.to_string()));
    }
    let header = source.take(length, "the header")?;
    let header = String::from_utf8_lossy(&header).into_owned();
    let wrong = |expected: &str| {
        let found: String = header.chars().take(80).collect();
        source.flaw(8 + width as u64, expected.to_owned(), format!("{:?}", found.trim()))
    };
    if !header.contains("'fortran_order': False") {
        return Err(wrong("a header with 'fortran_order': False"));
    }
    let shape = shape(&header).ok_or_else(|| wrong("a header with a shape"))?;
    let count = shape.iter().try_fold(1usize, |count, side| count.checked_mul(*side));
    let count = count.filter(|count| *count <= usize::MAX / 8);
    let count = count.ok_or_else(|| wrong("a shape that fits in memory"))?;
    let kind = header.split("'descr': '").nth(1).and_then(|rest| rest.split('\'').next());
    let kind = kind.map(str::to_owned).ok_or_else(|| wrong("a header with a type"))?;
    let unknown = wrong("the type |u1, <f4, <i4 or <i8");
    let numbers = match kind.as_str() {
        "|u1" => Numbers::Bytes(source.take(count, "the array")?),
        "<f4" => {
            let bytes = source.take(4 * count, "the array")?;
            Numbers::Floats(bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
        }
        "<i4" | "<i8" => {
            let width = if kind == "<i4" { 4 } else { 8 };
            let offset = source.offset();
            let bytes = source.take(width * count, "the array")?;
            Numbers::Counts(counts(source, &bytes, width, offset)?)
        }
        _ => return Err(unknown),
    };
    source.end()?;
    Ok(Array { shape, numbers })
}

fn counts(source: &Source, bytes: &[u8], width: usize, offset: u64) -> Result<Vec<u32>, Flaw> {
    let mut counts = Vec::with_capacity(bytes.len() / width);
    for (place, bytes) in bytes.chunks_exact(width).enumerate() {
        let number = bytes.iter().rev().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
        match i32::try_from(number) {
            Ok(number) => counts.push(number as u32),
            Err(_) => {
                let expected = "a number from 0 to 2147483647".to_owned();
                let found = format!("{number:#x}");
                return Err(source.flaw(offset + (place * width) as u64, expected, found));
            }
        }
    }
    Ok(counts)
}

fn shape(header: &str) -> Option<Vec<usize>> {
    let inside = header.split("'shape': (").nth(1)?.split_once(')')?.0;
    let sides = inside.split(',').map(str::trim).filter(|side| !side.is_empty());
    sides.map(|side| side.parse().ok()).collect()
}

/// Writes an array.
pub fn npy(array: &Array) -> Vec<u8> {
    let (kind, numbers): (&str, Vec<u8>) = match &array.numbers {
        Numbers::Bytes(bytes) => ("|u1", bytes.clone()),
        Numbers::Floats(floats) => ("<f4", floats.iter().flat_map(|x| x.to_le_bytes()).collect()),
        Numbers::Counts(counts) => ("<i4", counts.iter().flat_map(|x| x.to_le_bytes()).collect()),
    };
    let sides: String = array.shape.iter().map(|side| format!("{side}, ")).collect();
    let mut header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({sides}), }}");
    // The format asks that numbers start at a multiple of 64 and that the header ends with a new line.
    header.push_str(&" ".repeat(63 - (10 + header.len()) % 64));
    header.push('\n');
    let length = (header.len() as u16).to_le_bytes();
    [MAGIC, &[1, 0], &length, header.as_bytes(), &numbers].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Array, Flaw> {
        array(&mut Source::bytes("x", bytes).unwrap())
    }

    #[test]
    fn arrays_of_every_type_come_back() {
        for numbers in [
            Numbers::Bytes(vec![1, 2, 3, 255, 0, 6]),
            Numbers::Floats(vec![0.5, -1.0, 3.25, f32::MIN, 0.0, 7.0]),
            Numbers::Counts(vec![1, 2, 3, 4, 5, 2_147_483_647]),
        ] {
            let array = Array { shape: vec![2, 3], numbers };
            let bytes = npy(&array);
            assert_eq!(bytes.iter().position(|byte| *byte == b'\n').map(|end| (end + 1) % 64), Some(0));
            assert_eq!(read(&bytes).unwrap(), array);
        }
    }

    #[test]
    fn what_numpy_itself_writes_is_read() {
        // numpy.save of numpy.array([3, 1]), version 2.
        let header = "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }";
        let header = format!("{header:117}\n");
        let numbers: Vec<u8> = [3u64, 1].iter().flat_map(|x| x.to_le_bytes()).collect();
        let bytes = [b"\x93NUMPY\x01\x00".as_slice(), &[118, 0], header.as_bytes(), &numbers].concat();
        assert_eq!(read(&bytes).unwrap(), Array { shape: vec![2], numbers: Numbers::Counts(vec![3, 1]) });
    }

    #[test]
    fn a_wrong_file_is_named_with_its_place() {
        let good = npy(&Array { shape: vec![2], numbers: Numbers::Counts(vec![1, 2]) });
        let swap = |from: &str, to: &str| {
            let place = good.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
            let mut bytes = good.clone();
            bytes[place..place + from.len()].copy_from_slice(to.as_bytes());
            read(&bytes).unwrap_err().to_string()
        };
        assert!(swap("NUMPY", "BUMPY").starts_with("x: at byte 0: expected the start of an NPY file"));
        assert!(swap("<i4", "<c8").starts_with("x: at byte 10: expected the type |u1, <f4, <i4 or <i8"));
        assert!(swap("(2, ", "(x, ").starts_with("x: at byte 10: expected a header with a shape"));
        assert!(swap("(2, ),", "(2,   ").starts_with("x: at byte 10: expected a header with a shape"));
        assert!(swap("(2, ", "(3, ").starts_with("x: at byte 128: expected the array (12 bytes)"));
        let mut negative = good.clone();
        negative[135] = 0xff;
        assert!(
            read(&negative).unwrap_err().to_string().starts_with("x: at byte 132: expected a number from 0")
        );
    }
}
