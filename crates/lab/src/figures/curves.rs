//! Curves over rounds, one per strategy: mean over seeds with a band of ± one standard deviation.

use super::axis::{Frame, Unit, bounds};
use super::palette::{Colour, dashes};
use super::scene::{Scene, Stroke};
use super::series::Series;

const SIZE: [f64; 2] = [760.0, 400.0];
pub(crate) const EDGES: [f64; 4] = [58.0, 12.0, 746.0, 358.0];

/// The chart of these series.
pub(crate) fn curves(title: &str, unit: Unit, series: &[Series]) -> Scene {
    let rounds = series.iter().map(|series| series.mean.len()).max().unwrap_or(0).max(2);
    let limit = |value: f64| if unit == Unit::Percent { value.clamp(0.0, 1.0) } else { value.max(0.0) };
    let values = series.iter().flat_map(|series| {
        (0..series.mean.len()).flat_map(move |round| {
            [series.mean[round], series.edge(round, 1.0), series.edge(round, -1.0)].into_iter().flatten()
        })
    });
    let y = bounds(values.map(limit));
    let frame = Frame { edges: EDGES, x: [1.0, rounds as f64], y };
    let mut scene = Scene::new(title, SIZE);
    let ([left, top, right, bottom], [low, high]) = (EDGES, y);
    scene.data = format!(
        " class=\"curves\" tabindex=\"0\" data-rounds=\"{rounds}\" data-frame=\"{left} {top} {right} {bottom}\" \
         data-y=\"{low} {high}\" data-unit=\"{}\"",
        if unit == Unit::Percent { "%" } else { "" }
    );
    frame.vertical(&mut scene, unit, "");
    frame.horizontal(&mut scene, Unit::Whole, "round");
    // The curves must stay visible under many overlapping bands.
    let opacity = if series.len() <= 4 { 0.13 } else { 0.5 / series.len() as f64 };
    series.iter().for_each(|series| band(&mut scene, series, &frame, opacity));
    series.iter().for_each(|series| line(&mut scene, series, &frame, unit));
    scene
}

/// Groups of consecutive rounds that have a value.
fn stretches(rounds: usize, has_value: impl Fn(usize) -> bool) -> Vec<Vec<usize>> {
    let rounds: Vec<usize> = (0..rounds).filter(|round| has_value(*round)).collect();
    rounds.chunk_by(|round, next| round + 1 == *next).map(<[usize]>::to_vec).collect()
}

fn band(scene: &mut Scene, series: &Series, frame: &Frame, opacity: f64) {
    let place = |sign: f64| {
        move |round: &usize| Some([frame.across(*round as f64 + 1.0), frame.down(series.edge(*round, sign)?)])
    };
    for rounds in stretches(series.mean.len(), |round| series.edge(round, 1.0).is_some()) {
        let upper = rounds.iter().filter_map(place(1.0));
        let points = upper.chain(rounds.iter().rev().filter_map(place(-1.0))).collect();
        let band = scene.polygon(points, Colour::Strategy(series.place), opacity);
        band.data = format!(" data-s=\"{}\"", series.place);
    }
}

/// A line for each group of consecutive rounds; the first one carries the values for the page's script.
fn line(scene: &mut Scene, series: &Series, frame: &Frame, unit: Unit) {
    let (mean, deviation) = (numbers(&series.mean, unit), numbers(&series.deviation, unit));
    let mut values = format!(" data-v=\"{mean}\" data-d=\"{deviation}\"");
    let place = |round: &usize| Some([frame.across(*round as f64 + 1.0), frame.down(series.mean[*round]?)]);
    for rounds in stretches(series.mean.len(), |round| series.mean[round].is_some()) {
        let again = if rounds.len() == 1 { rounds.first() } else { None };
        let points = rounds.iter().chain(again).filter_map(place).collect();
        let stroke =
            Stroke { colour: Colour::Strategy(series.place), width: 2.0, dashes: dashes(series.place) };
        let line = scene.polyline(points, stroke);
        line.data = format!(" data-s=\"{}\"{}", series.place, std::mem::take(&mut values));
        line.title = Some(series.label.clone());
    }
}

fn numbers(values: &[Option<f64>], unit: Unit) -> String {
    let number = |value: &Option<f64>| match (value, unit) {
        (Some(value), Unit::Percent) => format!("{:.2}", 100.0 * value),
        (Some(value), _) => format!("{value:.4}"),
        (None, _) => "-".to_owned(),
    };
    values.iter().map(number).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::svg::{Medium, svg};
    use super::*;

    #[test]
    fn every_series_is_drawn_inside_the_frame() {
        let curves_of_seeds = [vec![Some(0.2), Some(0.5), Some(0.9)], vec![Some(0.3), Some(0.6), Some(1.0)]];
        let series = Series::over_seeds(0, "a<b", &curves_of_seeds);
        for medium in [Medium::File, Medium::Page] {
            let text = svg(&curves("accuracy", Unit::Percent, std::slice::from_ref(&series)), medium);
            assert_eq!((text.matches("<polyline").count(), text.matches("<polygon").count()), (1, 1));
            assert!(text.contains("<title>a&lt;b</title>"));
            let places = text.split("points=\"").skip(1).filter_map(|rest| rest.split('"').next());
            for (x, y) in places.flat_map(|part| part.split(' ')).filter_map(|pair| pair.split_once(',')) {
                let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
                assert!((58.0..=746.0).contains(&x) && (12.0..=358.0).contains(&y), "{x} {y}");
            }
        }
    }

    #[test]
    fn nothing_is_drawn_in_rounds_without_a_value() {
        let values = [Some(0.2), Some(0.4), None, Some(0.6), None, None, Some(0.8), Some(1.0)].to_vec();
        let other = values.iter().map(|value: &Option<f64>| value.map(|value| 0.9 * value)).collect();
        let series = [Series::over_seeds(0, "a", &[values, other])];
        let text = svg(&curves("drift", Unit::Plain, &series), Medium::Page);
        let rounds = |element: &str| -> Vec<Vec<u32>> {
            let drawn = text
                .split(element)
                .skip(1)
                .filter_map(|rest| rest.split("points=\"").nth(1)?.split('"').next());
            let round = |pair: &str| {
                let x: f64 = pair.split(',').next().unwrap().parse().unwrap();
                (1.0 + 7.0 * (x - 58.0) / (746.0 - 58.0)).round() as u32
            };
            drawn.map(|points| points.split(' ').map(round).collect()).collect()
        };
        assert_eq!(rounds("<polyline"), [vec![1, 2], vec![4, 4], vec![7, 8]], "{text}");
        assert_eq!(rounds("<polygon"), [vec![1, 2, 2, 1], vec![4, 4], vec![7, 8, 8, 7]], "{text}");
        assert_eq!(text.matches("stroke-linecap").count(), 1, "a single round is a dot");
        assert_eq!(text.matches("data-v=").count(), 1, "the page reads a series once");
    }

    #[test]
    fn a_file_stands_alone_and_a_page_takes_its_colours() {
        let series = [Series::over_seeds(9, "a", &[vec![Some(0.1), Some(0.2)]])];
        let file = svg(&curves("t", Unit::Percent, &series), Medium::File);
        assert!(
            file.contains("xmlns") && file.contains("#d55e00") && file.contains("stroke-dasharray=\"7 4\"")
        );
        let page = svg(&curves("t", Unit::Percent, &series), Medium::Page);
        assert!(
            !page.contains("xmlns") && page.contains("var(--s1)") && page.contains("data-v=\"10.00 20.00\"")
        );
    }
}
