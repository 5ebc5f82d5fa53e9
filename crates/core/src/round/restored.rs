//! Whether a state that was read from a file fits its run: a file may be damaged, or edited by hand.

use crate::memory::{Array, Memory};
use crate::round::enrolment::{self, Refusal};
use crate::round::finite::{self, NotFinite};
use crate::round::{ClientId, Run, State};
use thiserror::Error;

/// Why a state does not fit its run.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Misfit {
    /// A client of the roster that could not have been enrolled.
    #[error("its roster is wrong: {0}")]
    Profile(#[from] Refusal),
    /// Clients that are not in the order of their ids, or twice in the roster.
    #[error("client {0} is not in its place in the roster")]
    Order(ClientId),
    /// A vector of the wrong length.
    #[error("{owner} \"{name}\" has {got} numbers; {want} are right")]
    Length {
        /// Whose vector.
        owner: &'static str,
        /// Its name.
        name: String,
        /// Its length.
        got: usize,
        /// The right one.
        want: usize,
    },
    /// No initial values for the tensors that stay at clients.
    #[error("the initial values of the clients' {0} are missing")]
    NoOwnPart(&'static str),
    /// A value that no round could have left.
    #[error("a value is not finite: {0}")]
    NotFinite(#[from] NotFinite),
}

/// Checks the roster, the carried vectors and the memories of combination and server, whose vectors are as long as the
/// trainable tensors.
pub fn check(run: &Run, state: &State) -> Result<(), Misfit> {
    for profile in &state.roster {
        enrolment::check(run, &state.reference, profile)?;
    }
    if let Some(pair) = state.roster.windows(2).find(|pair| pair[0].client >= pair[1].client) {
        return Err(Misfit::Order(pair[1].client));
    }
    let layout = &state.params.layout;
    for carried in run.strategy.needs().carries {
        let got = state.carried.f32(carried.name).map_or(0, <[f32]>::len);
        length("the carried vector", carried.name, got, carried.extent.len(layout))?;
    }
    if let Some(stays) = run.strategy.sharing.stays().filter(|_| state.own.is_empty()) {
        return Err(Misfit::NoOwnPart(stays));
    }
    vectors("the combination's vector", &state.combining, layout.trainable())?;
    vectors("the server's vector", &state.server, layout.trainable())?;
    Ok(finite::check(state)?)
}

fn vectors(owner: &'static str, memory: &Memory, want: usize) -> Result<(), Misfit> {
    for (name, array) in memory.arrays() {
        match array {
            Array::F32(_) | Array::F64(_) => length(owner, name, array.len(), want)?,
            Array::U64(_) => {}
        }
    }
    Ok(())
}

fn length(owner: &'static str, name: &str, got: usize, want: usize) -> Result<(), Misfit> {
    if got == want { Ok(()) } else { Err(Misfit::Length { owner, name: name.to_owned(), got, want }) }
}
