//! Enrols a site. One that lies about evaluations also finds the largest hold-out that the server lets it claim.

use crate::client::join::JoinError;
use crate::client::site::Site;
use crate::client::{Connection, ConnectionError};
use crate::wire;

/// A hold-out that no server accepts.
const TOO_LARGE: u64 = 1 << 48;
/// The refusal of a hold-out that is larger than the certificate allows.
const ABOVE_LISTED: &str = "holdout-above-listed";

/// Answers a survey.
pub(crate) async fn enrol(
    connection: &mut Connection,
    site: &mut Site,
    run: &str,
    survey: &wire::Survey,
) -> Result<(), JoinError> {
    connection.enrol(site.enrolment(run, survey)?).await?;
    if site.evaluates_honestly() {
        return Ok(());
    }
    // A site does not know its limit; the server replaces the claim at each accepted enrolment.
    let (mut accepted, mut refused) = (site.holdout, TOO_LARGE);
    while refused - accepted > 1 {
        site.holdout = accepted.midpoint(refused);
        match connection.enrol(site.enrolment(run, survey)?).await {
            Ok(()) => accepted = site.holdout,
            Err(ConnectionError::Refused { code, .. }) if code == ABOVE_LISTED => refused = site.holdout,
            Err(error) => return Err(error.into()),
        }
    }
    site.holdout = accepted;
    Ok(())
}
