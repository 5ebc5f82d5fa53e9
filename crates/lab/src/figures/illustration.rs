//! The label counts of a few clients and their weights under several strategies: the paper's Figure 1.

use super::axis::{Frame, Unit, ticks};
use super::legend::{Sample, legend};
use super::palette::Colour;
use super::scene::{Anchor, Scene};
use crate::experiments::explanation::{ExplainedClient, Explanation};

const LEFT: f64 = 58.0;
/// Upper and lower edge of the panel of label counts; the panel of weights is below it.
const LABELS: [f64; 2] = [26.0, 142.0];
const WEIGHTS: [f64; 2] = [216.0, 412.0];

/// Label counts of the paper's three clients.
pub fn papers_clients() -> Vec<Vec<u64>> {
    vec![vec![30, 30, 30], vec![20, 40, 40], vec![10, 30, 70]]
}

/// The chart of clients with these label counts and their weights under these strategies.
pub fn illustration(counts: &[Vec<u64>], explanations: &[Explanation]) -> Scene {
    let wide = (34.0 * explanations.len().max(1) as f64 + 46.0).clamp(120.0, 260.0);
    let width = LEFT + wide * counts.len() as f64 + 14.0;
    let mut scene = Scene::new("label counts of clients and their weights", [width, WEIGHTS[1] + 12.0]);
    let most = counts.iter().flatten().copied().max().unwrap_or(1).max(1) as f64;
    let (_, step) = ticks([0.0, most], 3);
    let bars = |client: usize| {
        let bar = |&count: &u64| (count as f64, count.to_string(), Colour::Neutral);
        counts[client].iter().map(bar).collect()
    };
    let top = (most / step).ceil() * step;
    panel(&mut scene, LABELS, wide, (Unit::Whole, "samples", top), counts.len(), &bars);
    let first = explanations.first().map_or(&[][..], |first| &first.clients);
    for (place, ExplainedClient { index, size, tvd, .. }) in first.iter().enumerate() {
        let middle = LEFT + wide * (place as f64 + 0.5);
        let words = [format!("client {index}"), format!("n = {size}, TVD {tvd:.2}")];
        for (line, words) in words.into_iter().enumerate() {
            scene.text([middle, LABELS[1] + 22.0 + 16.0 * line as f64], 12.0, Anchor::Middle, words);
        }
    }
    let all = explanations.iter().flat_map(|own| &own.clients).map(|client| client.weight);
    let heaviest = all.fold(f64::MIN_POSITIVE, f64::max);
    let (_, step) = ticks([0.0, heaviest], 4);
    let bars = |client: usize| {
        let weights = explanations.iter().map(|own| own.clients[client].weight).enumerate();
        weights.map(|(place, weight)| (weight, format!("{weight:.3}"), Colour::Strategy(place))).collect()
    };
    let top = ((heaviest + 0.4 * step) / step).ceil() * step;
    panel(&mut scene, WEIGHTS, wide, (Unit::Plain, "weight", top), first.len(), &bars);
    let labels = explanations.iter().map(|own| own.strategy.as_str()).enumerate();
    legend(&mut scene, LEFT, Sample::Bar, labels);
    scene
}

/// A group of bars per client on a common axis with a unit, a name and a maximum; bars that are wide enough have a label
/// above them.
fn panel(
    scene: &mut Scene,
    [top, bottom]: [f64; 2],
    wide: f64,
    (unit, name, most): (Unit, &str, f64),
    clients: usize,
    bars: &dyn Fn(usize) -> Vec<(f64, String, Colour)>,
) {
    let right = LEFT + wide * clients as f64;
    let frame = Frame { edges: [LEFT, top, right, bottom], x: [0.0, clients as f64], y: [0.0, most] };
    frame.vertical(scene, unit, name);
    for client in 0..clients {
        let bars = bars(client);
        let bar = (wide - 24.0) / bars.len().max(1) as f64;
        for (place, (value, label, colour)) in bars.into_iter().enumerate() {
            let x = LEFT + wide * client as f64 + 12.0 + bar * place as f64;
            let y = frame.down(value);
            scene.rect([x + 0.08 * bar, y], [0.84 * bar, bottom - y], colour);
            // A letter is about seven pixels wide.
            if bar >= 7.0 * label.len() as f64 - 5.0 {
                scene.text([x + 0.5 * bar, y - 3.0], 11.0, Anchor::Middle, label);
            }
        }
    }
}

/// Keeps only the first of strategies with the same weights.
pub fn distinct(explanations: Vec<Explanation>) -> Vec<Explanation> {
    let mut kept: Vec<Explanation> = Vec::new();
    for explanation in explanations {
        if !kept
            .iter()
            .any(|own| own.clients.iter().map(|c| c.weight).eq(explanation.clients.iter().map(|c| c.weight)))
        {
            kept.push(explanation);
        }
    }
    kept
}
