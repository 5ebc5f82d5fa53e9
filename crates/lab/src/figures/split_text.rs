//! A split as text for a terminal: a line per client, a symbol per class.

use super::split::spread;
use fedtvd_data::statistics::{ClientStatistics, Statistics};
use std::fmt::Write as _;

const MARKS: [char; 5] = [' ', '·', '•', '●', '█'];
/// Rows and columns that fit on a screen.
const MOST_CLIENTS: usize = 40;
const MOST_COLUMNS: usize = 50;
const BAR: usize = 16;

/// Size, TVD and class shares of each client.
pub fn split_text(statistics: &Statistics) -> String {
    let mut by_size = statistics.clients.clone();
    by_size.sort_by_key(|client| std::cmp::Reverse(client.size));
    let shown = spread(&by_size, MOST_CLIENTS);
    let classes = shown.first().map_or(0, |client| client.counts.len());
    let per_column = classes.div_ceil(MOST_COLUMNS).max(1);
    let most = by_size.first().map_or(1, |client| client.size).max(1);
    let mut text = String::new();
    let _ = writeln!(text, "client    size    TVD  {:BAR$}  classes 0 to {}", "", classes.saturating_sub(1));
    for client in &shown {
        let filled = (client.size * BAR).div_ceil(most);
        let _ = writeln!(
            text,
            "{:>6}  {:>6}  {:.3}  {}{}  {}",
            client.client,
            client.size,
            client.tvd,
            "▇".repeat(filled),
            " ".repeat(BAR - filled),
            marks(client, per_column)
        );
    }
    if shown.len() < by_size.len() {
        let _ = writeln!(text, "{} of {} clients, from largest to smallest", shown.len(), by_size.len());
    }
    let column = if per_column > 1 { format!(" ({per_column} classes per column)") } else { String::new() };
    let _ = writeln!(text, "share of the client's rows: · to 5 %  • to 20 %  ● to 50 %  █ above{column}");
    text += "TVD: total variation distance of the client's labels to the reference, 0 to 1\n";
    text
}

fn marks(client: &ClientStatistics, per_column: usize) -> String {
    let mark = |counts: &[u64]| {
        let share = counts.iter().sum::<u64>() as f64 / client.size.max(1) as f64;
        let level = [0.0, 0.05, 0.2, 0.5].iter().filter(|bound| share > **bound).count();
        let gap = if per_column == 1 { " " } else { "" };
        format!("{}{gap}", MARKS[level])
    };
    client.counts.chunks(per_column).map(mark).collect::<String>().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedtvd_core::labels::Reference;
    use fedtvd_data::split::Partition;

    #[test]
    fn larger_clients_come_first_and_marks_grow_with_the_share() {
        let labels = [0, 0, 0, 1, 2, 0, 0, 0, 0, 0];
        let partition = Partition { clients: vec![vec![0, 1], vec![2, 3, 4, 5, 6, 7, 8, 9]] };
        let text = split_text(&Statistics::of(&partition, &labels, &Reference::uniform(3)));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], format!("     1       8  0.417  {}  █ • •", "▇".repeat(16)));
        assert_eq!(lines[2], format!("     0       2  0.667  {}{}  █", "▇".repeat(4), " ".repeat(12)));
    }
}
