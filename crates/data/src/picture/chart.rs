//! The chart that papers print: a bubble for each client and class, and histograms of sizes and of TVD.

use super::scene::{Anchor, Color, INK, Scene};
use crate::statistics::{ClientStatistics, Statistics};

const BLUE: Color = [52, 108, 176];
const ORANGE: Color = [214, 120, 46];
const GREY: Color = [226, 229, 234];

/// More bubbles than this in a row cannot be told apart.
const MOST_CLIENTS: usize = 120;
const LEFT: f32 = 90.0;
const TOP: f32 = 70.0;
const BARS: usize = 20;

/// The chart of a split.
pub fn chart(title: &str, statistics: &Statistics, class_names: &[String]) -> Scene {
    let shown = spread(&statistics.clients, MOST_CLIENTS);
    let classes = class_names.len();
    let column = (1000.0 / shown.len() as f32).clamp(8.0, 40.0);
    let row = (500.0 / classes as f32).clamp(8.0, 32.0);
    let wide = column * shown.len() as f32;
    let high = row * classes as f32;
    let mut scene =
        Scene { width: (LEFT + wide + 30.0).max(880.0), height: TOP + high + 330.0, items: vec![] };
    scene.text(LEFT, 28.0, 18.0, Anchor::Start, title);
    scene.text(LEFT, 50.0, 12.0, Anchor::Start, caption(statistics, shown.len()));
    bubbles(&mut scene, &shown, class_names, column, row);
    let sizes: Vec<f64> = statistics.clients.iter().map(|client| client.size as f64).collect();
    let tvds: Vec<f64> = statistics.clients.iter().map(|client| client.tvd).collect();
    let below = TOP + high + 80.0;
    let width = (scene.width - LEFT - 30.0 - 60.0) / 2.0;
    histogram(&mut scene, LEFT, below, width, "clients by size", &sizes, BLUE, 0);
    histogram(&mut scene, LEFT + width + 60.0, below, width, "clients by TVD", &tvds, ORANGE, 2);
    scene
}

fn caption(statistics: &Statistics, shown: usize) -> String {
    let all = statistics.clients.len();
    let some = if shown < all { format!(" ({shown} shown)") } else { String::new() };
    let shown = |r: Option<f64>| r.map_or("-".to_owned(), |r| format!("{r:+.2}"));
    format!(
        "{all} clients{some} · mean TVD {:.3} · size variation {:.3} · correlation of size and TVD {}, of ranks {} · \
         {:.1} effective classes",
        statistics.mean_tvd,
        statistics.size_cv,
        shown(statistics.size_tvd_correlation),
        shown(statistics.size_tvd_rank_correlation),
        statistics.effective_classes
    )
}

fn bubbles(scene: &mut Scene, shown: &[&ClientStatistics], names: &[String], column: f32, row: f32) {
    let most = shown.iter().flat_map(|client| &client.counts).copied().max().unwrap_or(1).max(1) as f32;
    // Large bubbles may reach over their neighbours; otherwise a hundred clients would be dots.
    let full = (1.8 * column).min(row * 0.95) / 2.0;
    let every = (12.0 / row).ceil() as usize;
    for (class, name) in names.iter().enumerate() {
        let y = TOP + (class as f32 + 0.5) * row;
        scene.rect(LEFT, y - 0.25, column * shown.len() as f32, 0.5, GREY);
        if class % every == 0 {
            scene.text(LEFT - 8.0, y + 4.0, 11.0, Anchor::End, short(name));
        }
    }
    for (place, client) in shown.iter().enumerate() {
        let x = LEFT + (place as f32 + 0.5) * column;
        for (class, count) in client.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let y = TOP + (class as f32 + 0.5) * row;
            // The area stands for the count.
            scene.circle(x, y, full * (*count as f32 / most).sqrt(), BLUE);
        }
        if labelled(place, shown.len()) {
            let bottom = TOP + row * names.len() as f32 + 16.0;
            scene.text(x, bottom, 11.0, Anchor::Middle, client.client.to_string());
        }
    }
    let middle = LEFT + column * shown.len() as f32 / 2.0;
    scene.text(middle, TOP + row * names.len() as f32 + 34.0, 12.0, Anchor::Middle, "client");
    scene.text(LEFT - 8.0, TOP - 8.0, 12.0, Anchor::End, "class");
}

/// A name that fits beside the bubbles.
fn short(name: &str) -> String {
    match name.chars().count() {
        ..=12 => name.to_owned(),
        _ => name.chars().take(11).chain(['.']).collect(),
    }
}

/// Every so many clients have their number written below, and the last one; none so near to it that they touch.
fn labelled(place: usize, shown: usize) -> bool {
    let every = shown.div_ceil(20);
    let last = shown - 1;
    place == last || (place.is_multiple_of(every) && (place + every <= last || every == 1))
}

