//! The binary layout of CIFAR: records of one label byte (CIFAR-100: two) and 3,072 pixel bytes.

use super::{Flaw, Source};

/// Bytes of an image: three planes of 32 x 32.
pub const IMAGE: usize = 3 * 32 * 32;

/// Which labels precede an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One of 10 classes.
    Cifar10,
    /// One of 20 coarse classes, which is ignored, then one of 100 fine classes.
    Cifar100,
}

impl Layout {
    /// How many classes there are.
    pub fn classes(self) -> usize {
        match self {
            Self::Cifar10 => 10,
            Self::Cifar100 => 100,
        }
    }

    /// Bytes of a record.
    pub fn record(self) -> usize {
        self.labels() + IMAGE
    }

    fn labels(self) -> usize {
        match self {
            Self::Cifar10 => 1,
            Self::Cifar100 => 2,
        }
    }
}

/// Reads as many records as `pixels` has room for; nothing may follow them.
pub fn records(
    source: &mut Source,
    layout: Layout,
    pixels: &mut [u8],
    labels: &mut Vec<u32>,
) -> Result<(), Flaw> {
    let count = pixels.len() / IMAGE;
    let mut before = vec![0; layout.labels()];
    for (record, image) in pixels.chunks_exact_mut(IMAGE).enumerate() {
        source.fill(&format!("the label of record {record} of {count}"), &mut before)?;
        let label = before[before.len() - 1];
        if usize::from(label) >= layout.classes() {
            let expected = format!("a label from 0 to {}", layout.classes() - 1);
            return Err(source.flaw(source.offset() - 1, expected, label.to_string()));
        }
        labels.push(u32::from(label));
        source.fill(&format!("the image of record {record} of {count}"), image)?;
    }
    source.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(layout: Layout, labels: &[u8]) -> Vec<u8> {
        let coarse = if layout == Layout::Cifar100 { vec![19] } else { vec![] };
        labels.iter().flat_map(|label| [coarse.clone(), vec![*label], vec![*label; IMAGE]].concat()).collect()
    }

    fn read(bytes: &[u8], layout: Layout, count: usize) -> Result<(Vec<u8>, Vec<u32>), Flaw> {
        let (mut pixels, mut labels) = (vec![0; count * IMAGE], Vec::new());
        records(&mut Source::bytes("x", bytes).unwrap(), layout, &mut pixels, &mut labels)?;
        Ok((pixels, labels))
    }

    #[test]
    fn both_layouts_give_their_fine_labels_and_images() {
        for layout in [Layout::Cifar10, Layout::Cifar100] {
            let (pixels, labels) = read(&file(layout, &[3, 7]), layout, 2).unwrap();
            assert_eq!(labels, [3, 7]);
            assert_eq!(pixels, [vec![3; IMAGE], vec![7; IMAGE]].concat());
        }
    }

    #[test]
    fn a_wrong_file_is_named_with_its_place_and_what_would_have_been_right() {
        let bytes = file(Layout::Cifar10, &[3, 10]);
        let complaint = |bytes: &[u8], count| read(bytes, Layout::Cifar10, count).unwrap_err().to_string();
        assert_eq!(complaint(&bytes, 2), "x: at byte 3073: expected a label from 0 to 9, found 10");
        assert_eq!(
            complaint(&bytes[..3000], 1),
            "x: at byte 1: expected the image of record 0 of 1 (3072 bytes), found the end of the file after 2999 bytes"
        );
        assert_eq!(complaint(&bytes, 1), "x: at byte 3073: expected the end of the file, found more bytes");
    }
}
