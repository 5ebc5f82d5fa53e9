//! Accuracy class by class, a dot per strategy.

use crate::palette::LIGHT;
use crate::setting::Setting;
use crate::svg::{Frame, Medium, Unit, bounds, escaped};
use fedtvd_data::set::named;
use std::fmt::Write as _;

/// What every strategy comes to in every class, mean over seeds of the last rounds.
#[derive(Clone, Debug)]
pub struct Classes {
    names: Vec<String>,
    strategies: Vec<(usize, String, Vec<Option<f64>>)>,
}

impl Classes {
    /// The classes of a setting; `None` unless all of its runs tell them.
    pub fn of(setting: &Setting, labels: &[String]) -> Option<Self> {
        let mut strategies = Vec::new();
        for (column, strategy) in setting.strategies.iter().enumerate() {
            let told: Vec<&Vec<Option<f64>>> =
                strategy.records.iter().map(|record| record.classes.as_ref()).collect::<Option<_>>()?;
            let mean = |class: usize| {
                let values: Vec<f64> = told.iter().filter_map(|record| *record.get(class)?).collect();
                (!values.is_empty()).then(|| crate::statistics::mean(&values))
            };
            let place = labels.iter().position(|label| *label == strategy.label).unwrap_or(column);
            strategies.push((
                place,
                strategy.label.clone(),
                (0..told.first()?.len()).map(mean).collect::<Vec<_>>(),
            ));
        }
        let classes = strategies.first()?.2.len();
        let set = setting.value("data.set").map(crate::setting::shown).unwrap_or_default();
        let known =
            named(&set).map(fedtvd_data::set::Entry::class_names).filter(|names| names.len() == classes);
        let names = known.unwrap_or_else(|| (0..classes).map(|class| class.to_string()).collect());
        Some(Self { names, strategies })
    }

    /// The figure.
    pub fn drawn(&self, title: &str, medium: Medium) -> String {
        const SIZE: [f64; 2] = [760.0, 360.0];
        let all = self.strategies.iter().flat_map(|(.., values)| values.iter().copied().flatten());
        let (legend, lines) = match medium {
            Medium::File => self.legend(SIZE[1]),
            Medium::Page => (String::new(), 0),
        };
        let height = SIZE[1] + 20.0 * lines as f64;
        let count = self.names.len() as f64;
        let frame = Frame {
            edges: [58.0, 12.0, SIZE[0] - 14.0, SIZE[1] - 42.0],
            x: [-0.5, count - 0.5],
            y: bounds(all),
        };
        let mut text = medium.open([SIZE[0], height], title, " class=\"classes\"");
        text += &frame.vertical(Unit::PerCent, medium);
        let every = self.names.len().div_ceil(20);
        for (class, name) in self.names.iter().enumerate().step_by(every) {
            let _ = writeln!(
                text,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"11\">{}</text>",
                frame.across(class as f64),
                SIZE[1] - 24.0,
                escaped(name)
            );
        }
        let _ = writeln!(
            text,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">class</text>",
            0.5 * SIZE[0],
            SIZE[1] - 8.0
        );
        let many = self.strategies.len() as f64;
        for (column, (place, label, values)) in self.strategies.iter().enumerate() {
            // Side by side inside a class, so that no dot hides another.
            let shift = 0.7 * ((column as f64 + 0.5) / many - 0.5);
            let own = if medium == Medium::Page { format!(" data-s=\"{place}\"") } else { String::new() };
            let _ = writeln!(text, "<g{own}{}>", dot(*place, medium));
            for (class, value) in values.iter().enumerate() {
                let Some(value) = value else { continue };
                let _ = writeln!(
                    text,
                    "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"{}\"><title>{}, {}: {:.1} %</title></circle>",
                    frame.across(class as f64 + shift),
                    frame.down(*value),
                    if self.names.len() > 20 { 2.0 } else { 4.0 },
                    escaped(label),
                    escaped(&self.names[class]),
                    100.0 * value
                );
            }
            text += "</g>\n";
        }
        text + &legend + "</svg>\n"
    }

    fn legend(&self, top: f64) -> (String, usize) {
        let (mut text, mut x, mut line) = (String::new(), 58.0, 0);
        for (place, label, _) in &self.strategies {
            let wide = 34.0 + 7.0 * label.chars().count() as f64;
            if x > 58.0 && x + wide > 760.0 {
                (x, line) = (58.0, line + 1);
            }
            let y = top + 6.0 + 20.0 * f64::from(line);
            let _ = writeln!(
                text,
                "<g{}><circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"4\"/></g><text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                dot(*place, Medium::File),
                x + 5.0,
                x + 14.0,
                y + 4.0,
                escaped(label)
            );
            x += wide;
        }
        (text, line as usize + 1)
    }
}

/// Filled for the first eight strategies, rings for the others.
fn dot(place: usize, medium: Medium) -> String {
    let colour = medium.colour(place);
    match place < LIGHT.len() {
        true => format!(" fill=\"{colour}\""),
        false => format!(" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\""),
    }
}
