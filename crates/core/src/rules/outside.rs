//! Methods whose rules come from outside this program, such as from Python: what a run must know of them.
//!
//! Rules answer without errors, because those of this crate cannot fail. A rule from outside can. Then it notes why,
//! and answers with anything of the right length; whoever called it asks [`Strategy::failure`](super::Strategy::failure)
//! before the answer counts.

use crate::rules::{Recipe, Settings};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Where the rules of a registered method come from.
pub struct Origin {
    /// Hash of the source of its rules, for manifests.
    pub source: String,
    /// Its rules under given settings. They note their failures in the [`Outside`] that they get.
    pub build: Build,
}

/// A function from settings to rules.
pub type Build = Box<dyn Fn(&Settings, &Outside) -> Recipe + Send + Sync>;

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Origin").field("source", &self.source).finish_non_exhaustive()
    }
}

/// A method from outside, as a part of one strategy.
#[derive(Clone)]
pub struct Outside {
    /// Its name.
    pub name: &'static str,
    /// Hash of the source of its rules.
    pub source: &'static str,
    failed: Arc<Mutex<Option<String>>>,
}

impl fmt::Debug for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outside")
            .field("name", &self.name)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

impl Outside {
    pub(crate) fn new(name: &'static str, source: &'static str) -> Self {
        Self { name, source, failed: Arc::default() }
    }

    /// Notes why a rule could not answer. The first reason is kept.
    pub fn fail(&self, why: impl fmt::Display) {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.get_or_insert_with(|| format!("{}: {why}", self.name));
    }

    /// Why one of its rules could not answer, with the method's name.
    pub fn failure(&self) -> Option<String> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
