//! Curves over rounds, one per strategy: the mean over seeds with a band of one deviation.

use crate::palette::dashes;
use crate::series::Series;
use crate::svg::{Frame, Medium, Unit, bounds, escaped, points};
use std::fmt::Write as _;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 400.0;
const MARGIN: [f64; 4] = [58.0, 12.0, 14.0, 42.0];
const LEGEND_LINE: f64 = 20.0;

/// The figure of some series.
pub fn curves(title: &str, unit: Unit, series: &[Series], medium: Medium) -> String {
    let rounds = series.iter().map(|series| series.mean.len()).max().unwrap_or(0).max(2);
    let limit = |value: f64| if unit == Unit::PerCent { value.clamp(0.0, 1.0) } else { value.max(0.0) };
    let edges = series.iter().flat_map(|series| {
        (0..series.mean.len()).flat_map(move |round| {
            [series.mean[round], series.edge(round, 1.0), series.edge(round, -1.0)].into_iter().flatten()
        })
    });
    let y = bounds(edges.map(limit));
    let [left, top, right, bottom] = MARGIN;
    let frame = Frame { edges: [left, top, WIDTH - right, HEIGHT - bottom], x: [1.0, rounds as f64], y };
    let (legend, lines) = match medium {
        Medium::File => legend(series),
        Medium::Page => (String::new(), 0),
    };
    let height = HEIGHT + LEGEND_LINE * lines as f64 + if lines > 0 { 8.0 } else { 0.0 };
    let [low, high] = y;
    let data = format!(
        " class=\"curves\" tabindex=\"0\" data-rounds=\"{rounds}\" data-frame=\"{} {} {} {}\" data-y=\"{low} {high}\" \
         data-unit=\"{}\"",
        frame.edges[0],
        frame.edges[1],
        frame.edges[2],
        frame.edges[3],
        if unit == Unit::PerCent { "%" } else { "" }
    );
    let mut text = medium.open([WIDTH, height], title, &data);
    text += &frame.vertical(unit, medium);
    text += &frame.horizontal(Unit::Plain, "round", medium);
    // Many bands on top of each other must still let the curves be seen.
    let opacity = if series.len() <= 4 { 0.13 } else { 0.5 / series.len() as f64 };
    series.iter().for_each(|series| text += &band(series, &frame, opacity, medium));
    series.iter().for_each(|series| text += &line(series, &frame, unit, medium));
    text + &legend + "</svg>\n"
}

/// Stretches of rounds that follow each other, of those that are told.
fn stretches(rounds: usize, told: impl Fn(usize) -> bool) -> Vec<Vec<usize>> {
    let rounds: Vec<usize> = (0..rounds).filter(|round| told(*round)).collect();
    rounds.chunk_by(|round, next| round + 1 == *next).map(<[usize]>::to_vec).collect()
}

fn band(series: &Series, frame: &Frame, opacity: f64, medium: Medium) -> String {
    let place = |sign: f64| {
        move |round: &usize| Some([frame.across(*round as f64 + 1.0), frame.down(series.edge(*round, sign)?)])
    };
    let polygon = |rounds: Vec<usize>| {
        let (upper, lower) =
            (rounds.iter().filter_map(place(1.0)), rounds.iter().rev().filter_map(place(-1.0)));
        let (points, own, colour) =
            (points(upper.chain(lower)), own(series, medium), medium.colour(series.place));
        format!("<polygon{own} points=\"{points}\" fill=\"{colour}\" fill-opacity=\"{opacity:.3}\"/>\n")
    };
    let told = |round| series.edge(round, 1.0).is_some();
    stretches(series.mean.len(), told).into_iter().map(polygon).collect()
}

