//! A model as a safetensors file that PyTorch loads: tensors by name, with their shapes.

use crate::model::{Layout, ModelCard, Params, Role, Tensor};
use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};
use std::sync::Arc;
use thiserror::Error;

/// Why a file cannot be loaded as a model.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ModelFileError {
    /// Not a safetensors file.
    #[error("not a safetensors file: {0}")]
    Container(String),
    /// A missing tensor.
    #[error("tensor {name} of shape {shape:?} is missing")]
    Missing {
        /// The tensor's name.
        name: String,
        /// Its shape.
        shape: Vec<usize>,
    },
    /// A tensor of the wrong shape or type.
    #[error("tensor {name} is {got_type} of shape {got:?}; this model has F32 of shape {shape:?}")]
    Misfit {
        /// The tensor's name.
        name: String,
        /// The type in the file.
        got_type: String,
        /// The shape in the file.
        got: Vec<usize>,
        /// The shape in the model.
        shape: Vec<usize>,
    },
    /// A tensor that the model does not have.
    #[error("this model has no tensor {0}")]
    Surplus(String),
    /// A NaN or infinite value.
    #[error("tensor {name} holds {value}; every number must be finite")]
    NotFinite {
        /// The tensor's name.
        name: String,
        /// The value.
        value: f32,
    },
    /// A running variance below 0.
    #[error("tensor {name} holds {value}; a variance must not be negative")]
    NegativeVariance {
        /// The tensor's name.
        name: String,
        /// The value.
        value: f32,
    },
}

/// PyTorch's batch counter of a batch norm: ignored.
const COUNTER: &str = "num_batches_tracked";

impl Params {
    /// The model as a safetensors file.
    pub fn to_safetensors(&self) -> Vec<u8> {
        self.to_described_safetensors(None)
    }

    /// The model as a safetensors file with this card in its metadata, under `fedtvd`.
    pub fn to_described_safetensors(&self, card: Option<&ModelCard>) -> Vec<u8> {
        let bytes: Vec<u8> = self.values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let views = self.layout.tensors().iter().map(|tensor| {
            let range = tensor.range();
            let data = &bytes[4 * range.start..4 * range.end];
            let view = TensorView::new(Dtype::F32, tensor.shape.clone(), data);
            (tensor.name.as_str(), view.expect("the range has the shape's length"))
        });
        let of_these_widths = |card: &ModelCard| {
            ModelCard { network: card.network.with_widths(self.layout.widths()), ..card.clone() }.entry()
        };
        let entries = card.map(|card| [of_these_widths(card)].into_iter().collect());
        serialize(views, entries).expect("names and shapes make a small header")
    }

    /// Loads a model of this layout from a safetensors file, such as one written by PyTorch.
    pub fn from_safetensors(bytes: &[u8], layout: &Arc<Layout>) -> Result<Self, ModelFileError> {
        let file = SafeTensors::deserialize(bytes).map_err(|e| ModelFileError::Container(e.to_string()))?;
        // All names and shapes first: a layout from elsewhere may claim more numbers than there is memory for.
        let mut views = Vec::new();
        for tensor in layout.tensors() {
            views.push((tensor, view(&file, tensor)?));
        }
        check_names(&file, layout)?;
        let mut params = Self::zeros(Arc::clone(layout));
        for (tensor, view) in views {
            params.read(tensor, &view)?;
        }
        Ok(params)
    }

    /// The same for a model whose layers may have other widths: see [`Layout::with_widths`].
    pub fn from_safetensors_of_any_width(bytes: &[u8], layout: &Arc<Layout>) -> Result<Self, ModelFileError> {
        let fitting = fitting(bytes, layout)?.map(Arc::new);
        Self::from_safetensors(bytes, fitting.as_ref().unwrap_or(layout))
    }

    /// A model to start training from: the tensors of a safetensors file, such as one written by PyTorch. A head of another width
    /// (the last layer with parameters) keeps these initial values, and so does one that the file lacks; the names of its tensors are
    /// returned. Where layers are not known, the file must have every tensor.
    pub fn started_from(bytes: &[u8], initial: Self) -> Result<(Self, Vec<String>), ModelFileError> {
        let layout = Arc::clone(&initial.layout);
        let file = SafeTensors::deserialize(bytes).map_err(|e| ModelFileError::Container(e.to_string()))?;
        check_names(&file, &layout)?;
        let last = layout.tensors().iter().map(|tensor| tensor.layer).max().filter(|_| layout.knows_layers());
        let (head, body): (Vec<&Tensor>, Vec<&Tensor>) =
            layout.tensors().iter().partition(|tensor| Some(tensor.layer) == last);
        let mut params = initial;
        for tensor in body {
            let view = view(&file, tensor)?;
            params.read(tensor, &view)?;
        }
        if other_width(&file, &head) {
            return Ok((params, head.into_iter().map(|tensor| tensor.name.clone()).collect()));
        }
        for tensor in head {
            let view = view(&file, tensor)?;
            params.read(tensor, &view)?;
        }
        Ok((params, Vec::new()))
    }

