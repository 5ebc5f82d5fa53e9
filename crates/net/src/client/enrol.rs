//! Enrols a site. One that lies about evaluations claims a hold-out as large as the server lets it claim.

use crate::client::join::JoinError;
use crate::client::outgoing::reference_key;
use crate::client::sent_log::SentLog;
use crate::client::site::Site;
use crate::client::{Connection, ConnectionError, SiteError};
use crate::wire;
use fedtvd_core::labels::Ask;

/// The largest hold-out that any server accepts.
const LARGEST: u64 = 1 << 40;
/// The refusal of a hold-out that is larger than the certificate allows.
const ABOVE_LISTED: &str = "holdout-above-listed";

/// Answers a survey.
pub(crate) async fn enrol(
    connection: &mut Connection,
    site: &mut Site,
    run: &str,
    survey: &wire::Survey,
    sent: &SentLog,
) -> Result<(), JoinError> {
    let ask = serde_json::from_str(&survey.ask)
        .map_err(|error| SiteError::Unreadable { what: "a survey", why: error.to_string() })?;
    sent.check_survey(ask, &reference_key(ask == Ask::Released, &survey.reference))?;
    let reference = &survey.reference;
    if site.evaluates_honestly() {
        connection.enrol_for(site.enrolment(run, survey)?, reference).await?;
        return Ok(());
    }
    let honest = site.holdout;
    site.holdout = LARGEST;
    loop {
        match connection.enrol_for(site.enrolment(run, survey)?, reference).await {
            // A site does not know its limit, and the first claim that is accepted is final.
            Err(ConnectionError::Refused { code, .. }) if code == ABOVE_LISTED && site.holdout > honest => {
                site.holdout = honest.max(site.holdout / 2);
            }
            answer => return Ok(answer?),
        }
    }
}
