//! Over-selection (`cohort.extra`): whether there are clients to ask beyond the cohort.

use fedtvd_core::round::cohort_size;
use thiserror::Error;

/// A number of extra clients that a federation does not have.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum ExtraError {
    /// The cohort is everybody.
    #[error(
        "cohort.extra = {0} asks clients beyond the cohort, and cohort.fraction = 1 selects all of them; set cohort.fraction \
         below 1, or leave cohort.extra out"
    )]
    Everybody(usize),
    /// The roster is too short.
    #[error(
        "cohort.extra = {extra} is more than the number of clients beyond the cohort: cohort.fraction = {fraction} selects \
         {cohort} of {clients} clients; set cohort.extra to {} or less", .clients - .cohort
    )]
    Few {
        /// The extra clients.
        extra: usize,
        /// The fraction that is selected.
        fraction: f64,
        /// Clients per round.
        cohort: usize,
        /// Clients of the roster.
        clients: usize,
    },
}

/// Checks the number of extra clients; `clients` is the length of the roster, if there is one.
pub(crate) fn check(extra: usize, fraction: f64, clients: Option<usize>) -> Result<(), ExtraError> {
    if extra == 0 {
        return Ok(());
    }
    if fraction >= 1.0 {
        return Err(ExtraError::Everybody(extra));
    }
    let Some(clients) = clients else { return Ok(()) };
    let cohort = cohort_size(fraction, clients);
    if cohort.saturating_add(extra) > clients {
        return Err(ExtraError::Few { extra, fraction, cohort, clients });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clients_beyond_the_cohort_can_be_extra() {
        let said =
            |extra, fraction, clients| check(extra, fraction, clients).map_err(|error| error.to_string());
        assert_eq!(said(0, 1.0, Some(4)), Ok(()));
        assert_eq!(said(3, 0.7, Some(10)), Ok(()));
        // Without a roster nobody knows how many clients will come.
        assert_eq!(said(300, 0.7, None), Ok(()));
        let everybody = said(2, 1.0, None).unwrap_err();
        assert!(everybody.ends_with("set cohort.fraction below 1, or leave cohort.extra out"), "{everybody}");
        let few = said(4, 0.7, Some(10)).unwrap_err();
        assert!(few.contains("selects 7 of 10 clients; set cohort.extra to 3 or less"), "{few}");
    }
}
