//! PNG images as bytes, plane after plane: grey or red, green and blue.

use super::{Flaw, Source};
use png::{ColorType, DecodingError, Limits, Transformations};
use std::cell::Cell;
use std::io::{BufRead, Cursor, Read, Seek, SeekFrom};
use std::rc::Rc;

/// An image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Channels (1 or 3), height, width.
    pub shape: [usize; 3],
    /// Plane after plane, row after row.
    pub pixels: Vec<u8>,
}

// A photograph; training images are far smaller.
const LIMIT: usize = 1 << 26;
const SIDE: u32 = 4096;

/// Reads an image; transparency is dropped, palettes and 16 bits become 8 bits per channel.
pub fn picture(source: &mut Source) -> Result<Picture, Flaw> {
    let bytes = source.rest(LIMIT, "a PNG image")?;
    let place = Rc::new(Cell::new(0));
    let counted = Counted { bytes: Cursor::new(&bytes), place: Rc::clone(&place) };
    let broken = |error: DecodingError| {
        let expected = "a PNG image".to_owned();
        source.flaw(place.get().min(bytes.len() as u64), expected, error.to_string())
    };
    let mut decoder = png::Decoder::new_with_limits(counted, Limits { bytes: LIMIT });
    decoder.set_transformations(Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().map_err(broken)?;
    let (width, height) = (reader.info().width, reader.info().height);
    if width > SIDE || height > SIDE {
        let expected = format!("an image of at most {SIDE}x{SIDE}");
        return Err(source.flaw(16, expected, format!("{width}x{height}")));
    }
    let (color, _) = reader.output_color_type();
    let size = reader.output_buffer_size().unwrap_or(usize::MAX);
    if size > LIMIT {
        return Err(source.flaw(
            16,
            format!("an image of at most {LIMIT} bytes"),
            format!("{width}x{height}"),
        ));
    }
    let mut mixed = vec![0; size];
    reader.next_frame(&mut mixed).map_err(broken)?;
    let (samples, channels) = match color {
        ColorType::Grayscale | ColorType::Indexed => (1, 1),
        ColorType::GrayscaleAlpha => (2, 1),
        ColorType::Rgb => (3, 3),
        ColorType::Rgba => (4, 3),
    };
    let plane = |channel| mixed.iter().skip(channel).step_by(samples).copied();
    let pixels = (0..channels).flat_map(plane).collect();
    Ok(Picture { shape: [channels, height as usize, width as usize], pixels })
}

/// Writes an image.
pub fn png(shape: [usize; 3], pixels: &[u8]) -> Result<Vec<u8>, png::EncodingError> {
    let [channels, height, width] = shape;
    let area = height * width;
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width as u32, height as u32);
    encoder.set_color(if channels == 1 { ColorType::Grayscale } else { ColorType::Rgb });
    let mixed: Vec<u8> =
        (0..area).flat_map(|place| (0..channels).map(move |c| pixels[c * area + place])).collect();
    encoder.write_header()?.write_image_data(&mixed)?;
    Ok(bytes)
}

/// A reader that counts its bytes, since the decoder does not say where it failed.
struct Counted<'a> {
    bytes: Cursor<&'a Vec<u8>>,
    place: Rc<Cell<u64>>,
}

impl Read for Counted<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let read = self.bytes.read(into);
        self.place.set(self.bytes.position());
        read
    }
}

impl BufRead for Counted<'_> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        self.bytes.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.bytes.consume(amount);
        self.place.set(self.bytes.position());
    }
}

impl Seek for Counted<'_> {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.bytes.seek(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Picture, Flaw> {
        picture(&mut Source::bytes("x", bytes).unwrap())
    }

    #[test]
    fn grey_and_coloured_images_come_back_as_planes() {
        for channels in [1, 3] {
            let pixels: Vec<u8> = (0..channels * 6).map(|x| x as u8 * 7).collect();
            let bytes = png([channels, 2, 3], &pixels).unwrap();
            assert_eq!(read(&bytes).unwrap(), Picture { shape: [channels, 2, 3], pixels });
        }
    }

    #[test]
    fn a_cut_or_foreign_file_is_named_with_its_place() {
        let bytes = png([1, 20, 20], &(0..400u32).map(|x| (x * x) as u8).collect::<Vec<_>>()).unwrap();
        let cut = read(&bytes[..60]).unwrap_err();
        assert_eq!((cut.offset, cut.expected.as_str()), (60, "a PNG image"));
        assert!(read(b"JFIF and so on").unwrap_err().to_string().starts_with("x: at byte "));
    }
}
