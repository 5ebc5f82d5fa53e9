//! The head of an upload in a file: its sender, its report, and where its values are.
//!
//! Same format and checks as [`Upload::from_bytes`](crate::round::updates::Upload::from_bytes), but the values are
//! not loaded, so that a server can read updates of any size block by block.

use crate::bytes::BytesError;
use crate::bytes::messages::UploadHeader;
use crate::bytes::reader;
use crate::model::Layout;
use crate::round::{ClientId, Report, UpdatePart};
use crate::rules::Extent;
use safetensors::tensor::{Dtype, Metadata};
use std::collections::BTreeMap;

/// Maximum number of bytes of a head.
pub const LARGEST: usize = 1 << 16;

/// The decoded head of an upload.
#[derive(Clone, Debug, PartialEq)]
pub struct UploadHead {
    /// The client.
    pub client: ClientId,
    /// Its report on the round.
    pub report: Report,
    /// Offset in the file and length of each part; `None` is the model.
    places: BTreeMap<Option<String>, (u64, usize)>,
}

/// Length of the head that begins with these eight bytes, including them.
pub fn length(first: [u8; 8]) -> Result<usize, BytesError> {
    let length = u64::from_le_bytes(first);
    match usize::try_from(length) {
        Ok(length) if length <= LARGEST - 8 => Ok(8 + length),
        _ => Err(BytesError::Container(format!(
            "a head of {length} bytes; at most {} are allowed",
            LARGEST - 8
        ))),
    }
}

impl UploadHead {
    /// Decodes the head of a file of `size` bytes, for a model of this layout.
    pub fn from_bytes(head: &[u8], size: u64, layout: &Layout) -> Result<Self, BytesError> {
        let text = head.get(8..).unwrap_or_default();
        let metadata: Metadata =
            serde_json::from_slice(text).map_err(|error| BytesError::Container(error.to_string()))?;
        let UploadHeader { client, report } = reader::header("upload", &metadata)?;
        let needed = head.len() as u64 + metadata.data_len() as u64;
        if needed != size {
            return Err(BytesError::Container(format!("{size} bytes, but its head announces {needed}")));
        }
        let mut places = BTreeMap::new();
        let extents = [Extent::Trainable, Extent::Buffers].map(|extent| extent.len(layout));
        for name in metadata.offset_keys() {
            let Some(info) = metadata.info(&name) else { continue };
            let len = info.shape.iter().product();
            let (part, lengths) = match name.strip_prefix("carried/") {
                Some(carried) => (Some(carried.to_owned()), extents.as_slice()),
                None if name == "model" => (None, &[layout.len()][..]),
                None => return Err(BytesError::Surplus(name)),
            };
            if info.dtype != Dtype::F32 || !lengths.contains(&len) {
                let lengths: Vec<String> = lengths.iter().map(ToString::to_string).collect();
                let expected = format!("{} f32 numbers", lengths.join(" or "));
                return Err(BytesError::Tensor { name, expected });
            }
            places.insert(part, ((head.len() + info.data_offsets.0) as u64, len));
        }
        if !places.contains_key(&None) {
            let expected = format!("{} f32 numbers", layout.len());
            return Err(BytesError::Tensor { name: "model".to_owned(), expected });
        }
        Ok(Self { client, report, places })
    }

    /// Each part with its offset in the file and its length.
    pub(crate) fn places(&self) -> impl Iterator<Item = (UpdatePart<'_>, u64, usize)> {
        self.places.iter().map(|(name, &(start, len))| {
            (name.as_deref().map_or(UpdatePart::Model, UpdatePart::Carried), start, len)
        })
    }

    /// Offset in the file and length of a part.
    pub fn place(&self, part: UpdatePart<'_>) -> Option<(u64, usize)> {
        let name = match part {
            UpdatePart::Model => None,
            UpdatePart::Carried(name) => Some(name.to_owned()),
        };
        self.places.get(&name).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;
    use crate::model::Params;
    use crate::round::Upload;
    use std::sync::Arc;

    fn upload() -> (Upload, Vec<u8>) {
        let params = Params { layout: Arc::new(Layout::vector(3)), values: vec![1.0, -2.0, 0.5] };
        let mut carried = Memory::default();
        carried.put("control", vec![4.0f32, 5.0, 6.0]);
        let report =
            Report { round: 2, steps: 1, reach: 0.1, losses: [1.0, 0.5], remembers: true, branch: 0 };
        let upload = Upload { client: 7, params, carried, report };
        let bytes = upload.to_bytes();
        (upload, bytes)
    }

    fn head(bytes: &[u8]) -> Result<UploadHead, BytesError> {
        let first = bytes.get(..8).and_then(|first| first.try_into().ok());
        let length = length(first.ok_or(BytesError::NoHeader)?)?;
        let head = bytes.get(..length).ok_or(BytesError::NoHeader)?;
        UploadHead::from_bytes(head, bytes.len() as u64, &Layout::vector(3))
    }

    #[test]
    fn the_offsets_point_to_the_values() {
        let (upload, bytes) = upload();
        let head = head(&bytes).unwrap();
        assert_eq!((head.client, head.report), (7, upload.report));
        for (part, values) in [
            (UpdatePart::Model, upload.params.values.as_slice()),
            (UpdatePart::Carried("control"), upload.carried.f32("control").unwrap()),
        ] {
            let (start, len) = head.place(part).unwrap();
            let bytes = &bytes[start as usize..start as usize + 4 * len];
            let read: Vec<f32> = bytes.as_chunks().0.iter().map(|chunk| f32::from_le_bytes(*chunk)).collect();
            assert_eq!(read, values);
        }
        assert_eq!(head.place(UpdatePart::Carried("nothing")), None);
    }

    #[test]
    fn a_head_is_refused_whenever_the_whole_upload_is() {
        let (_, bytes) = upload();
        let layout = Arc::new(Layout::vector(3));
        for len in 0..bytes.len() {
            assert!(head(&bytes[..len]).is_err());
        }
        for place in 0..bytes.len() {
            for flip in [0x01, 0x10, 0x80, 0xff] {
                let mut bytes = bytes.clone();
                bytes[place] ^= flip;
                assert_eq!(
                    head(&bytes).is_ok(),
                    Upload::from_bytes(&bytes, &layout).is_ok(),
                    "{place} {flip}"
                );
            }
        }
    }
}
