//! Hashes of models (tensor by tensor), data sets and text.

use fedtvd_core::model::Params;
use fedtvd_core::train::{Samples, Values};
use fedtvd_data::hex;
use sha2::{Digest as _, Sha256};
use std::sync::Arc;

/// SHA-256 of bytes.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The hash of all models of a state, and a short hash of each tensor, model by model. That of a single model is its own.
pub(crate) fn models<'a>(models: impl Iterator<Item = &'a Arc<Params>>) -> (String, Vec<String>) {
    let (mut wholes, mut tensors) = (Vec::new(), Vec::new());
    for (whole, short) in models.map(|params| model(params)) {
        wholes.push(whole);
        tensors.extend(short);
    }
    match wholes.as_slice() {
        [only] => (only.clone(), tensors),
        several => (sha256(several.concat().as_bytes()), tensors),
    }
}

/// The hash of a model, and a short hash of each tensor in the layout's order.
pub(crate) fn model(params: &Params) -> (String, Vec<String>) {
    let mut whole = Sha256::new();
    let mut short = Vec::with_capacity(params.layout.tensors().len());
    let mut block = Vec::new();
    for tensor in params.layout.tensors() {
        let mut hash = Sha256::new();
        for values in params.values[tensor.range()].chunks(1 << 14) {
            block.clear();
            block.extend(values.iter().flat_map(|value| value.to_le_bytes()));
            hash.update(&block);
        }
        let digest = hash.finalize();
        whole.update(digest);
        short.push(hex(&digest[..4]));
    }
    (hex(&whole.finalize()), short)
}

/// The checksum of a data set: shape, classes, training rows, labels and values.
pub(crate) fn samples(samples: &Samples) -> String {
    let mut hash = Sha256::new();
    let numbers =
        samples.shape().into_iter().chain([samples.classes(), samples.train_rows(), samples.rows()]);
    numbers.for_each(|number| hash.update((number as u64).to_le_bytes()));
    let mut update = |bytes: &mut dyn Iterator<Item = [u8; 4]>| {
        let bytes: Vec<u8> = bytes.flatten().collect();
        hash.update(&bytes);
    };
    update(&mut samples.labels().iter().map(|label| label.to_le_bytes()));
    match samples.values() {
        Values::Bytes(bytes, worth) => {
            worth.iter().for_each(|worth| update(&mut worth.iter().map(|value| value.to_le_bytes())));
            hash.update(bytes);
        }
        Values::Floats(floats) => {
            floats.chunks(1 << 16).for_each(|part| update(&mut part.iter().map(|value| value.to_le_bytes())));
        }
    }
    hex(&hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedtvd_core::model::Layout;
    use std::sync::Arc;

    #[test]
    fn one_bit_changes_the_hash_of_its_tensor_and_of_the_model() {
        let zeros = Params::zeros(Arc::new(Layout::vector(20_000)));
        let mut other = zeros.clone();
        other.values[19_999] = f32::from_bits(1);
        let ((a, short_a), (b, short_b)) = (model(&zeros), model(&other));
        assert!(a != b && short_a != short_b);
        // sha256sum of 80,000 zero bytes starts with this; the model's hash is the hash of that hash.
        assert_eq!(short_a, [ZEROS]);
    }
    const ZEROS: &str = "f8c784aa";
}