    fn read(&mut self, tensor: &Tensor, view: &TensorView<'_>) -> Result<(), ModelFileError> {
        let values = &mut self.values[tensor.range()];
        for (value, chunk) in values.iter_mut().zip(view.data().as_chunks().0) {
            *value = f32::from_le_bytes(*chunk);
        }
        if let Some(&value) = values.iter().find(|value| !value.is_finite()) {
            return Err(ModelFileError::NotFinite { name: tensor.name.clone(), value });
        }
        let variance = tensor.role == Role::RunningVariance;
        match values.iter().find(|value| variance && **value < 0.0) {
            Some(&value) => Err(ModelFileError::NegativeVariance { name: tensor.name.clone(), value }),
            None => Ok(()),
        }
    }
}

/// The layout with the widths of a file's tensors, if they are others.
fn fitting(bytes: &[u8], layout: &Layout) -> Result<Option<Layout>, ModelFileError> {
    let file = SafeTensors::deserialize(bytes).map_err(|e| ModelFileError::Container(e.to_string()))?;
    let width = |tensor: &Tensor| file.tensor(&tensor.name).ok()?.shape().first().copied();
    let weights = layout.tensors().iter().filter(|tensor| tensor.role == Role::Weight);
    let Some(widths) = weights.map(width).collect::<Option<Vec<usize>>>() else { return Ok(None) };
    let fitting = layout.with_widths(&widths);
    let fits = |tensor: &Tensor| file.tensor(&tensor.name).is_ok_and(|view| view.shape() == tensor.shape);
    Ok(fitting.filter(|fitting| {
        let same = fitting.tensors().iter().zip(layout.tensors()).all(|(new, old)| new.shape == old.shape);
        // The last width is the number of classes.
        let classes = fitting.tensors().last().map(|tensor| &tensor.shape[..1]);
        !same
            && classes == layout.tensors().last().map(|tensor| &tensor.shape[..1])
            && fitting.tensors().iter().all(fits)
    }))
}

/// A tensor of a file, if it has the right type and shape.
fn view<'a>(file: &SafeTensors<'a>, tensor: &Tensor) -> Result<TensorView<'a>, ModelFileError> {
    let (name, shape) = (tensor.name.clone(), tensor.shape.clone());
    let Ok(view) = file.tensor(&tensor.name) else { return Err(ModelFileError::Missing { name, shape }) };
    if view.dtype() != Dtype::F32 || view.shape() != tensor.shape {
        let (got_type, got) = (format!("{:?}", view.dtype()), view.shape().to_vec());
        return Err(ModelFileError::Misfit { name, got_type, got, shape });
    }
    Ok(view)
}

/// Whether a file lacks all of these tensors, or has all of them with the same other number of outputs.
fn other_width(file: &SafeTensors<'_>, head: &[&Tensor]) -> bool {
    let widths: Vec<Option<usize>> = head
        .iter()
        .map(|tensor| {
            let shape = file.tensor(&tensor.name).ok()?.shape().to_vec();
            (shape.get(1..) == tensor.shape.get(1..)).then(|| shape[0])
        })
        .collect();
    let absent = head.iter().all(|tensor| file.tensor(&tensor.name).is_err());
    let own = head.first().and_then(|tensor| tensor.shape.first().copied());
    absent || widths.iter().all(|width| width.is_some() && *width == widths[0] && *width != own)
}

