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
    /// Models that no rounds of the strategy could have left.
    #[error("its {got} models cannot have come from the {began} with which the strategy begins")]
    Branches {
        /// Number of models.
        got: u32,
        /// Number of models at the beginning.
        began: u32,
    },
    /// A client in a branch that does not exist.
    #[error("client {client} is in branch {branch}, and there are {count} branches")]
    Member {
        /// The client.
        client: ClientId,
        /// Its branch.
        branch: u32,
        /// Number of branches.
        count: u32,
    },
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
    branches(run, state)?;
    for branch in 0..state.branch_count() {
        let state = state.focused(branch);
        vectors("the combination's vector", &state.combining, layout.trainable())?;
        vectors("the server's vector", &state.server, layout.trainable())?;
        finite::check(&state)?;
    }
    Ok(())
}

/// Checks that there are the models of the beginning, that the others came from earlier ones by partings, and that the branches
/// of all clients exist.
fn branches(run: &Run, state: &State) -> Result<(), Misfit> {
    let count = state.branch_count();
    let began = run.strategy.models() as u32;
    let tree = run.strategy.grouping.as_ref().is_some_and(|grouping| !grouping.clients_choose());
    let at_place = |branch: u32| match state.parent(branch) {
        None => branch < began,
        Some(parent) => tree && branch >= began && parent < branch,
    };
    if count < began || !(1..count).all(at_place) {
        return Err(Misfit::Branches { got: count, began });
    }
    let siblings = |parent| (1..count).filter(|branch| state.parent(*branch) == Some(parent)).count();
    if !(0..count).all(|parent| matches!(siblings(parent), 0 | 2)) {
        return Err(Misfit::Branches { got: count, began });
    }
    match state.members.iter().find(|(_, branch)| **branch >= count) {
        Some((&client, &branch)) => Err(Misfit::Member { client, branch, count }),
        None => Ok(()),
    }
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
