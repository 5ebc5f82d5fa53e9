//! Clients by label skew and the model's accuracy on their own hold-outs; the area of a dot is the client's size.

use super::axis::{Frame, Unit, bounds};
use super::palette::Colour;
use super::scene::{Anchor, Scene, Stroke};
use crate::runs::setting::Setting;
use fedtvd_core::round::Spread;
use fedtvd_run::directory::{ClientResult, spread};

/// The clients of one seed under several strategies.
#[derive(Clone, Debug)]
pub(crate) struct ClientAccuracy {
    /// The seed.
    pub(crate) seed: u64,
    /// Place, label and clients of each strategy.
    pub(crate) strategies: Vec<(usize, String, Vec<ClientResult>)>,
}

/// Size of a panel, and the radius of its largest dot.
const PANEL: [f64; 2] = [380.0, 320.0];
const LARGEST: f64 = 11.0;

impl ClientAccuracy {
    /// Of the first seed for which all strategies recorded it.
    pub(crate) fn of(setting: &Setting, labels: &[String]) -> Option<Self> {
        let with_seed = |seed: u64| {
            let strategy = |(column, strategy): (usize, &crate::runs::setting::Strategy)| {
                let record = strategy.records.iter().find(|record| record.summary.seed == seed)?;
                let place = labels.iter().position(|label| *label == strategy.label).unwrap_or(column);
                Some((place, strategy.label.clone(), record.client_results.clone()?))
            };
            setting.strategies.iter().enumerate().map(strategy).collect::<Option<Vec<_>>>()
        };
        let found = setting.seeds().into_iter().find_map(|seed| Some((seed, with_seed(seed)?)));
        let (seed, strategies) = found?;
        strategies.iter().any(|(.., clients)| !clients.is_empty()).then_some(Self { seed, strategies })
    }

    /// A panel per strategy.
    pub(crate) fn panels(&self, title: &str) -> Scene {
        let columns = self.strategies.len().clamp(1, 2);
        let lines = self.strategies.len().div_ceil(columns);
        let mut scene = Scene::new(title, [PANEL[0] * columns as f64, PANEL[1] * lines as f64]);
        for (place, (colour, label, clients)) in self.strategies.iter().enumerate() {
            let (x, y) = (PANEL[0] * (place % columns) as f64, PANEL[1] * (place / columns) as f64);
            scene.text([x + 52.0, y + 16.0], 13.0, Anchor::Start, label);
            if let Some(Spread { mean, deviation, worst_decile }) = spread(clients) {
                let [mean, deviation, worst] = [mean, deviation, worst_decile].map(|share| 100.0 * share);
                let words = format!("mean {mean:.1} %, SD {deviation:.1}, worst tenth {worst:.1} %");
                scene.text([x + 52.0, y + 33.0], 11.0, Anchor::Start, &words);
            }
            let edges = [x + 52.0, y + 64.0, x + PANEL[0] - 12.0, y + PANEL[1] - 46.0];
            self.panel(&mut scene, edges, *colour, clients);
        }
        scene
    }

    fn panel(&self, scene: &mut Scene, edges: [f64; 4], place: usize, clients: &[ClientResult]) {
        let all = || self.strategies.iter().flat_map(|(.., clients)| clients);
        let [low, high] = bounds(all().map(|client| client.tvd));
        let room = 0.04 * (high - low);
        let frame = Frame { edges, x: [low - room, high + room], y: [-0.04, 1.04] };
        frame.vertical(scene, Unit::Percent, "accuracy on its own hold-out");
        frame.horizontal(scene, Unit::Plain, "TVD (label skew)");
        let largest = all().map(|client| client.size).max().unwrap_or(1).max(1) as f64;
        let mut clients: Vec<&ClientResult> = clients.iter().collect();
        // Large dots first, so that they do not cover small ones.
        clients.sort_by_key(|client| std::cmp::Reverse(client.size));
        let colour = Colour::Strategy(place);
        for client in clients {
            let radius = (LARGEST * (client.size as f64 / largest).sqrt()).max(1.5);
            let circle =
                scene.circle([frame.across(client.tvd), frame.down(client.accuracy)], radius, colour);
            circle.fill = Some((colour, 0.35));
            circle.stroke = Some(Stroke::solid(colour, 1.0));
        }
    }
}