#[expect(clippy::too_many_arguments, reason = "a place, a size and what is drawn there")]
fn histogram(
    scene: &mut Scene,
    x: f32,
    y: f32,
    width: f32,
    title: &str,
    values: &[f64],
    color: Color,
    digits: usize,
) {
    const HEIGHT: f32 = 170.0;
    let (low, high) =
        values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(*v), high.max(*v)));
    let step = ((high - low) / BARS as f64).max(1e-9);
    let mut counts = [0u32; BARS];
    for value in values {
        counts[(((value - low) / step) as usize).min(BARS - 1)] += 1;
    }
    let most = counts.iter().copied().max().unwrap_or(1).max(1);
    let (bar, ground) = (width / BARS as f32, y + 20.0 + HEIGHT);
    for tick in ticks(most) {
        let at = ground - HEIGHT * tick as f32 / most as f32;
        scene.rect(x, at, width, 0.5, GREY);
        scene.rect(x - 4.0, at, 4.0, 1.0, INK);
        scene.text(x - 7.0, at + 4.0, 11.0, Anchor::End, tick.to_string());
    }
    scene.rect(x, y + 20.0, 1.0, HEIGHT, INK);
    for (place, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let tall = HEIGHT * *count as f32 / most as f32;
        scene.rect(x + place as f32 * bar + 1.0, y + 20.0 + HEIGHT - tall, bar - 2.0, tall, color);
    }
    scene.rect(x, y + 20.0 + HEIGHT, width, 1.0, INK);
    scene.text(x + width / 2.0, y + 6.0, 12.0, Anchor::Middle, title);
    let bottom = y + HEIGHT + 38.0;
    scene.text(x, bottom, 11.0, Anchor::Start, format!("{low:.digits$}"));
    scene.text(x + width, bottom, 11.0, Anchor::End, format!("{high:.digits$}"));
}

/// Round numbers from 0 to at most `most`, five or so.
fn ticks(most: u32) -> Vec<u32> {
    let powers = (0..9).flat_map(|power| [1, 2, 5].map(|digit| digit * 10u32.pow(power)));
    let step = powers.into_iter().find(|step| most / step <= 5).unwrap_or(most);
    (0..=most / step).map(|tick| tick * step).collect()
}

/// At most so many clients, evenly spread over all.
pub(crate) fn spread(clients: &[ClientStatistics], most: usize) -> Vec<&ClientStatistics> {
    let count = clients.len().min(most);
    (0..count).map(|place| &clients[place * clients.len() / count]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::Item;
    use crate::split::Partition;
    use fedtvd_core::statistic::Reference;

    #[test]
    fn a_bubble_stands_for_every_count_and_its_area_for_how_many() {
        let partition = Partition { clients: vec![vec![0, 1, 2, 3], vec![4]] };
        let statistics = Statistics::of(&partition, &[0, 0, 0, 0, 1], &Reference::uniform(2));
        let scene = chart("x", &statistics, &["a".to_owned(), "b".to_owned()]);
        let radii: Vec<f32> = scene
            .items
            .iter()
            .filter_map(|item| match item {
                Item::Circle { radius, .. } => Some(*radius),
                _ => None,
            })
            .collect();
        assert_eq!(radii.len(), 2);
        assert!((radii[0] / radii[1] - 2.0).abs() < 1e-6);
    }

    #[test]
    fn the_last_client_is_labelled_and_labels_keep_apart() {
        for (shown, last) in [(1, vec![0]), (4, vec![2, 3]), (100, vec![90, 99]), (101, vec![90, 100])] {
            let places: Vec<usize> = (0..shown).filter(|place| labelled(*place, shown)).collect();
            assert_eq!(places[places.len() - last.len()..], last, "{shown}");
        }
    }

    #[test]
    fn a_long_name_is_cut_visibly() {
        assert_eq!(["T-shirt", "narrowed vessel"].map(short), ["T-shirt", "narrowed ve."]);
    }

    #[test]
    fn the_axis_of_a_histogram_has_round_numbers() {
        assert_eq!(ticks(3), [0, 1, 2, 3]);
        assert_eq!(ticks(12), [0, 5, 10]);
        assert_eq!(ticks(47), [0, 10, 20, 30, 40]);
        assert_eq!(ticks(100), [0, 20, 40, 60, 80, 100]);
    }

    #[test]
    fn of_many_clients_an_even_choice_is_shown() {
        let partition = Partition { clients: (0..1000).map(|row| vec![row]).collect() };
        let statistics = Statistics::of(&partition, &vec![0; 1000], &Reference::uniform(2));
        let shown = spread(&statistics.clients, 100);
        assert_eq!((shown.len(), shown[1].client, shown[99].client), (100, 10, 990));
    }
}
