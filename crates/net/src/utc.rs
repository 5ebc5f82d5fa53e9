//! Moments as text that sorts, in UTC.

use time::OffsetDateTime;

/// A moment to the second: 2030-01-31T12:00:00Z.
pub(crate) fn seconds(moment: OffsetDateTime) -> String {
    format!("{}Z", clock(moment))
}

/// A moment to the millisecond: 2030-01-31T12:00:00.000Z.
pub(crate) fn milliseconds(moment: OffsetDateTime) -> String {
    format!("{}.{:03}Z", clock(moment), moment.millisecond())
}

fn clock(moment: OffsetDateTime) -> String {
    let (date, (hour, minute, second)) = (moment.date(), moment.to_hms());
    format!("{date}T{hour:02}:{minute:02}:{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_has_all_of_its_digits() {
        let moment = OffsetDateTime::from_unix_timestamp_nanos(1_000_007_009_004_000_000).unwrap();
        assert_eq!(seconds(moment), "2001-09-09T03:43:29Z");
        assert_eq!(milliseconds(moment), "2001-09-09T03:43:29.004Z");
    }
}
