//! Tables for papers: LaTeX with booktabs, best accuracy in bold, second best underlined.

use crate::report::cells::Rank;
use crate::report::findings::{Report, SettingReport};
use crate::report::markdown::column;
use crate::report::troubles::MARK;
use std::fmt::Write as _;

/// `table.tex`: strategies by settings; the whole table if there is one setting.
pub(super) fn table(report: &Report) -> String {
    match report.parts.as_slice() {
        [only] => setting(only),
        parts => {
            let heads: Vec<String> = parts.iter().map(|part| part.setting.title.clone()).collect();
            let columns: Vec<Vec<(String, Option<Rank>)>> =
                parts.iter().map(|part| column(part, &report.labels)).collect();
            let titled = |part: &SettingReport| {
                let title = part.setting.title.clone();
                let notes = part.collapsed.iter().chain(&part.missed);
                notes.map(move |note| format!("{note}, {title}")).collect::<Vec<_>>()
            };
            tabular(&heads, &report.labels, &columns)
                + &footnotes(&parts.iter().flat_map(titled).collect::<Vec<_>>())
        }
    }
}

/// The table of one setting.
pub(super) fn setting(part: &SettingReport) -> String {
    let heads: Vec<String> = part.table.main_columns().map(|column| column.head.clone()).collect();
    let cells = part
        .table
        .main_columns()
        .map(|column| column.cells.iter().map(|cell| (cell.text.clone(), cell.rank)).collect::<Vec<_>>());
    tabular(&heads, &part.table.labels, &cells.collect::<Vec<_>>())
        + &footnotes(&[part.collapsed.clone(), part.missed.clone()].concat())
}

fn tabular(heads: &[String], labels: &[String], columns: &[Vec<(String, Option<Rank>)>]) -> String {
    let mut text = format!(
        "% needs \\usepackage{{booktabs}}\n\\begin{{tabular}}{{l{}}}\n\\toprule\n",
        "r".repeat(heads.len())
    );
    let heads: Vec<String> = heads.iter().map(|head| escaped(head)).collect();
    let _ = writeln!(text, "strategy & {} \\\\\n\\midrule", heads.join(" & "));
    for (place, label) in labels.iter().enumerate() {
        let cells: Vec<String> = columns.iter().map(|column| cell(&column[place])).collect();
        let _ = writeln!(text, "{} & {} \\\\", escaped(label), cells.join(" & "));
    }
    text + "\\bottomrule\n\\end{tabular}\n"
}

/// Notes in small print below the table.
fn footnotes(notes: &[String]) -> String {
    notes.iter().map(|note| format!("\\par{{\\footnotesize {}\\par}}\n", number(note))).collect()
}

fn cell((text, rank): &(String, Option<Rank>)) -> String {
    let text = number(text);
    match rank {
        Some(Rank::Best) => format!("\\textbf{{{text}}}"),
        Some(Rank::Second) => format!("\\underline{{{text}}}"),
        None => text,
    }
}

/// Numbers with their signs in math mode.
fn number(text: &str) -> String {
    let mut out = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '—' => out.push_str("--"),
            '±' => out.push_str("$\\pm$"),
            MARK => out.push_str("$^\\dagger$"),
            '‡' => out.push_str("$^\\ddagger$"),
            '+' | '-' if letters.peek().is_some_and(char::is_ascii_digit) => out += &format!("${letter}$"),
            '<' => out.push_str("$<$"),
            _ => out += &escaped(&letter.to_string()),
        }
    }
    out
}

/// Text with LaTeX's special characters escaped.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => {
                out.push('\\');
                out.push(letter);
            }
            '~' => out.push_str("\\textasciitilde{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            '\\' => out.push_str("\\textbackslash{}"),
            _ => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_in_math_mode_and_special_characters_are_escaped() {
        assert_eq!(number("+1.20 [-0.50, +2.90]"), "$+$1.20 [$-$0.50, $+$2.90]");
        assert_eq!(number("56.67 ± 3.55"), "56.67 $\\pm$ 3.55");
        assert_eq!((number("—"), number("< 0.001")), ("--".to_owned(), "$<$ 0.001".to_owned()));
        assert_eq!(escaped("a_b & 5 %"), "a\\_b \\& 5 \\%");
    }

    #[test]
    fn the_best_is_bold_and_the_second_underlined() {
        let column = vec![
            ("1".to_owned(), Some(Rank::Best)),
            ("2".to_owned(), Some(Rank::Second)),
            ("3".to_owned(), None),
        ];
        let text =
            tabular(&["accuracy".to_owned()], &["a".to_owned(), "b".to_owned(), "c".to_owned()], &[column]);
        let expected = "\\begin{tabular}{lr}\n\\toprule\nstrategy & accuracy \\\\\n\\midrule\na & \\textbf{1} \\\\\n\
                        b & \\underline{2} \\\\\nc & 3 \\\\\n\\bottomrule\n\\end{tabular}\n";
        assert!(text.ends_with(expected), "{text}");
    }
}
