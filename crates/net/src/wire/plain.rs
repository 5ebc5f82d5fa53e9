//! Text of a peer, made safe for a log or a terminal: short, and without characters that a terminal obeys.

/// Maximum number of characters.
const LONGEST: usize = 300;

/// A sentence that may quote a peer, in one line: control characters, and those that end a line or reverse the direction of
/// text, are escaped.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::new();
    for (place, c) in text.chars().enumerate() {
        if place == LONGEST {
            plain.push('…');
            break;
        }
        let turns = matches!(
            c,
            '\u{061c}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        );
        if c.is_control() || turns { plain.extend(c.escape_default()) } else { plain.push(c) }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_a_peer_is_truncated_and_cannot_forge_a_line_or_move_the_cursor() {
        assert_eq!(plain("good\nrefused [late]\u{1b}[2J"), "good\\nrefused [late]\\u{1b}[2J");
        assert_eq!(plain("a\u{202e}b\u{9b}"), "a\\u{202e}b\\u{9b}");
        assert_eq!(plain("a\u{2028}b\u{2029}c\u{61c}"), "a\\u{2028}b\\u{2029}c\\u{61c}");
        assert_eq!(plain(&"x".repeat(100_000)).chars().count(), LONGEST + 1);
        assert_eq!(plain("Zürich …"), "Zürich …");
    }
}
