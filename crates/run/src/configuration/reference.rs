//! Where the reference label distribution Q comes from: `labels.reference` of a configuration.

use crate::configuration::{Config, Value};
use fedtvd_core::labels::{Reference, ReferenceError};
use thiserror::Error;

/// Where the reference label distribution comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum ReferenceSource {
    /// Uniform over the classes.
    Uniform,
    /// Given in the configuration.
    Given(Reference),
    /// The label counts of all clients, collected once before the first round.
    Aggregated,
}

/// The given reference and the data have different numbers of classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("labels.reference has {given} numbers, but there are {classes} classes")]
pub struct ClassMismatch {
    /// Number of classes of the reference.
    pub given: usize,
    /// Number of classes of the data.
    pub classes: usize,
}

impl ReferenceSource {
    /// Reads `labels.reference`.
    pub(crate) fn of(config: &Config) -> Result<Self, ReferenceError> {
        match config.get("labels.reference") {
            Value::Text(word) if word == "aggregated" => Ok(Self::Aggregated),
            Value::List(shares) => {
                Reference::given(shares.iter().filter_map(Value::number).collect()).map(Self::Given)
            }
            _ => Ok(Self::Uniform),
        }
    }

    /// The reference over this number of classes; `None` if it is to be aggregated from the clients' label counts.
    pub fn resolve(&self, classes: usize) -> Result<Option<Reference>, ClassMismatch> {
        match self {
            Self::Uniform => Ok(Some(Reference::uniform(classes))),
            Self::Given(given) if given.classes() == classes => Ok(Some(given.clone())),
            Self::Given(given) => Err(ClassMismatch { given: given.classes(), classes }),
            Self::Aggregated => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_resolved_for_the_classes_of_the_data() {
        let given = Reference::given(vec![0.75, 0.25]).unwrap();
        assert_eq!(ReferenceSource::Uniform.resolve(4), Ok(Some(Reference::uniform(4))));
        assert_eq!(ReferenceSource::Given(given.clone()).resolve(2), Ok(Some(given.clone())));
        assert_eq!(ReferenceSource::Aggregated.resolve(2), Ok(None));
        assert_eq!(
            ReferenceSource::Given(given).resolve(3).unwrap_err().to_string(),
            "labels.reference has 2 numbers, but there are 3 classes"
        );
    }
}
