//! Words as part of a file's name.

/// Letters, digits and points as they are, everything else as single hyphens between them.
pub fn slug(words: &str) -> String {
    // A sign is no letter, but tells two values apart.
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
