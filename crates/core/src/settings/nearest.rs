//! Suggests the known name closest to a mistyped one.

/// The known name with the smallest edit distance (a swap of neighbours is one edit); `None` without names.
pub fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known.into_iter().min_by_key(|name| strsim::osa_distance(typed, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_mistakes_find_the_intended_name() {
        let names = ["fedavg", "fedtvd", "uniform", "balanced"];
        assert_eq!(nearest("fedtdv", names), Some("fedtvd"));
        assert_eq!(nearest("unifrom", names), Some("uniform"));
        assert_eq!(nearest("balance", names), Some("balanced"));
        assert_eq!(nearest("x", []), None);
    }
}
