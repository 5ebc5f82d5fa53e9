//! `fedtvd join --request NAME`: a site makes its own key and a request for the operator to sign.

use crate::request::{Failure, Output};
use fedtvd_net::identity::{RequestError, Requested, request_certificate};
use serde::Serialize;
use std::path::{Path, PathBuf};

#[derive(Serialize)]
struct View<'a> {
    name: &'a str,
    key: PathBuf,
    request: PathBuf,
    key_hash: String,
    new_key: bool,
}

/// Writes key and request into the site's folder.
pub(crate) fn answer(name: &str, folder: &Path, output: &Output) -> Result<(), Failure> {
    let made = request_certificate(name, folder).map_err(|error| match error {
        RequestError::File(_) | RequestError::Rcgen(_) => Failure::work(error),
        other => Failure::request(other),
    })?;
    let Requested { key, request, key_hash, new_key, replaced } = made;
    let view = View { name, key, request, key_hash, new_key };
    output.answer(&view, || {
        let made = if view.new_key { "Made the key" } else { "Kept the key" };
        let replaced = replaced.map(|other| {
            format!("The request replaces the one for {other}: if the operator has that one, say that it is void.\n")
        });
        format!(
            "{made} {}, which stays here. Send {} to the operator, and put the cert.pem and ca.pem that come back into {}.\n\
             The public key is {}: the operator sees the same number.\n{}",
            view.key.display(),
            view.request.display(),
            folder.display(),
            view.key_hash,
            replaced.unwrap_or_default(),
        )
    })
}
