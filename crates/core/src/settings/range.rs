//! The allowed range of a number.

use std::fmt;

/// From low to high, both included; `open` excludes the low end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The low end.
    pub low: f64,
    /// The high end; infinity, which is never included, means no limit.
    pub high: f64,
    /// Whether the low end is excluded.
    pub open: bool,
}

impl Range {
    /// From 0 to 1.
    pub const UNIT: Self = Self::closed(0.0, 1.0);
    /// Any non-negative number.
    pub const NOT_NEGATIVE: Self = Self::closed(0.0, f64::INFINITY);
    /// From 0 to anything below 1.
    pub const BELOW_ONE: Self = Self::closed(0.0, 1f64.next_down());
    /// From 0 to anything below 0.5.
    pub const BELOW_HALF: Self = Self::closed(0.0, 0.5f64.next_down());
    /// Any number above 0.
    pub const POSITIVE: Self = Self::above(0.0, f64::INFINITY);

    /// From `low` to `high`, both included.
    pub const fn closed(low: f64, high: f64) -> Self {
        Self { low, high, open: false }
    }

    /// Above `low`, and up to `high`.
    pub const fn above(low: f64, high: f64) -> Self {
        Self { low, high, open: true }
    }

    /// Whether it contains a value.
    pub fn contains(&self, value: f64) -> bool {
        value.is_finite() && value <= self.high && (value > self.low || !self.open && value == self.low)
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.open, self.high == f64::INFINITY) {
            (true, true) => write!(f, "above {}", self.low),
            (false, true) => write!(f, "{} or more", self.low),
            (true, false) => write!(f, "above {} and up to {}", self.low, self.high),
            (false, false) if *self == Self::BELOW_ONE => f.write_str("0 to below 1"),
            (false, false) if *self == Self::BELOW_HALF => f.write_str("0 to below 0.5"),
            (false, false) => write!(f, "{} to {}", self.low, self.high),
        }
    }
}
