//! Models that are not made of layers, by name: whoever embeds this program registers them, and a configuration names them in
//! `model.name` like any other model.

use fedtvd_core::model::{Layout, OtherModel, Params, Shape};
use fedtvd_nn::models;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use thiserror::Error;

/// Makes models of one name.
pub trait ModelSource: Send + Sync {
    /// The model for samples of this shape and this number of classes; the error says why there is none.
    fn define(&self, input: Shape, classes: usize) -> Result<OtherModel, String>;

    /// Its initial values of this seed, in the order of its layout.
    fn initial(&self, model: &OtherModel, seed: u64) -> Result<Vec<f32>, String>;
}

/// Why a model cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RegisterError {
    /// The name of a model that is built in.
    #[error("{0} is a model of this program; give yours another name")]
    Taken(String),
    /// A name that a configuration or a folder could not have.
    #[error("{0:?} is not a name of a model: letters, digits, -, _ and . only, and not more than 100")]
    Name(String),
}

static MODELS: RwLock<BTreeMap<String, Arc<dyn ModelSource>>> = RwLock::new(BTreeMap::new());

/// Makes a model known by name, in place of an earlier one of this name.
pub fn register_model(name: &str, source: Arc<dyn ModelSource>) -> Result<(), RegisterError> {
    if models::ALL.iter().any(|model| model.name == name) {
        return Err(RegisterError::Taken(name.to_owned()));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > 100 || !name.chars().all(plain) {
        return Err(RegisterError::Name(name.to_owned()));
    }
    MODELS.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), source);
    Ok(())
}

/// The names of all registered models.
pub fn other_models() -> Vec<String> {
    MODELS.read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
}

/// What makes models of this name, if it is known here.
pub fn other_model(name: &str) -> Option<Arc<dyn ModelSource>> {
    MODELS.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
}

/// The initial values of a registered model.
pub(crate) fn initial(model: &OtherModel, layout: &Arc<Layout>, seed: u64) -> Result<Params, String> {
    let name = &model.other;
    let source = other_model(name).ok_or_else(|| format!("model {name} is not known here"))?;
    let values = source.initial(model, seed)?;
    if values.len() != layout.len() {
        let (own, right) = (values.len(), layout.len());
        return Err(format!("model {name} has {own} initial values; its tensors have {right}"));
    }
    match values.iter().find(|value| !value.is_finite()) {
        Some(value) => {
            Err(format!("model {name} has the initial value {value}; every number must be finite"))
        }
        None => Ok(Params { layout: Arc::clone(layout), values }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing;

    impl ModelSource for Nothing {
        fn define(&self, _: Shape, _: usize) -> Result<OtherModel, String> {
            Err("not asked for".to_owned())
        }

        fn initial(&self, _: &OtherModel, _: u64) -> Result<Vec<f32>, String> {
            Ok(vec![f32::NAN])
        }
    }

    #[test]
    fn a_name_that_is_taken_or_no_name_is_refused() {
        let refused = |name: &str| register_model(name, Arc::new(Nothing)).unwrap_err().to_string();
        assert_eq!(refused("lenet"), "lenet is a model of this program; give yours another name");
        assert!(refused("a/b").starts_with("\"a/b\" is not a name of a model"));
    }

    #[test]
    fn initial_values_must_be_finite_and_as_many_as_the_model_has() {
        register_model("nothing", Arc::new(Nothing)).unwrap();
        let model = OtherModel {
            other: "nothing".into(),
            source: String::new(),
            input: [1, 1, 1],
            classes: 2,
            tensors: vec![],
        };
        let values = |len| initial(&model, &Arc::new(Layout::vector(len)), 1).unwrap_err();
        assert_eq!(values(1), "model nothing has the initial value NaN; every number must be finite");
        assert_eq!(values(2), "model nothing has 1 initial values; its tensors have 2");
    }
}
