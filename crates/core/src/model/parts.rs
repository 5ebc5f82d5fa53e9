//! A model in two parts: tensors that travel between server and clients, and tensors that stay at each client.

use crate::model::{Layout, Params, Tensor};
use std::borrow::Cow;
use std::sync::Arc;
use thiserror::Error;

/// The layouts of a whole model and of its two parts. Tensors keep their names and their order.
#[derive(Clone, Debug)]
pub struct Parts {
    /// All tensors.
    pub whole: Arc<Layout>,
    /// The tensors that travel; the same layout if all do.
    pub shared: Arc<Layout>,
    /// The tensors that stay at the client.
    pub own: Arc<Layout>,
}

/// Why a model cannot be divided as a strategy needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PartsError {
    /// Which tensors belong to which layer is not known.
    #[error("the model is not made of this program's layers, so that which tensors these are is not known")]
    UnknownLayers,
    /// No tensor would stay.
    #[error("the model has no such tensors")]
    NothingStays,
    /// No trainable tensor would travel.
    #[error("no trainable tensor of this model would be left to share")]
    NothingTravels,
}

impl Parts {
    /// Divides a layout by what travels.
    pub fn new(whole: &Arc<Layout>, travels: impl Fn(&Tensor) -> bool) -> Self {
        let (shared, own): (Vec<Tensor>, Vec<Tensor>) = whole.tensors().iter().cloned().partition(travels);
        let same = own.is_empty();
        Self {
            whole: Arc::clone(whole),
            shared: if same { Arc::clone(whole) } else { Arc::new(Layout::from_tensors(shared)) },
            own: Arc::new(Layout::from_tensors(own)),
        }
    }

    /// Whether every tensor travels.
    pub fn all_travel(&self) -> bool {
        self.own.is_empty()
    }

    /// Fails unless both parts have something to do.
    pub fn check(&self) -> Result<(), PartsError> {
        if !self.whole.knows_layers() {
            return Err(PartsError::UnknownLayers);
        }
        if self.all_travel() {
            return Err(PartsError::NothingStays);
        }
        if self.shared.trainable() == 0 { Err(PartsError::NothingTravels) } else { Ok(()) }
    }

    /// The whole model.
    ///
    /// # Panics
    /// Panics if a part does not have the length of its layout: whoever reads one from outside checks that.
    pub fn join<'a>(&self, shared: &'a Params, own: &[f32]) -> Cow<'a, Params> {
        if self.all_travel() {
            return Cow::Borrowed(shared);
        }
        let mut whole = Params::zeros(Arc::clone(&self.whole));
        for (part, values) in [(&self.shared, shared.values.as_slice()), (&self.own, own)] {
            for tensor in part.tensors() {
                let place = self.range(tensor);
                whole.values[place].copy_from_slice(&values[tensor.range()]);
            }
        }
        Cow::Owned(whole)
    }

    /// The part of a whole model that travels.
    pub fn shared_of(&self, whole: Params) -> Params {
        if self.all_travel() {
            return whole;
        }
        Params { layout: Arc::clone(&self.shared), values: self.gathered(&self.shared, &whole) }
    }

    /// The part of a whole model that stays.
    pub fn own_of(&self, whole: &Params) -> Vec<f32> {
        self.gathered(&self.own, whole)
    }

    fn gathered(&self, part: &Layout, whole: &Params) -> Vec<f32> {
        part.tensors().iter().flat_map(|tensor| &whole.values[self.range(tensor)]).copied().collect()
    }

    fn range(&self, tensor: &Tensor) -> std::ops::Range<usize> {
        self.whole.range(&tensor.name).expect("a part's tensors are those of the whole model")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{LayerKind, Role};

    fn whole() -> Arc<Layout> {
        let tensor = |name: &str, len, kind, role| Tensor::new(name, vec![len], 0, kind, role);
        Arc::new(Layout::from_tensors(vec![
            tensor("conv.weight", 2, LayerKind::Conv, Role::Weight),
            tensor("bn.weight", 1, LayerKind::BatchNorm, Role::Scale),
            tensor("bn.running_mean", 1, LayerKind::BatchNorm, Role::RunningMean),
            tensor("fc.weight", 3, LayerKind::Linear, Role::Weight),
        ]))
    }

    #[test]
    fn parts_joined_again_are_the_whole_model() {
        let parts = Parts::new(&whole(), |tensor| tensor.kind != LayerKind::BatchNorm);
        let values = vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
        let model = Params { layout: whole(), values };
        let own = parts.own_of(&model);
        let shared = parts.shared_of(model.clone());
        // In the whole layout, the buffer comes last.
        assert_eq!(
            (shared.values.as_slice(), own.as_slice()),
            (&[1.0, 2.0, 4.0, 5.0, 6.0][..], &[3.0, 7.0][..])
        );
        assert_eq!((parts.shared.trainable(), parts.own.trainable(), parts.own.len()), (5, 1, 2));
        assert_eq!(*parts.join(&shared, &own), model);
        assert_eq!(parts.check(), Ok(()));
    }

    #[test]
    fn a_model_that_travels_as_a_whole_keeps_its_layout() {
        let parts = Parts::new(&whole(), |_| true);
        assert!(Arc::ptr_eq(&parts.whole, &parts.shared));
        assert_eq!(parts.check(), Err(PartsError::NothingStays));
        assert_eq!(Parts::new(&whole(), |_| false).check(), Err(PartsError::NothingTravels));
    }

    #[test]
    fn a_model_whose_layers_are_not_known_is_not_divided() {
        let tensor = |name: &str, kind| Tensor::new(name, vec![2], 0, kind, Role::Other);
        let tensors = vec![tensor("a", LayerKind::Linear), tensor("b", LayerKind::Other)];
        let whole = Arc::new(Layout::from_tensors(tensors));
        let parts = Parts::new(&whole, |tensor| tensor.name == "a");
        assert_eq!(parts.check(), Err(PartsError::UnknownLayers));
    }
}
