//! The known name that comes closest to a mistyped one.

/// The closest of the known names by edit distance (swapped neighbours count once); `None` without names.
pub fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    known.into_iter().min_by_key(|name| edits(typed, name)).map(str::to_owned)
}

fn edits(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            table[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let replaced = table[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let least = replaced.min(table[i - 1][j] + 1).min(table[i][j - 1] + 1);
                let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                if swapped { least.min(table[i - 2][j - 2] + 1) } else { least }
            };
        }
    }
    table[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_mistakes_find_the_intended_name() {
        let names = ["fedavg", "fedtvd", "uniform", "balanced"];
        assert_eq!(nearest("fedtdv", names).as_deref(), Some("fedtvd"));
        assert_eq!(nearest("unifrom", names).as_deref(), Some("uniform"));
        assert_eq!(nearest("balance", names).as_deref(), Some("balanced"));
        assert_eq!(nearest("x", []), None);
    }
}
