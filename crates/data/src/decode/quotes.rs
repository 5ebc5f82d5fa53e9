//! Quotes that swallow rows: one that is never closed, and one that the quote of another row closes.
//!
//! A field that begins with a quote reaches to the next one, over as many rows as there are in between. So a single stray
//! quote would make the rest of a file one field of one row.

/// What is wrong with the quotes of a row; places are counted from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StrayQuote {
    /// The file ends before the quote at this place is closed.
    Unclosed(usize),
    /// The field that begins with the quote at `opened` has several lines, and goes on after the quote that closes it.
    Reopened {
        /// The first quote.
        opened: usize,
        /// The second one.
        closed: usize,
    },
}

/// Where a byte is, as the csv crate sees it.
enum Place {
    Start,
    Unquoted,
    Quoted(usize),
    /// After a quote inside of quotes: the end of the field, or the first of two that stand for one.
    Closing(usize),
}

/// The first stray quote of a row's text.
pub(super) fn stray_quote(row: &[u8], separator: u8) -> Option<StrayQuote> {
    let mut place = Place::Start;
    for (at, &byte) in row.iter().enumerate() {
        place = match (place, byte) {
            (Place::Start, b'"') => Place::Quoted(at),
            (Place::Start | Place::Unquoted | Place::Closing(_), byte) if byte == separator => Place::Start,
            // Blank lines before the row, or its end.
            (Place::Start | Place::Closing(_), b'\r' | b'\n') => Place::Start,
            (Place::Start | Place::Unquoted, _) => Place::Unquoted,
            (Place::Quoted(opened), b'"') => Place::Closing(opened),
            (Place::Quoted(opened), _) | (Place::Closing(opened), b'"') => Place::Quoted(opened),
            (Place::Closing(opened), _) if row[opened..at].contains(&b'\n') => {
                return Some(StrayQuote::Reopened { opened, closed: at - 1 });
            }
            (Place::Closing(_), _) => Place::Unquoted,
        };
    }
    if let Place::Quoted(opened) = place { Some(StrayQuote::Unclosed(opened)) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_is_stray_if_it_is_never_closed_or_if_that_of_another_row_closes_it() {
        let found = |row: &str| stray_quote(row.as_bytes(), b',');
        for fine in
            ["", "1,2\n", "\r\n1,\"a, b\"\n", "\"a \"\"b\"\"\",\"\"", "5' 11\",2", "\"a\nb\",c\n", "\"a\"b,c"]
        {
            assert_eq!(found(fine), None, "{fine:?}");
        }
        assert_eq!(found("1,\"see letter\n2,b\n"), Some(StrayQuote::Unclosed(2)));
        assert_eq!(found("1,\"see \"\"letter\n"), Some(StrayQuote::Unclosed(2)));
        assert_eq!(found("1,\"see letter\n2,\"b\n"), Some(StrayQuote::Reopened { opened: 2, closed: 16 }));
    }
}
