//! A few clients, their labels and what each counts under several strategies: the paper's Figure 1.

use crate::explanation::{ExplainedClient, Explanation};
use crate::svg::{Frame, Medium, Unit, escaped, ticks};
use std::fmt::Write as _;

const LEFT: f64 = 58.0;
const PANEL: f64 = 130.0;

/// Label counts of the paper's three clients.
pub fn papers_clients() -> Vec<Vec<u64>> {
    vec![vec![30, 30, 30], vec![20, 40, 40], vec![10, 30, 70]]
}

/// Draws clients with these label counts and their weights under some strategies.
pub fn illustration(counts: &[Vec<u64>], explanations: &[Explanation]) -> String {
    let clients = counts.len() as f64;
    let bars = explanations.len().max(1) as f64;
    let wide = (34.0 * bars + 46.0).clamp(120.0, 260.0);
    let (width, weights_top) = (LEFT + wide * clients + 14.0, PANEL + 64.0);
    let height = weights_top + 200.0 + 34.0 + 20.0 * (explanations.len() as f64 / 3.0).ceil() + 6.0;
    let mut text = Medium::File.open([width, height], "label counts of clients and what they count", "");
    text += &labels(counts, wide);
    for (place, client) in explanations.iter().take(1).flat_map(|first| first.clients.iter().enumerate()) {
        let middle = LEFT + wide * (place as f64 + 0.5);
        let ExplainedClient { client, size, tvd, .. } = client;
        let _ = writeln!(
            text,
            "<text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-weight=\"bold\">client {client}</text>\
             <text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">n = {size}, TVD {tvd:.2}</text>",
            PANEL + 22.0,
            PANEL + 38.0
        );
    }
    text += &weights(explanations, wide, weights_top);
    text + &legend(explanations, weights_top + 200.0 + 26.0, width) + "</svg>\n"
}

/// Of strategies that weigh these clients alike only the first.
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

/// The clients' label counts as small histograms on a common scale.
fn labels(counts: &[Vec<u64>], wide: f64) -> String {
    let most = counts.iter().flatten().copied().max().unwrap_or(1).max(1) as f64;
    let (_, step) = ticks([0.0, most], 3);
    let top = (most / step).ceil() * step;
    let right = LEFT + wide * counts.len() as f64;
    let frame = Frame { edges: [LEFT, 14.0, right, PANEL], x: [0.0, counts.len() as f64], y: [0.0, top] };
    let mut text = frame.vertical(Unit::Plain, Medium::File);
    for (place, own) in counts.iter().enumerate() {
        let bar = (wide - 24.0) / own.len() as f64;
        for (class, &count) in own.iter().enumerate() {
            let (x, y) = (LEFT + wide * place as f64 + 12.0 + bar * class as f64, frame.down(count as f64));
            let _ = writeln!(
                text,
                "<rect x=\"{:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"#8a8a8a\"/>",
                x + 0.08 * bar,
                0.84 * bar,
                PANEL - y
            );
            if own.len() <= 5 {
                let _ = writeln!(
                    text,
                    "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"11\">{count}</text>",
                    x + 0.5 * bar,
                    y - 3.0
                );
            }
        }
    }
    text
}

/// The clients' weights, a bar per strategy.
fn weights(explanations: &[Explanation], wide: f64, top: f64) -> String {
    let clients = explanations.first().map_or(0, |first| first.clients.len());
    let all = explanations.iter().flat_map(|own| &own.clients).map(|client| client.weight);
    let heaviest = all.fold(f64::MIN_POSITIVE, f64::max);
    let (_, step) = ticks([0.0, heaviest], 4);
    let (bottom, right) = (top + 200.0, LEFT + wide * clients as f64);
    let y = [0.0, ((heaviest + 0.4 * step) / step).ceil() * step];
    let frame = Frame { edges: [LEFT, top, right, bottom], x: [0.0, clients as f64], y };
    let mut text = frame.vertical(Unit::Plain, Medium::File);
    let bar = (wide - 24.0) / explanations.len().max(1) as f64;
    for (place, explanation) in explanations.iter().enumerate() {
        for (k, client) in explanation.clients.iter().enumerate() {
            let (x, y) = (LEFT + wide * k as f64 + 12.0 + bar * place as f64, frame.down(client.weight));
            let _ = writeln!(
                text,
                "<rect x=\"{:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\"/>",
                x + 0.08 * bar,
                0.84 * bar,
                bottom - y,
                Medium::File.colour(place)
            );
            if bar >= 30.0 {
                let _ = writeln!(
                    text,
                    "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"11\">{:.3}</text>",
                    x + 0.5 * bar,
                    y - 3.0,
                    client.weight
                );
            }
        }
    }
    let _ = writeln!(
        text,
        "<text transform=\"translate(14 {:.1}) rotate(-90)\" text-anchor=\"middle\">weight</text>\
         <text transform=\"translate(14 {:.1}) rotate(-90)\" text-anchor=\"middle\">samples</text>",
        0.5 * (top + bottom),
        0.5 * (14.0 + PANEL)
    );
    text
}

fn legend(explanations: &[Explanation], top: f64, width: f64) -> String {
    let (mut text, mut x, mut y) = (String::new(), LEFT, top);
    for (place, explanation) in explanations.iter().enumerate() {
        let wide = 36.0 + 7.0 * explanation.strategy.chars().count() as f64;
        if x > LEFT && x + wide > width {
            (x, y) = (LEFT, y + 20.0);
        }
        let _ = writeln!(
            text,
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"11\" height=\"11\" fill=\"{}\"/><text x=\"{:.1}\" y=\"{y:.1}\">{}</text>",
            y - 10.0,
            Medium::File.colour(place),
            x + 16.0,
            escaped(&explanation.strategy)
        );
        x += wide;
    }
    text
}