/// A line per stretch of rounds; the first one holds the values for the page's script.
fn line(series: &Series, frame: &Frame, unit: Unit, medium: Medium) -> String {
    let dashes = match dashes(series.place) {
        "" => String::new(),
        dashes => format!(" stroke-dasharray=\"{dashes}\""),
    };
    let mut values = match medium {
        Medium::File => String::new(),
        Medium::Page => format!(
            " data-v=\"{}\" data-d=\"{}\"",
            numbers(&series.mean, unit),
            numbers(&series.deviation, unit)
        ),
    };
    let polyline = |rounds: Vec<usize>| {
        let place =
            |round: &usize| Some([frame.across(*round as f64 + 1.0), frame.down(series.mean[*round]?)]);
        // A line from a lone round to itself is a dot.
        let (again, cap) = match rounds.as_slice() {
            [lone] => (Some(lone), " stroke-linecap=\"round\""),
            _ => (None, ""),
        };
        let points = points(rounds.iter().chain(again).filter_map(place));
        format!(
            "<polyline{}{} points=\"{points}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\" stroke-linejoin=\"round\"{cap}{dashes}>\
             <title>{}</title></polyline>\n",
            own(series, medium),
            std::mem::take(&mut values),
            medium.colour(series.place),
            escaped(&series.label)
        )
    };
    stretches(series.mean.len(), |round| series.mean[round].is_some()).into_iter().map(polyline).collect()
}

/// How the page's script finds what belongs to a strategy.
fn own(series: &Series, medium: Medium) -> String {
    match medium {
        Medium::File => String::new(),
        Medium::Page => format!(" data-s=\"{}\"", series.place),
    }
}

fn numbers(values: &[Option<f64>], unit: Unit) -> String {
    let word = |value: &Option<f64>| match (value, unit) {
        (Some(value), Unit::PerCent) => format!("{:.2}", 100.0 * value),
        (Some(value), Unit::Plain) => format!("{value:.4}"),
        (None, _) => "-".to_owned(),
    };
    values.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// Labels below the figure, and how many lines they take.
fn legend(series: &[Series]) -> (String, usize) {
    let (mut text, mut x, mut line) = (String::new(), MARGIN[0], 0);
    for series in series {
        let wide = 34.0 + 7.0 * series.label.chars().count() as f64 + 18.0;
        if x > MARGIN[0] && x + wide > WIDTH {
            (x, line) = (MARGIN[0], line + 1);
        }
        let y = HEIGHT + 10.0 + LEGEND_LINE * line as f64;
        let _ = writeln!(
            text,
            "<line x1=\"{x:.1}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"{}\" stroke-width=\"2\" \
             stroke-dasharray=\"{}\"/><text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            x + 26.0,
            crate::palette::colour(series.place),
            if dashes(series.place).is_empty() { "none" } else { dashes(series.place) },
            x + 32.0,
            y + 4.0,
            escaped(&series.label)
        );
        x += wide;
    }
    (text, line + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_series_is_drawn_inside_the_frame() {
        let curves_of_seeds = [vec![Some(0.2), Some(0.5), Some(0.9)], vec![Some(0.3), Some(0.6), Some(1.0)]];
        let series = Series::over_seeds(0, "a<b", &curves_of_seeds);
        for medium in [Medium::File, Medium::Page] {
            let text = curves("accuracy", Unit::PerCent, std::slice::from_ref(&series), medium);
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
    fn nothing_is_drawn_where_rounds_tell_nothing() {
        let told = [Some(0.2), Some(0.4), None, Some(0.6), None, None, Some(0.8), Some(1.0)].to_vec();
        let other = told.iter().map(|value: &Option<f64>| value.map(|value| 0.9 * value)).collect();
        let series = [Series::over_seeds(0, "a", &[told, other])];
        let text = curves("drift", Unit::Plain, &series, Medium::Page);
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
        assert_eq!(text.matches("stroke-linecap").count(), 1, "a lone round is a dot");
        assert_eq!(text.matches("data-v=").count(), 1, "the page reads a series once");
    }

    #[test]
    fn a_file_stands_alone_and_a_page_takes_its_colours() {
        let series = [Series::over_seeds(9, "a", &[vec![Some(0.1), Some(0.2)]])];
        let file = curves("t", Unit::PerCent, &series, Medium::File);
        assert!(
            file.contains("xmlns") && file.contains("#d55e00") && file.contains("stroke-dasharray=\"7 4\"")
        );
        let page = curves("t", Unit::PerCent, &series, Medium::Page);
        assert!(
            !page.contains("xmlns") && page.contains("var(--s1)") && page.contains("data-v=\"10.00 20.00\"")
        );
    }
}
