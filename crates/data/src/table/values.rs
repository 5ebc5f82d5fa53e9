//! What the text of a field is: a number, a category, or a missing value.

use super::schema::{Category, Decimal};
use std::collections::{BTreeMap, BTreeSet};

/// Up to here a float represents every whole number exactly; beyond, equal floats may be different identifiers.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The finite number that a text is.
pub(crate) fn number(text: &str, decimal: Decimal) -> Option<f64> {
    let parsed = match decimal {
        Decimal::Comma if text.contains('.') => None,
        Decimal::Comma if text.contains(',') => text.replacen(',', ".", 1).parse().ok(),
        _ => text.parse().ok(),
    };
    parsed.filter(|number: &f64| number.is_finite())
}

/// A number as a key: 0 is -0.
fn key(number: f64) -> u64 {
    (number + 0.0).to_bits()
}

/// Texts that stand for a missing value.
#[derive(Clone, Debug)]
pub(crate) struct Missing {
    texts: BTreeSet<String>,
    /// `nan` and `null`, if they are among the texts, in whatever case.
    words: Vec<&'static str>,
    /// Those that are numbers: 0 is 0.0.
    numbers: BTreeSet<u64>,
}

impl Missing {
    pub(crate) fn new<'a>(texts: impl Iterator<Item = &'a String>, decimal: Decimal) -> Self {
        let texts: BTreeSet<String> = texts.map(|text| text.trim().to_owned()).collect();
        let among = |word: &&str| texts.iter().any(|text| text.eq_ignore_ascii_case(word));
        let words = ["nan", "null"].into_iter().filter(among).collect();
        let numbers = texts.iter().filter_map(|text| number(text, decimal)).map(key).collect();
        Self { words, numbers, texts }
    }

    /// Whether a text that is not a number stands for a missing value; `nan` and `NULL` are NaN and null.
    pub(crate) fn text(&self, text: &str) -> bool {
        self.texts.contains(text) || self.words.iter().any(|word| text.eq_ignore_ascii_case(word))
    }

    /// Whether a number stands for a missing value.
    pub(crate) fn number(&self, number: f64) -> bool {
        !self.numbers.is_empty() && self.numbers.contains(&key(number))
    }

    /// Whether a text stands for a missing value.
    pub(crate) fn any(&self, text: &str, decimal: Decimal) -> bool {
        let known = || number(text, decimal).is_some_and(|number| self.number(number));
        self.text(text) || !self.numbers.is_empty() && known()
    }
}

/// Finds the category of a text: by its spelling, or as an equal number.
#[derive(Clone, Debug)]
pub(crate) struct Lookup {
    texts: BTreeMap<String, u32>,
    numbers: BTreeMap<u64, u32>,
    decimal: Decimal,
}

impl Lookup {
    pub(crate) fn new(categories: &[Category], decimal: Decimal) -> Self {
        let mut lookup = Self { texts: BTreeMap::new(), numbers: BTreeMap::new(), decimal };
        for (place, category) in categories.iter().enumerate() {
            for value in &category.values {
                let value = value.trim();
                lookup.texts.entry(value.to_owned()).or_insert(place as u32);
                if let Some(number) = exact(value, decimal) {
                    lookup.numbers.entry(key(number)).or_insert(place as u32);
                }
            }
        }
        lookup
    }

    pub(crate) fn place(&self, text: &str) -> Option<u32> {
        self.texts.get(text).copied().or_else(|| {
            let number = exact(text, self.decimal)?;
            self.numbers.get(&key(number)).copied()
        })
    }
}

/// A number that no other whole number has the same float as.
pub(crate) fn exact(text: &str, decimal: Decimal) -> Option<f64> {
    number(text, decimal).filter(|number| number.abs() <= EXACT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decimal_comma_is_one_only_if_the_schema_says_so() {
        assert_eq!((number("1,5", Decimal::Comma), number("1,5", Decimal::Point)), (Some(1.5), None));
        assert_eq!((number("1.5", Decimal::Comma), number("1.5", Decimal::Point)), (None, Some(1.5)));
        assert_eq!((number("1,5,2", Decimal::Comma), number("1.234,5", Decimal::Comma)), (None, None));
        assert_eq!((number("15", Decimal::Comma), number("inf", Decimal::Point)), (Some(15.0), None));
    }

    #[test]
    fn a_category_is_found_by_its_spelling_before_an_equal_number() {
        let category = |name: &str| Category { name: name.to_owned(), values: vec![name.to_owned()] };
        let lookup = Lookup::new(&[category("1"), category("1.0"), category("x")], Decimal::Point);
        assert_eq!(
            ["1", "1.0", "1.00", "x", "2", "X"].map(|text| lookup.place(text)),
            [Some(0), Some(1), Some(0), Some(2), None, None]
        );
        // Both are 1e20 as a float.
        let long = Lookup::new(&[category("100000000000000000000")], Decimal::Point);
        assert_eq!(long.place("100000000000000000001"), None);
    }

    #[test]
    fn a_missing_value_is_recognised_as_text_and_as_a_number() {
        let texts = ["", "NaN", "-9"].map(str::to_owned);
        let missing = Missing::new(texts.iter(), Decimal::Point);
        for text in ["", "nan", "NaN", "-9", "-9.0"] {
            assert!(missing.any(text, Decimal::Point), "{text}");
        }
        for text in ["null", "9", "x"] {
            assert!(!missing.any(text, Decimal::Point), "{text}");
        }
        let zero = Missing::new(["0".to_owned()].iter(), Decimal::Point);
        assert!(zero.any("-0.0", Decimal::Point) && zero.number(-0.0) && !zero.number(1.0));
    }
}
