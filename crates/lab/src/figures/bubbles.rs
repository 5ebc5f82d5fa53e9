//! Clients as bubbles by size and TVD (total variation distance of their labels), with the area showing their weight: the
//! paper's Figure 5.

use super::axis::{Frame, Unit, bounds};
use super::palette::Colour;
use super::scene::{Anchor, Scene, Stroke};
use crate::runs::setting::Setting;
use fedtvd_core::round::ClientId;

/// The clients of one seed under several strategies.
#[derive(Clone, Debug)]
pub(crate) struct Bubbles {
    /// Which seed.
    pub(crate) seed: u64,
    /// Places and labels of the strategies.
    pub(crate) strategies: Vec<(usize, String)>,
    /// Every client that took part under any of them.
    pub(crate) clients: Vec<Bubble>,
}

/// One client.
#[derive(Clone, Debug)]
pub(crate) struct Bubble {
    /// Its id.
    pub(crate) client: ClientId,
    /// Number of samples.
    pub(crate) size: u64,
    /// Total variation distance of its labels to the reference.
    pub(crate) tvd: f64,
    /// Its mean weight under each strategy over the rounds in which it took part; 0 if it never did.
    pub(crate) weights: Vec<f64>,
}

impl Bubbles {
    /// The bubbles of the first seed that all strategies of a setting have, or else of the first strategy's first seed.
    pub(crate) fn of(setting: &Setting, labels: &[String]) -> Option<Self> {
        let has =
            |seed: u64| setting.strategies.iter().all(|s| s.records.iter().any(|r| r.summary.seed == seed));
        let seeds = setting.seeds();
        let first = || Some(setting.strategies.first()?.records.first()?.summary.seed);
        let seed = seeds.into_iter().find(|seed| has(*seed)).or_else(first)?;
        let mut shown = Self { seed, strategies: Vec::new(), clients: Vec::new() };
        let mut clients = std::collections::BTreeMap::new();
        let with_seed = setting.strategies.iter().filter_map(|strategy| {
            Some((strategy, strategy.records.iter().find(|record| record.summary.seed == seed)?))
        });
        for (column, (strategy, record)) in with_seed.enumerate() {
            let place = labels.iter().position(|label| *label == strategy.label).unwrap_or(column);
            shown.strategies.push((place, strategy.label.clone()));
            for (&client, participant) in &record.participants {
                let (size, Some(tvd)) = (participant.size, participant.tvd) else { continue };
                let entry =
                    clients.entry(client).or_insert(Bubble { client, size, tvd, weights: Vec::new() });
                entry.weights.resize(column, 0.0);
                entry.weights.push(participant.weight);
            }
        }
        let columns = shown.strategies.len();
        clients.values_mut().for_each(|bubble| bubble.weights.resize(columns, 0.0));
        shown.clients = clients.into_values().collect();
        (!shown.clients.is_empty()).then_some(shown)
    }

    fn heaviest(&self) -> f64 {
        self.clients.iter().flat_map(|client| &client.weights).copied().fold(f64::MIN_POSITIVE, f64::max)
    }

    fn frame(&self, edges: [f64; 4]) -> Frame {
        let largest = self.clients.iter().map(|client| client.size as f64);
        let [_, right] = bounds(largest.chain([0.0]));
        let [low, high] = bounds(self.clients.iter().map(|client| client.tvd));
        // Leaves room for bubbles at the edges.
        let room = 0.05 * (high - low);
        Frame { edges, x: [-0.04 * right, 1.04 * right], y: [low - room, high + room] }
    }

    /// One panel that the page's script redraws for each strategy.
    pub(crate) fn interactive(&self, title: &str) -> Scene {
        const LARGEST: f64 = 22.0;
        let mut scene = Scene::new(title, [760.0, 430.0]);
        let radius = LARGEST / self.heaviest().sqrt();
        scene.data = format!(" class=\"bubbles\" data-radius=\"{radius:.4}\"");
        self.panel(&mut scene, [58.0, 24.0, 746.0, 386.0], 0, LARGEST);
        scene
    }

    /// A panel per strategy, for print; strategies with the same weights share one.
    pub(crate) fn panels(&self, title: &str) -> Scene {
        const PANEL: [f64; 2] = [380.0, 300.0];
        let panels = self.alike();
        let columns = panels.len().clamp(1, 2);
        let lines = panels.len().div_ceil(columns);
        let mut scene = Scene::new(title, [PANEL[0] * columns as f64, PANEL[1] * lines as f64]);
        for (place, (column, label)) in panels.iter().enumerate() {
            let (x, y) = (PANEL[0] * (place % columns) as f64, PANEL[1] * (place / columns) as f64);
            scene.text([x + 52.0, y + 16.0], 13.0, Anchor::Start, label);
            let edges = [x + 52.0, y + 44.0, x + PANEL[0] - 12.0, y + PANEL[1] - 46.0];
            self.panel(&mut scene, edges, *column, 17.0);
        }
        scene
    }

    /// Axes, and the bubbles under one strategy; `largest` is the radius for the largest weight.
    fn panel(&self, scene: &mut Scene, edges: [f64; 4], column: usize, largest: f64) {
        let frame = self.frame(edges);
        frame.vertical(scene, Unit::Plain, "TVD (label skew)");
        frame.horizontal(scene, Unit::Whole, "samples");
        let colour = Colour::Strategy(self.strategies[column].0);
        for bubble in self.largest_first() {
            let weights: Vec<String> = bubble.weights.iter().map(|weight| format!("{weight:.4}")).collect();
            let Bubble { client, size, tvd, .. } = bubble;
            let radius = largest * (bubble.weights[column] / self.heaviest()).sqrt();
            let data = format!(" data-w=\"{}\" data-c=\"{client} {size} {tvd:.3}\"", weights.join(" "));
            let centre = [frame.across(*size as f64), frame.down(*tvd)];
            let circle = scene.circle(centre, radius, colour);
            circle.fill = Some((colour, 0.35));
            (circle.stroke, circle.data) = (Some(Stroke::solid(colour, 1.0)), data);
        }
    }

    /// One strategy of each group with the same weights, with the labels of the group or their number.
    fn alike(&self) -> Vec<(usize, String)> {
        let same =
            |a: usize, b: usize| self.clients.iter().all(|client| client.weights[a] == client.weights[b]);
        let mut kept: Vec<Vec<usize>> = Vec::new();
        for column in 0..self.strategies.len() {
            match kept.iter_mut().find(|group| same(group[0], column)) {
                Some(group) => group.push(column),
                None => kept.push(vec![column]),
            }
        }
        let named = |group: Vec<usize>| {
            let labels: Vec<&str> = group.iter().map(|&column| self.strategies[column].1.as_str()).collect();
            let words = match labels.as_slice() {
                [first, others @ ..] if others.len() > 2 => {
                    format!("{first} and {} others with the same weights", others.len())
                }
                few => few.join(", "),
            };
            (group[0], words)
        };
        kept.into_iter().map(named).collect()
    }

    /// Large bubbles first, so that they do not cover small ones.
    fn largest_first(&self) -> Vec<&Bubble> {
        let heaviest = |bubble: &Bubble| bubble.weights.iter().copied().fold(0.0, f64::max);
        let mut bubbles: Vec<&Bubble> = self.clients.iter().collect();
        bubbles.sort_by(|a, b| heaviest(b).total_cmp(&heaviest(a)));
        bubbles
    }
}
