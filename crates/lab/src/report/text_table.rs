//! A Markdown table that is also aligned as plain text.

/// Widest cell that others are padded to; wider ones stay as they are. Formats allow no width above 65,535.
pub(crate) const WIDEST: usize = 1000;

/// The table; the first `words` columns are aligned left, the others right.
pub(crate) fn text_table(words: usize, heads: &[String], lines: &[Vec<String>]) -> String {
    let wide = |column: usize| {
        let cells = lines.iter().map(|line| line[column].chars().count());
        cells.chain([heads[column].chars().count(), 3]).max().unwrap_or(3).min(WIDEST)
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

    #[test]
    fn a_cell_of_any_length_is_printed() {
        let row = |cell: String| vec![cell, "7".to_owned()];
        let long = "x".repeat(100_000);
        let heads = row("who".to_owned());
        let table = text_table(1, &heads, &[row(long.clone()), row("y".to_owned())]);
        let lengths: Vec<usize> = table.lines().map(|line| line.chars().count()).collect();
        assert!(table.contains(&long) && lengths[3] == WIDEST + 10, "{lengths:?}");
    }
}
