//! Curves as SVG: accuracy over rounds, one line per strategy with a band of one deviation.

use std::fmt::Write as _;

/// Colours of the curves, in their order; they differ also for people who do not see red and green.
pub const COLOURS: [&str; 8] =
    ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999999", "#000000"];

/// One curve with its band.
pub struct Series {
    /// Its name.
    pub label: String,
    /// Mean of every round, from 0 to 1.
    pub mean: Vec<f64>,
    /// Deviation of every round; empty for none.
    pub deviation: Vec<f64>,
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 52.0;
const BOTTOM: f64 = 40.0;
const TOP: f64 = 12.0;
const RIGHT: f64 = 12.0;

/// A complete SVG element; it uses the colour of the text around it for axes and words.
pub fn curves(series: &[Series]) -> String {
    let rounds = series.iter().map(|s| s.mean.len()).max().unwrap_or(0).max(2);
    let edges = |sign: f64| {
        series.iter().flat_map(move |s| {
            s.mean.iter().enumerate().map(move |(i, m)| m + sign * s.deviation.get(i).copied().unwrap_or(0.0))
        })
    };
    let low = (edges(-1.0).fold(1.0, f64::min).max(0.0) * 20.0).floor() / 20.0;
    let high = (edges(1.0).fold(0.0, f64::max).min(1.0) * 20.0).ceil() / 20.0;
    let high = if high > low { high } else { low + 0.05 };
    let x = |round: usize| LEFT + (WIDTH - LEFT - RIGHT) * round as f64 / (rounds - 1) as f64;
    let y = |value: f64| TOP + (HEIGHT - TOP - BOTTOM) * (high - value.clamp(low, high)) / (high - low);
    let mut text = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"accuracy over rounds\" \
         font-family=\"system-ui, sans-serif\" font-size=\"12\" fill=\"currentColor\">\n"
    );
    let step = if high - low > 0.4 { 0.1 } else { 0.05 };
    let mut tick = low;
    while tick <= high + 1e-9 {
        let (height, end, words) = (y(tick), WIDTH - RIGHT, LEFT - 6.0);
        let _ = writeln!(
            text,
            "<line x1=\"{LEFT}\" x2=\"{end}\" y1=\"{height:.1}\" y2=\"{height:.1}\" stroke=\"currentColor\" \
             stroke-opacity=\"0.15\"/><text x=\"{words}\" y=\"{:.1}\" text-anchor=\"end\">{:.0} %</text>",
            height + 4.0,
            100.0 * tick
        );
        tick += step;
    }
    for part in 0..=5 {
        let round = (rounds - 1) * part / 5;
        let _ = writeln!(
            text,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            x(round),
            HEIGHT - BOTTOM + 18.0,
            round + 1
        );
    }
    let _ = writeln!(
        text,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">round</text>",
        WIDTH / 2.0,
        HEIGHT - 4.0
    );
    for (place, series) in series.iter().enumerate() {
        let colour = COLOURS[place % COLOURS.len()];
        if series.deviation.len() == series.mean.len() {
            let edge = |i: usize, sign: f64| (x(i), y(series.mean[i] + sign * series.deviation[i]));
            let upper = (0..series.mean.len()).map(|i| edge(i, 1.0));
            let lower = (0..series.mean.len()).rev().map(|i| edge(i, -1.0));
            let points = points(upper.chain(lower));
            let _ = writeln!(text, "<polygon points=\"{points}\" fill=\"{colour}\" fill-opacity=\"0.13\"/>");
        }
        let points = points(series.mean.iter().enumerate().map(|(i, &m)| (x(i), y(m))));
        let label = escaped(&series.label);
        let _ = writeln!(
            text,
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"><title>{label}</title></polyline>"
        );
    }
    text + "</svg>\n"
}

fn points(places: impl Iterator<Item = (f64, f64)>) -> String {
    places.map(|(x, y)| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ")
}

/// Text that may stand in HTML and SVG.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_series_is_drawn_inside_the_frame() {
        let series = Series { label: "a<b".into(), mean: vec![0.2, 0.5, 0.9], deviation: vec![0.05; 3] };
        let text = curves(&[series]);
        assert_eq!((text.matches("<polyline").count(), text.matches("<polygon").count()), (1, 1));
        assert!(text.contains("<title>a&lt;b</title>"));
        let places = text.split('"').filter(|part| part.contains(','));
        for pair in places.flat_map(|part| part.split(' ')).filter_map(|pair| pair.split_once(',')) {
            if let (Ok(x), Ok(y)) = (pair.0.parse::<f64>(), pair.1.parse::<f64>()) {
                assert!(
                    (LEFT..=WIDTH - RIGHT).contains(&x) && (TOP..=HEIGHT - BOTTOM).contains(&y),
                    "{pair:?}"
                );
            }
        }
    }
}
