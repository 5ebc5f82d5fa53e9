//! A Markdown table that is also aligned as plain text.

/// The table; the first `words` columns are aligned left, the others right.
pub(crate) fn text_table(words: usize, heads: &[String], lines: &[Vec<String>]) -> String {
    let wide = |column: usize| {
        let cells = lines.iter().map(|line| line[column].chars().count());
        cells.chain([heads[column].chars().count(), 3]).max().unwrap_or(3)
    };
    let widths: Vec<usize> = (0..heads.len()).map(wide).collect();
    let print = |line: &[String]| {
        let cells = line.iter().zip(&widths).enumerate().map(|(place, (cell, &wide))| match place < words {
            true => format!("{cell:wide$}"),
            false => format!("{cell:>wide$}"),
        });
        format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
    };
    let rule = widths.iter().enumerate().map(|(place, wide)| match place < words {
        true => "-".repeat(*wide),
        false => "-".repeat(wide - 1) + ":",
    });
    let rule = format!("| {} |\n", rule.collect::<Vec<_>>().join(" | "));
    print(heads) + &rule + &lines.iter().map(|line| print(line)).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_aligned_left_and_numbers_right() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let table = text_table(2, &row(["who", "where", "%"]), &[row(["fedtvd", "α", "7"])]);
        let expected = "| who    | where |   % |\n| ------ | ----- | --: |\n| fedtvd | α     |   7 |\n";
        assert_eq!(table, expected);
    }
}
