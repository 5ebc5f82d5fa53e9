//! Accuracy by class, with a dot for each strategy.

use super::axis::{Frame, Unit, bounds};
use super::legend::dot;
use super::scene::{Anchor, Scene};
use crate::runs::setting::Setting;
use fedtvd_data::set::named;

/// Every strategy's accuracy in every class, mean over seeds and the last rounds.
#[derive(Clone, Debug)]
pub(crate) struct Classes {
    names: Vec<String>,
    strategies: Vec<(usize, String, Vec<Option<f64>>)>,
}

impl Classes {
    /// The accuracies of a setting; `None` unless all of its runs recorded them.
    pub(crate) fn of(setting: &Setting, labels: &[String]) -> Option<Self> {
        let mut strategies = Vec::new();
        for (column, strategy) in setting.strategies.iter().enumerate() {
            let recorded: Vec<&Vec<Option<f64>>> =
                strategy.records.iter().map(|record| record.classes.as_ref()).collect::<Option<_>>()?;
            let mean = |class: usize| {
                let values: Vec<f64> = recorded.iter().filter_map(|record| *record.get(class)?).collect();
                (!values.is_empty()).then(|| crate::stats::statistics::mean(&values))
            };
            let place = labels.iter().position(|label| *label == strategy.label).unwrap_or(column);
            strategies.push((
                place,
                strategy.label.clone(),
                (0..recorded.first()?.len()).map(mean).collect::<Vec<_>>(),
            ));
        }
        let classes = strategies.first()?.2.len();
        let set = setting.value("data.set").map(crate::runs::setting::shown).unwrap_or_default();
        let known =
            named(&set).map(fedtvd_data::set::Entry::class_names).filter(|names| names.len() == classes);
        let names = known.unwrap_or_else(|| (0..classes).map(|class| class.to_string()).collect());
        Some(Self { names, strategies })
    }

    /// The strategies with their positions in the tables.
    pub(crate) fn strategies(&self) -> impl Iterator<Item = (usize, &str)> {
        self.strategies.iter().map(|(place, label, _)| (*place, label.as_str()))
    }

    /// The chart.
    pub(crate) fn chart(&self, title: &str) -> Scene {
        let all = self.strategies.iter().flat_map(|(.., values)| values.iter().copied().flatten());
        let edges = [58.0, 12.0, 746.0, 318.0];
        let [left, _, right, bottom] = edges;
        let frame = Frame { edges, x: [-0.5, self.names.len() as f64 - 0.5], y: bounds(all) };
        let mut scene = Scene::new(title, [760.0, 360.0]);
        scene.data = " class=\"classes\"".to_owned();
        frame.vertical(&mut scene, Unit::Percent, "");
        let every = self.names.len().div_ceil(20);
        for (class, name) in self.names.iter().enumerate().step_by(every) {
            scene.text([frame.across(class as f64), bottom + 18.0], 11.0, Anchor::Middle, name);
        }
        scene.text([0.5 * (left + right), bottom + 34.0], 12.0, Anchor::Middle, "class");
        let (many, radius) = (self.strategies.len() as f64, if self.names.len() > 20 { 2.0 } else { 4.0 });
        for (column, (place, label, values)) in self.strategies.iter().enumerate() {
            // Side by side within a class, so that dots do not cover each other.
            let shift = 0.7 * ((column as f64 + 0.5) / many - 0.5);
            for (class, value) in values.iter().enumerate() {
                let Some(value) = value else { continue };
                let title = format!("{label}, {}: {:.1} %", self.names[class], 100.0 * value);
                let centre = [frame.across(class as f64 + shift), frame.down(*value)];
                dot(&mut scene, centre, radius, *place, &title);
            }
        }
        scene
    }
}
