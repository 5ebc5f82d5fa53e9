//! Text as part of a file name.

/// Keeps letters, digits and dots; every other sequence of characters becomes one hyphen.
pub fn slug(words: &str) -> String {
    // Without its sign, -0.8 would have the file name of 0.8.
    let words = words.replace("= -", "= minus ");
    let letter = |letter: char| if letter.is_ascii_alphanumeric() || letter == '.' { letter } else { '-' };
    let words: String = words.chars().map(letter).collect();
    words.split('-').filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_becomes_a_plain_name() {
        assert_eq!(slug("split.alpha = 0.1, data.set = /a/b c"), "split.alpha-0.1-data.set-a-b-c");
        assert_eq!(slug("split.correlation = -0.8"), "split.correlation-minus-0.8");
    }
}
