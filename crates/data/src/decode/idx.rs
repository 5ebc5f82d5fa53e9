//! IDX, the format of MNIST and Fashion-MNIST: a magic number, the sizes (big endian), then bytes.

use super::{Flaw, Source};

const IMAGES: u32 = 0x0803;
const LABELS: u32 = 0x0801;
const TABLE: u32 = 0x0c02;

/// Grey images of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Images {
    /// How many.
    pub count: usize,
    /// Pixels from top to bottom.
    pub height: usize,
    /// Pixels from left to right.
    pub width: usize,
}

/// Appends the pixels of an `idx3-ubyte` file, image after image, row after row.
pub fn images(source: &mut Source, pixels: &mut Vec<u8>) -> Result<Images, Flaw> {
    magic(source, IMAGES, "images")?;
    let count = number(source, "the number of images")? as usize;
    let height = side(source, "the height of an image")?;
    let width = side(source, "the width of an image")?;
    let length = count.checked_mul(height * width).ok_or_else(|| {
        source.flaw(4, "a number of images that fits in memory".to_owned(), count.to_string())
    })?;
    source.append(length, &format!("the pixels of {count} images of {height}x{width}"), pixels)?;
    source.end()?;
    Ok(Images { count, height, width })
}

/// Column `column` of an `idx2-int` file, whose rows are numbers of four bytes.
pub fn column(source: &mut Source, column: usize) -> Result<Vec<u32>, Flaw> {
    magic(source, TABLE, "tables of numbers")?;
    let count = number(source, "the number of rows")? as usize;
    let width = side(source, "the width of a row")?;
    if column >= width {
        return Err(source.flaw(8, format!("more than {column} columns"), width.to_string()));
    }
    let mut values = Vec::new();
    let mut row = vec![0; 4 * width];
    for number in 0..count {
        source.fill(&format!("row {number} of {count}"), &mut row)?;
        values.push(big_endian(&row[4 * column..4 * column + 4]));
    }
    source.end()?;
    Ok(values)
}

/// The labels of an `idx1-ubyte` file, each below `classes`.
pub fn labels(source: &mut Source, classes: usize) -> Result<Vec<u8>, Flaw> {
    magic(source, LABELS, "labels")?;
    let count = number(source, "the number of labels")? as usize;
    let start = source.offset();
    let labels = source.take(count, &format!("{count} labels"))?;
    if let Some((row, &label)) = labels.iter().enumerate().find(|(_, l)| usize::from(**l) >= classes) {
        let expected = format!("a label from 0 to {}", classes - 1);
        return Err(source.flaw(start + row as u64, expected, label.to_string()));
    }
    source.end()?;
    Ok(labels)
}

fn magic(source: &mut Source, expected: u32, what: &str) -> Result<(), Flaw> {
    let found = number(source, "a magic number")?;
    if found == expected {
        return Ok(());
    }
    Err(source.flaw(0, format!("the magic number {expected:#010x} of IDX {what}"), format!("{found:#010x}")))
}

fn side(source: &mut Source, what: &str) -> Result<usize, Flaw> {
    let side = number(source, what)?;
    if (1..=4096).contains(&side) {
        return Ok(side as usize);
    }
    Err(source.flaw(source.offset() - 4, format!("{what}, from 1 to 4096"), side.to_string()))
}

fn number(source: &mut Source, what: &str) -> Result<u32, Flaw> {
    Ok(big_endian(&source.take(4, what)?))
}

fn big_endian(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(words: &[u32], content: &[u8]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_be_bytes()).chain(content.iter().copied()).collect()
    }

    fn complaint(bytes: &[u8]) -> String {
        images(&mut Source::bytes("x", bytes).unwrap(), &mut Vec::new()).unwrap_err().to_string()
    }

    #[test]
    fn images_come_back_as_they_are() {
        let bytes = file(&[0x803, 2, 1, 3], &[1, 2, 3, 4, 5, 6]);
        let mut pixels = vec![9];
        let images = images(&mut Source::bytes("x", &bytes).unwrap(), &mut pixels).unwrap();
        assert_eq!(images, Images { count: 2, height: 1, width: 3 });
        assert_eq!(pixels, [9, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn a_column_of_a_table_comes_back() {
        let bytes = file(&[0xc02, 2, 3, 1, 2, 3, 4, 500, 6], &[]);
        assert_eq!(column(&mut Source::bytes("x", &bytes).unwrap(), 1).unwrap(), [2, 500]);
        assert_eq!(
            column(&mut Source::bytes("x", &bytes[..30]).unwrap(), 1).unwrap_err().to_string(),
            "x: at byte 24: expected row 1 of 2 (12 bytes), found the end of the file after 6 bytes"
        );
    }

    #[test]
    fn a_wrong_file_is_named_with_its_place_and_what_would_have_been_right() {
        assert_eq!(
            complaint(&file(&[0x801, 2, 1, 3], &[])),
            "x: at byte 0: expected the magic number 0x00000803 of IDX images, found 0x00000801"
        );
        assert_eq!(
            complaint(&file(&[0x803, 2, 1, 0], &[])),
            "x: at byte 12: expected the width of an image, from 1 to 4096, found 0"
        );
        assert_eq!(
            complaint(&file(&[0x803, 2, 1, 3], &[1, 2, 3, 4])),
            "x: at byte 16: expected the pixels of 2 images of 1x3 (6 bytes), found the end of the file after 4 bytes"
        );
        assert_eq!(
            complaint(&file(&[0x803, 1, 1, 1], &[1, 2])),
            "x: at byte 17: expected the end of the file, found more bytes"
        );
        let bytes = file(&[0x801, 3], &[0, 10, 1]);
        assert_eq!(
            labels(&mut Source::bytes("x", &bytes).unwrap(), 10).unwrap_err().to_string(),
            "x: at byte 9: expected a label from 0 to 9, found 10"
        );
    }
}