/// Fails if a file has a tensor that the layout has not.
fn check_names(file: &SafeTensors<'_>, layout: &Layout) -> Result<(), ModelFileError> {
    let known = |name: &str| layout.range(name).is_some() || name.ends_with(COUNTER);
    match file.names().into_iter().find(|name| !known(name)) {
        Some(name) => Err(ModelFileError::Surplus(name.to_owned())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Layer, Network};

    fn layout(classes: usize) -> Arc<Layout> {
        let layers = vec![
            Layer::BatchNorm { name: "bn".into() },
            Layer::Flatten,
            Layer::Linear { name: "fc".into(), out: classes },
        ];
        Arc::new(Layout::of(&Network { input: [2, 2, 2], classes, layers }).unwrap())
    }

    #[test]
    fn a_model_round_trips_bit_for_bit() {
        let params = Params::initial(layout(3), 1);
        assert_eq!(Params::from_safetensors(&params.to_safetensors(), &layout(3)), Ok(params));
    }

    #[test]
    fn a_card_stands_in_the_file_and_changes_no_tensor() {
        let params = Params::initial(layout(3), 1);
        let layers = vec![Layer::Flatten, Layer::Linear { name: "fc".into(), out: 3 }];
        let network = Network { input: [2, 1, 1], classes: 3, layers };
        let card = ModelCard { network: network.into(), schema: "[label]".to_owned() };
        let bytes = params.to_described_safetensors(Some(&card));
        assert_eq!(ModelCard::of(&bytes), Some(card));
        assert_eq!(ModelCard::of(&params.to_safetensors()), None);
        assert_eq!(Params::from_safetensors(&bytes, &layout(3)), Ok(params));
    }

    #[test]
    fn a_layout_that_no_memory_could_hold_is_compared_with_the_file_first() {
        let bytes = Params::initial(layout(3), 1).to_safetensors();
        let error = Params::from_safetensors(&bytes, &layout(1 << 28)).unwrap_err();
        assert!(matches!(error, ModelFileError::Misfit { .. }), "{error}");
    }

    #[test]
    fn a_start_takes_all_tensors_and_initialises_a_head_of_another_width_anew() {
        let file = Params::initial(layout(3), 1).to_safetensors();
        let own = Params::initial(layout(3), 1);
        assert_eq!(Params::started_from(&file, Params::initial(layout(3), 2)), Ok((own.clone(), Vec::new())));
        let (wider, new) = Params::started_from(&file, Params::initial(layout(4), 2)).unwrap();
        assert_eq!(new, ["fc.weight", "fc.bias"]);
        let fresh = Params::initial(layout(4), 2);
        assert_eq!(wider.tensor("fc.weight"), fresh.tensor("fc.weight"));
        assert_eq!(wider.tensor("bn.weight"), own.tensor("bn.weight"));
    }

    #[test]
    fn a_start_with_another_body_is_refused() {
        let other = Network {
            input: [3, 2, 2],
            classes: 3,
            layers: vec![
                Layer::BatchNorm { name: "bn".into() },
                Layer::Flatten,
                Layer::Linear { name: "fc".into(), out: 3 },
            ],
        };
        let file = Params::initial(Arc::new(Layout::of(&other).unwrap()), 1).to_safetensors();
        let error = Params::started_from(&file, Params::initial(layout(3), 1)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "tensor bn.weight is F32 of shape [3]; this model has F32 of shape [2]"
        );
    }

    #[test]
    fn a_mismatch_names_the_tensor_and_both_shapes() {
        let bytes = Params::initial(layout(3), 1).to_safetensors();
        let error = Params::from_safetensors(&bytes, &layout(4)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "tensor fc.weight is F32 of shape [3, 8]; this model has F32 of shape [4, 8]"
        );
        let mut params = Params::initial(layout(3), 1);
        params.values[0] = f32::NAN;
        let error = Params::from_safetensors(&params.to_safetensors(), &layout(3)).unwrap_err();
        assert_eq!(error.to_string(), "tensor bn.weight holds NaN; every number must be finite");
    }

    #[test]
    fn a_model_of_other_widths_is_read_if_its_layers_fit_each_other() {
        let linear = |name: &str, out| Layer::Linear { name: name.into(), out };
        let layers = vec![Layer::Flatten, linear("fc1", 4), Layer::Relu, linear("fc2", 3)];
        let network = Network { input: [1, 2, 2], classes: 3, layers };
        let layout = Arc::new(Layout::of(&network).unwrap());
        let read = |bytes: &[u8]| Params::from_safetensors_of_any_width(bytes, &layout);
        let wide = Params::initial(Arc::new(layout.with_widths(&[6, 3]).unwrap()), 1);
        assert_eq!(read(&wide.to_safetensors()), Ok(wide.clone()));
        assert!(Params::from_safetensors(&wide.to_safetensors(), &layout).is_err());
        let same = Params::initial(Arc::clone(&layout), 1);
        assert_eq!(read(&same.to_safetensors()), Ok(same));
        let four_classes = Params::initial(Arc::new(layout.with_widths(&[6, 4]).unwrap()), 1);
        assert!(matches!(read(&four_classes.to_safetensors()), Err(ModelFileError::Misfit { .. })));
    }

    #[test]
    fn a_negative_running_variance_is_refused() {
        let mut params = Params::initial(layout(3), 1);
        let place = params.layout.range("bn.running_var").unwrap().start;
        params.values[place] = -0.5;
        let (file, why) =
            (params.to_safetensors(), "tensor bn.running_var holds -0.5; a variance must not be negative");
        assert_eq!(Params::from_safetensors(&file, &layout(3)).unwrap_err().to_string(), why);
        assert_eq!(Params::started_from(&file, Params::initial(layout(3), 1)).unwrap_err().to_string(), why);
        let place = params.layout.range("bn.running_mean").unwrap().start;
        let mut params = Params::initial(layout(3), 1);
        params.values[place] = -0.5;
        assert_eq!(Params::from_safetensors(&params.to_safetensors(), &layout(3)), Ok(params));
    }
}
