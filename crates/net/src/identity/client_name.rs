//! Names of clients, which are names of folders, too.

use thiserror::Error;

/// A name that cannot be a client's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "\"{0}\" is not a client's name: use at most 64 letters, digits, - _ and ., and start with a letter or digit"
)]
pub struct NameError(String);

/// Refuses names that cannot be a client's.
pub(crate) fn check_name(name: &str) -> Result<(), NameError> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.len() > 64 || !name.chars().all(allowed) || name.starts_with(['-', '_', '.']) {
        return Err(NameError(name.to_owned()));
    }
    Ok(())
}
