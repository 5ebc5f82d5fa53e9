//! Models as safetensors files with PyTorch's tensor names: `load_state_dict` takes them as they are.

use fedtvd_core::layout::Layout;
use fedtvd_core::params::Params;
use safetensors::tensor::{Dtype, SafeTensorError, SafeTensors, TensorView};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// Why a model's file could not be written or read.
#[derive(Debug, Error)]
pub enum FileError {
    /// The file system said no.
    #[error("{path}: {why}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// What it said.
        why: std::io::Error,
    },
    /// No safetensors file.
    #[error("not a safetensors file: {0}")]
    Format(#[from] SafeTensorError),
    /// The file lacks a tensor of the model.
    #[error("the file has no tensor {0}, which the model needs")]
    Missing(String),
    /// The file has a tensor that the model does not know.
    #[error("the file has a tensor {0}, which the model does not know")]
    Unknown(String),
    /// A tensor of another shape or type.
    #[error("tensor {name} is {given} in the file, but {right} in the model")]
    Misfit {
        /// Which tensor.
        name: String,
        /// What the file has.
        given: String,
        /// What the model has.
        right: String,
    },
    /// A value that is no number.
    #[error("tensor {name} holds {value}, which is no finite number")]
    NotFinite {
        /// Which tensor.
        name: String,
        /// What it is.
        value: f32,
    },
}

/// Writes a model to a file.
pub fn save(params: &Params, path: &Path) -> Result<(), FileError> {
    std::fs::write(path, to_bytes(params)?).map_err(|why| FileError::Io { path: path.to_owned(), why })
}

/// Reads a model of this layout from a file; names, shapes and types must be the model's, values finite.
pub fn load(layout: Arc<Layout>, path: &Path) -> Result<Params, FileError> {
    let bytes = std::fs::read(path).map_err(|why| FileError::Io { path: path.to_owned(), why })?;
    from_bytes(layout, &bytes)
}

/// The bytes of a model's file.
pub fn to_bytes(params: &Params) -> Result<Vec<u8>, FileError> {
    let bytes: Vec<u8> = params.values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let mut views = Vec::new();
    for tensor in params.layout.tensors() {
        let range = tensor.range();
        let data = &bytes[range.start * 4..range.end * 4];
        views.push((tensor.name.as_str(), TensorView::new(Dtype::F32, tensor.shape.clone(), data)?));
    }
    Ok(safetensors::serialize(views, None)?)
}

/// A model of this layout from the bytes of a file. PyTorch's `num_batches_tracked` is passed over.
pub fn from_bytes(layout: Arc<Layout>, bytes: &[u8]) -> Result<Params, FileError> {
    let file = SafeTensors::deserialize(bytes)?;
    let mut names = file.names();
    names.sort_unstable();
    let known = |name: &str| layout.tensors().iter().any(|tensor| tensor.name == name);
    if let Some(name) = names.iter().find(|name| !known(name) && !name.ends_with(".num_batches_tracked")) {
        return Err(FileError::Unknown(name.to_string()));
    }
    let mut params = Params::zeros(layout.clone());
    for tensor in layout.tensors() {
        let view = file.tensor(&tensor.name).map_err(|_| FileError::Missing(tensor.name.clone()))?;
        if view.dtype() != Dtype::F32 || view.shape() != tensor.shape {
            return Err(FileError::Misfit {
                name: tensor.name.clone(),
                given: format!("{:?} {:?}", view.dtype(), view.shape()),
                right: format!("F32 {:?}", tensor.shape),
            });
        }
        for (value, bytes) in params.values[tensor.range()].iter_mut().zip(view.data().chunks_exact(4)) {
            *value = f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            if !value.is_finite() {
                return Err(FileError::NotFinite { name: tensor.name.clone(), value: *value });
            }
        }
    }
    Ok(params)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::named;

    fn layout(name: &str) -> Arc<Layout> {
        Arc::new(Layout::of(&named(name, [1, 28, 28], 10).unwrap()).unwrap())
    }

    #[test]
    fn a_model_comes_back_to_the_bit() {
        let params = Params::initial(layout("lenet-bn"), 3);
        assert_eq!(from_bytes(layout("lenet-bn"), &to_bytes(&params).unwrap()).unwrap(), params);
    }

    #[test]
    fn wrong_files_are_refused_with_the_tensor_named() {
        let bytes = to_bytes(&Params::initial(layout("lenet"), 3)).unwrap();
        let error = |name: &str, bytes: &[u8]| from_bytes(layout(name), bytes).unwrap_err().to_string();
        assert_eq!(
            error("lenet5", &bytes),
            "tensor fc1.weight is F32 [120, 256] in the file, but F32 [120, 400] in the model"
        );
        assert_eq!(error("lenet-bn", &bytes), "the file has no tensor bn1.weight, which the model needs");
        assert_eq!(
            error("logistic", &bytes),
            "the file has a tensor conv1.bias, which the model does not know"
        );
        assert!(error("lenet", &bytes[..bytes.len() - 1]).starts_with("not a safetensors file"));
        let mut broken = Params::initial(layout("lenet"), 3);
        broken.values[0] = f32::NAN;
        assert_eq!(
            error("lenet", &to_bytes(&broken).unwrap()),
            "tensor conv1.weight holds NaN, which is no finite number"
        );
    }
}
