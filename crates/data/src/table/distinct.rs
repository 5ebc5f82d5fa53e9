//! The different values of a column of text: class names, owners.

use super::schema::Decimal;
use super::values::{exact, number};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The values of a column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Distinct {
    /// Each value's name: numbers in their order, then texts in theirs.
    pub(crate) names: Vec<String>,
    /// For each row the index of its value.
    pub(crate) of: Vec<usize>,
    /// Numbers that were written in several ways, such as 1 and 1.0, each with its spellings.
    pub(crate) merged: Vec<Vec<String>>,
}

impl Distinct {
    /// The values of these fields; equal numbers are one value, named by the shortest spelling.
    pub(crate) fn of<'a>(fields: impl Iterator<Item = &'a str> + Clone, decimal: Decimal) -> Self {
        let mut spellings: Vec<&str> = fields.clone().collect();
        spellings.sort_by(|a, b| by_number(a, b, decimal));
        spellings.dedup();
        let mut distinct = Self::default();
        let mut places = BTreeMap::new();
        for same in spellings.chunk_by(|a, b| one_number(a, b, decimal)) {
            places.extend(same.iter().map(|spelling| (*spelling, distinct.names.len())));
            let shortest = same.iter().min_by_key(|spelling| spelling.len()).copied();
            distinct.names.push(shortest.unwrap_or_default().to_owned());
            if same.len() > 1 {
                distinct.merged.push(same.iter().map(|spelling| (*spelling).to_owned()).collect());
            }
        }
        distinct.of = fields.map(|field| places[field]).collect();
        distinct
    }
}

/// 10 comes after 9, and texts come after numbers.
fn by_number(a: &str, b: &str, decimal: Decimal) -> Ordering {
    match (number(a, decimal), number(b, decimal)) {
        // 0 is -0.
        (Some(x), Some(y)) => (x + 0.0).total_cmp(&(y + 0.0)).then(a.cmp(b)),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

fn one_number(a: &str, b: &str, decimal: Decimal) -> bool {
    exact(a, decimal).is_some_and(|x| exact(b, decimal) == Some(x))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_numbers_are_one_value_and_long_identifiers_are_not() {
        let distinct = Distinct::of(["1.0", "b", "10", "1", "9", "01", "a", "1"].into_iter(), Decimal::Point);
        assert_eq!(distinct.names, ["1", "9", "10", "a", "b"]);
        assert_eq!(distinct.of, [0, 4, 2, 0, 1, 0, 3, 0]);
        assert_eq!(distinct.merged, [["01", "1", "1.0"]]);
        // Both are 1e20 as a float.
        let long =
            Distinct::of(["100000000000000000000", "100000000000000000001"].into_iter(), Decimal::Point);
        assert_eq!((long.names.len(), long.merged.len()), (2, 0));
    }
}
