//! Devices by name: `cpu`, and those that whoever embeds this program registers.

use crate::backend::cpu::{NAME, OwnKernels};
use crate::backend::{Backend, BackendError};
use std::ops::Deref;
use std::sync::{Arc, PoisonError, RwLock};
use thiserror::Error;

/// A backend and the name under which it was chosen.
#[derive(Clone, Debug)]
pub struct Device {
    name: String,
    backend: Arc<dyn Backend>,
}

/// The device is not known here.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no device is called {name}; known here: {}{}", .known.join(", "), if *.only_cpu { HINT } else { "" })]
pub struct UnknownDevice {
    /// The requested name.
    name: String,
    /// The names that are known.
    known: Vec<String>,
    /// Whether no other backend is there.
    only_cpu: bool,
}

const HINT: &str = "; the Python package fedtvd brings cuda, mps and cpu-torch";

/// Opens a device by its name; `None` if it is not one of this family.
type Open = dyn Fn(&str) -> Option<Result<Arc<dyn Backend>, BackendError>> + Send + Sync;

/// Devices that a backend brings.
struct Family {
    /// Their names, for messages.
    names: Vec<String>,
    open: Box<Open>,
}

static FAMILIES: RwLock<Vec<Family>> = RwLock::new(Vec::new());

/// Makes devices known by name: `open` answers for every name that is one of them, such as `cuda:1` beside `cuda`. Of two that
/// answer, the one that was registered last counts; `cpu` is always this program's own.
pub fn register(
    names: &[&str],
    open: impl Fn(&str) -> Option<Result<Arc<dyn Backend>, BackendError>> + Send + Sync + 'static,
) {
    let family = Family { names: names.iter().map(|&name| name.to_owned()).collect(), open: Box::new(open) };
    FAMILIES.write().unwrap_or_else(PoisonError::into_inner).push(family);
}

/// The names of all known devices.
pub fn known() -> Vec<String> {
    let families = FAMILIES.read().unwrap_or_else(PoisonError::into_inner);
    let mut names = vec![NAME.to_owned()];
    for name in families.iter().flat_map(|family| &family.names) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

impl Device {
    /// The device of this name.
    pub fn named(name: &str) -> Result<Self, BackendError> {
        if name == NAME {
            return Ok(Self::default());
        }
        let families = FAMILIES.read().unwrap_or_else(PoisonError::into_inner);
        let opened = families.iter().rev().find_map(|family| (family.open)(name));
        drop(families);
        match opened {
            Some(backend) => Ok(Self { name: name.to_owned(), backend: backend? }),
            None => {
                let known = known();
                Err(UnknownDevice { name: name.to_owned(), only_cpu: known.len() == 1, known }.into())
            }
        }
    }

    /// A backend that is not registered.
    pub fn of(name: &str, backend: Arc<dyn Backend>) -> Self {
        Self { name: name.to_owned(), backend }
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Default for Device {
    /// The kernels of this program, on the cores of this machine.
    fn default() -> Self {
        Self { name: NAME.to_owned(), backend: Arc::new(OwnKernels) }
    }
}

impl Deref for Device {
    type Target = dyn Backend;

    fn deref(&self) -> &Self::Target {
        self.backend.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_device_is_answered_with_the_known_ones_and_where_others_come_from() {
        let error = Device::named("cuda:3").unwrap_err().to_string();
        let right = "no device is called cuda:3; known here: cpu; the Python package fedtvd brings cuda, mps and cpu-torch";
        assert_eq!(error, right);
        assert_eq!(Device::named("cpu").unwrap().name(), "cpu");
    }
}
