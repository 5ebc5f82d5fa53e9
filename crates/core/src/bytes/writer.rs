//! Writes a safetensors file: its head, then the values. Each can be written alone.

use crate::bytes::VERSION;
use crate::bytes::reader::{ENTRY, Envelope};
use crate::memory::{Array, Memory};
use safetensors::tensor::{Dtype, Metadata, TensorInfo};
use serde::Serialize;

/// Named vectors in the order of the file.
#[derive(Default)]
pub(crate) struct Writer<'a> {
    vectors: Vec<(String, Numbers<'a>)>,
}

#[derive(Clone, Copy)]
enum Numbers<'a> {
    F32(&'a [f32]),
    F64(&'a [f64]),
    U64(&'a [u64]),
}

impl<'a> Writer<'a> {
    pub(crate) fn put(&mut self, name: &str, values: &'a [f32]) {
        self.add(name.to_owned(), Numbers::F32(values));
    }

    pub(crate) fn put_memory(&mut self, prefix: &str, memory: &'a Memory) {
        for (name, array) in memory.arrays() {
            let numbers = match array {
                Array::F32(values) => Numbers::F32(values),
                Array::F64(values) => Numbers::F64(values),
                Array::U64(values) => Numbers::U64(values),
            };
            self.add(format!("{prefix}/{name}"), numbers);
        }
    }

    /// The widest types first, so that all values are aligned; then by name.
    fn add(&mut self, name: String, numbers: Numbers<'a>) {
        self.vectors.push((name, numbers));
        self.vectors.sort_by(|(a, left), (b, right)| right.dtype().cmp(&left.dtype()).then_with(|| a.cmp(b)));
    }

    /// The whole file with this header.
    pub(crate) fn write<H: Serialize>(&self, kind: &str, header: &H) -> Vec<u8> {
        let mut bytes = self.head(kind, header);
        self.write_numbers(&mut bytes);
        bytes
    }

    /// The head of the file, which does not depend on the values.
    pub(crate) fn head<H: Serialize>(&self, kind: &str, header: &H) -> Vec<u8> {
        let envelope = Envelope { kind: kind.to_owned(), version: VERSION, header };
        let text =
            serde_json::to_string(&envelope).expect("headers are plain structs of numbers and strings");
        let mut end = 0;
        let tensors = self.vectors.iter().map(|(name, numbers)| {
            let start = end;
            end += numbers.size();
            let shape = vec![numbers.len()];
            (name.clone(), TensorInfo { dtype: numbers.dtype(), shape, data_offsets: (start, end) })
        });
        let entries = [(ENTRY.to_owned(), text)].into_iter().collect();
        let metadata = Metadata::new(Some(entries), tensors.collect()).expect("vectors follow each other");
        let mut json = serde_json::to_vec(&metadata).expect("names and numbers");
        json.resize(json.len().next_multiple_of(8), b' ');
        [&(json.len() as u64).to_le_bytes()[..], &json].concat()
    }

    /// The values, which follow the head.
    pub(crate) fn numbers(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write_numbers(&mut bytes);
        bytes
    }

    fn write_numbers(&self, bytes: &mut Vec<u8>) {
        bytes.reserve_exact(self.vectors.iter().map(|(_, numbers)| numbers.size()).sum());
        for (_, numbers) in &self.vectors {
            match numbers {
                Numbers::F32(values) => bytes.extend(values.iter().flat_map(|x| x.to_le_bytes())),
                Numbers::F64(values) => bytes.extend(values.iter().flat_map(|x| x.to_le_bytes())),
                Numbers::U64(values) => bytes.extend(values.iter().flat_map(|x| x.to_le_bytes())),
            }
        }
    }
}

impl Numbers<'_> {
    fn dtype(&self) -> Dtype {
        match self {
            Self::F32(_) => Dtype::F32,
            Self::F64(_) => Dtype::F64,
            Self::U64(_) => Dtype::U64,
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::F64(values) => values.len(),
            Self::U64(values) => values.len(),
        }
    }

    fn size(&self) -> usize {
        self.len() * self.dtype().bitsize() / 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use safetensors::tensor::{TensorView, serialize};

    #[test]
    fn the_bytes_equal_those_of_the_safetensors_crate() {
        let mut memory = Memory::default();
        memory.put("b", vec![0.1f64, -0.0]);
        memory.put("a", vec![1.5f32]);
        memory.put("none", Vec::<u64>::new());
        memory.put("c", vec![7u64, u64::MAX]);
        let model = [1.0f32, f32::NAN, -2.5];
        let mut writer = Writer::default();
        writer.put("model", &model);
        writer.put_memory("carried", &memory);
        let le = |bytes: &[&[u8]]| bytes.concat();
        let data = [
            (
                "model",
                Dtype::F32,
                3,
                le(&model.each_ref().map(|x| x.to_le_bytes()).each_ref().map(|x| &x[..])),
            ),
            ("carried/b", Dtype::F64, 2, le(&[&0.1f64.to_le_bytes(), &(-0.0f64).to_le_bytes()])),
            ("carried/a", Dtype::F32, 1, le(&[&1.5f32.to_le_bytes()])),
            ("carried/none", Dtype::U64, 0, Vec::new()),
            ("carried/c", Dtype::U64, 2, le(&[&7u64.to_le_bytes(), &u64::MAX.to_le_bytes()])),
        ];
        let views = data
            .iter()
            .map(|(name, dtype, len, bytes)| (*name, TensorView::new(*dtype, vec![*len], bytes).unwrap()));
        let text = r#"{"kind":"letter","version":1,"header":[1,2]}"#;
        let entries = [(ENTRY.to_owned(), text.to_owned())].into_iter().collect();
        let expected = serialize(views, Some(entries)).unwrap();
        assert_eq!(writer.write("letter", &[1, 2]), expected);
        assert_eq!([writer.head("letter", &[1, 2]), writer.numbers()].concat(), expected);
    }
}
