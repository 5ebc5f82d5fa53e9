//! The chart of a split: a bubble for each client and class, and histograms of client size and TVD.

use super::axis::{Frame, Unit};
use super::palette::Colour;
use super::scene::{Anchor, Scene, Stroke};
use fedtvd_data::statistics::{ClientStatistics, Statistics};

/// More bubbles than this in a row cannot be distinguished.
const MOST_CLIENTS: usize = 120;
const LEFT: f64 = 90.0;
const TOP: f64 = 70.0;
const BARS: usize = 20;

/// The chart of a split.
pub fn split_chart(title: &str, statistics: &Statistics, class_names: &[String]) -> Scene {
    let shown = spread(&statistics.clients, MOST_CLIENTS);
    let column = ((40.0 * shown.len() as f64).clamp(760.0, 1000.0) / shown.len() as f64).max(8.0);
    let row = (500.0 / class_names.len() as f64).clamp(8.0, 32.0);
    let (wide, high) = (column * shown.len() as f64, row * class_names.len() as f64);
    let mut scene = Scene::new(title, [LEFT + wide + 30.0, TOP + high + 330.0]);
    scene.text([LEFT, 28.0], 18.0, Anchor::Start, title);
    scene.text([LEFT, 50.0], 12.0, Anchor::Start, caption(statistics, shown.len()));
    bubbles(&mut scene, &shown, class_names, column, row);
    let sizes: Vec<f64> = statistics.clients.iter().map(|client| client.size as f64).collect();
    let tvds: Vec<f64> = statistics.clients.iter().map(|client| client.tvd).collect();
    let (top, bottom) = (TOP + high + 100.0, TOP + high + 270.0);
    let half = (wide - 60.0) / 2.0;
    let edges = |left: f64| [left, top, left + half, bottom];
    histogram(&mut scene, edges(LEFT), "clients by size", Unit::Whole, &sizes, Colour::Strategy(0));
    let left = LEFT + half + 60.0;
    histogram(&mut scene, edges(left), "clients by TVD", Unit::Plain, &tvds, Colour::Strategy(1));
    scene
}

fn caption(statistics: &Statistics, shown: usize) -> String {
    let all = statistics.clients.len();
    let some = if shown < all { format!(" ({shown} shown)") } else { String::new() };
    let shown = |r: Option<f64>| r.map_or("-".to_owned(), |r| format!("{r:+.2}"));
    format!(
        "{all} clients{some} · mean TVD {:.3} · CV of sizes {:.3} · correlation of size and TVD {}, rank correlation {} · \
         {:.1} effective classes",
        statistics.mean_tvd,
        statistics.size_cv,
        shown(statistics.size_tvd_correlation),
        shown(statistics.size_tvd_rank_correlation),
        statistics.effective_classes
    )
}

fn bubbles(scene: &mut Scene, shown: &[&ClientStatistics], names: &[String], column: f64, row: f64) {
    let most = shown.iter().flat_map(|client| &client.counts).copied().max().unwrap_or(1).max(1) as f64;
    // Large bubbles may overlap their neighbours; otherwise a hundred clients would be dots.
    let full = (1.8 * column).min(row * 0.95) / 2.0;
    let every = (12.0 / row).ceil() as usize;
    let (right, bottom) = (LEFT + column * shown.len() as f64, TOP + row * names.len() as f64);
    for (class, name) in names.iter().enumerate() {
        let y = TOP + (class as f64 + 0.5) * row;
        scene.line([[LEFT, y], [right, y]], Stroke::solid(Colour::Grid, 1.0));
        if class % every == 0 {
            scene.text([LEFT - 8.0, y + 4.0], 11.0, Anchor::End, short(name));
        }
    }
    for (place, client) in shown.iter().enumerate() {
        let x = LEFT + (place as f64 + 0.5) * column;
        for (class, count) in client.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let y = TOP + (class as f64 + 0.5) * row;
            // The area is proportional to the count.
            scene.circle([x, y], full * (*count as f64 / most).sqrt(), Colour::Strategy(0));
        }
        if labelled(place, shown.len()) {
            scene.text([x, bottom + 16.0], 11.0, Anchor::Middle, client.client.to_string());
        }
    }
    scene.text([0.5 * (LEFT + right), bottom + 34.0], 12.0, Anchor::Middle, "client");
    scene.text([LEFT - 8.0, TOP - 8.0], 12.0, Anchor::End, "class");
}

/// A name that fits beside the bubbles.
fn short(name: &str) -> String {
    match name.chars().count() {
        ..=12 => name.to_owned(),
        _ => name.chars().take(11).chain(['.']).collect(),
    }
}

/// Whether a client's number is shown: at most about 20 at equal distances and the last one, without overlap.
fn labelled(place: usize, shown: usize) -> bool {
    let every = shown.div_ceil(20);
    let last = shown - 1;
    place == last || (place.is_multiple_of(every) && (place + every <= last || every == 1))
}

fn histogram(scene: &mut Scene, edges: [f64; 4], name: &str, unit: Unit, values: &[f64], colour: Colour) {
    let ends =
        values.iter().fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], v| [low.min(*v), high.max(*v)]);
    let step = ((ends[1] - ends[0]) / BARS as f64).max(1e-9);
    let mut counts = [0u32; BARS];
    for value in values {
        counts[(((value - ends[0]) / step) as usize).min(BARS - 1)] += 1;
    }
    let most = counts.iter().copied().max().unwrap_or(1).max(1);
    // If all values are equal, they are in the first bar.
    let x = [ends[0], ends[0] + BARS as f64 * step];
    let frame = Frame { edges, x, y: [0.0, f64::from(most)] };
    frame.vertical(scene, Unit::Whole, "");
    let ([left, _, right, bottom], width) = (edges, (edges[2] - edges[0]) / BARS as f64);
    for (place, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let top = frame.down(f64::from(*count));
        scene.rect([left + place as f64 * width + 1.0, top], [width - 2.0, bottom - top], colour);
    }
    scene.line([[left, bottom], [right, bottom]], Stroke::solid(Colour::Ink, 1.0));
    frame.horizontal(scene, unit, name);
}

/// At most `most` clients at equal distances.
pub(crate) fn spread(clients: &[ClientStatistics], most: usize) -> Vec<&ClientStatistics> {
    let count = clients.len().min(most);
    (0..count).map(|place| &clients[place * clients.len() / count]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::scene::Shape;
    use fedtvd_core::labels::Reference;
    use fedtvd_data::split::Partition;

    #[test]
    fn every_count_has_a_bubble_with_proportional_area() {
        let partition = Partition { clients: vec![vec![0, 1, 2, 3], vec![4]] };
        let statistics = Statistics::of(&partition, &[0, 0, 0, 0, 1], &Reference::uniform(2));
        let scene = split_chart("x", &statistics, &["a".to_owned(), "b".to_owned()]);
        let radii: Vec<f64> = scene
            .items
            .iter()
            .filter_map(|item| match item.shape {
                Shape::Circle { radius, .. } => Some(radius),
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
    fn of_many_clients_an_even_selection_is_shown() {
        let partition = Partition { clients: (0..1000).map(|row| vec![row]).collect() };
        let statistics = Statistics::of(&partition, &vec![0; 1000], &Reference::uniform(2));
        let shown = spread(&statistics.clients, 100);
        assert_eq!((shown.len(), shown[1].client, shown[99].client), (100, 10, 990));
    }
}
