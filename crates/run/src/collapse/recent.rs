//! The values of the last rounds.

use fedtvd_core::median::median;
use std::collections::VecDeque;

/// The last values of a quantity, at most `ROUNDS` of them.
#[derive(Clone, Debug)]
pub(super) struct Recent<T, const ROUNDS: usize>(VecDeque<T>);

impl<T, const ROUNDS: usize> Default for Recent<T, ROUNDS> {
    fn default() -> Self {
        Self(VecDeque::with_capacity(ROUNDS))
    }
}

impl<T, const ROUNDS: usize> Recent<T, ROUNDS> {
    /// Adds the value of another round.
    pub(super) fn push(&mut self, value: T) {
        if self.0.len() == ROUNDS {
            self.0.pop_front();
        }
        self.0.push_back(value);
    }

    /// The values, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter()
    }

    /// Their number.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

impl<const ROUNDS: usize> Recent<f64, ROUNDS> {
    /// The median, if there are enough values to say what is usual.
    pub(super) fn usual(&self) -> Option<f64> {
        const ENOUGH: usize = 5;
        (self.len() >= ENOUGH).then(|| median(self.0.iter().copied().collect())).flatten()
    }
}

/// A ratio for people: `12.3 times`.
pub(super) fn times(ratio: f64) -> String {
    match ratio {
        ..1000.0 => format!("{ratio:.1} times"),
        _ => format!("{ratio:.1e} times"),
    }
}

/// A magnitude for people: with an exponent only if it is very large or small.
pub fn magnitude(value: f64) -> String {
    match value {
        0.001..1000.0 => format!("{value:.3}"),
        _ => format!("{value:.1e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_values_are_kept_and_few_do_not_say_what_is_usual() {
        let mut recent: Recent<f64, 6> = Recent::default();
        (1..=4).for_each(|value| recent.push(f64::from(value)));
        assert_eq!(recent.usual(), None);
        (5..=8).for_each(|value| recent.push(f64::from(value)));
        assert_eq!(recent.iter().copied().collect::<Vec<_>>(), [3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        assert_eq!(recent.usual(), Some(5.5));
    }

    #[test]
    fn numbers_are_short_whatever_their_magnitude() {
        assert_eq!([times(12.34), times(4.3e37)], ["12.3 times", "4.3e37 times"]);
        assert_eq!([magnitude(44.7), magnitude(3.4e38), magnitude(2e-9)], ["44.700", "3.4e38", "2.0e-9"]);
    }
}
