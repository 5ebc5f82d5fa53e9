//! A chart as SVG, for a file or for the page. In files, text is drawn as outlines, so it looks the same everywhere,
//! including in LaTeX.

use super::font::Font;
use super::palette::{Colour, LIGHT};
use super::scene::{Anchor, Item, Scene, Shape, Stroke};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use tiny_skia::PathSegment;

/// Where a chart is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// In a file: fixed colours, white background, no font required.
    File,
    /// In the page, with the page's colours and font.
    Page,
}

impl Medium {
    fn colour(self, colour: Colour) -> String {
        match (self, colour) {
            (Self::Page, Colour::Ink) => "currentColor".to_owned(),
            (Self::Page, Colour::Grid) => "var(--line)".to_owned(),
            (Self::Page, Colour::Strategy(place)) => format!("var(--s{})", place % LIGHT.len()),
            _ => format!("#{:06x}", colour.on_white()),
        }
    }
}

/// The chart as an SVG element.
pub fn svg(scene: &Scene, medium: Medium) -> String {
    let Scene { width, height, data, items, .. } = scene;
    let (title, ink) = (escaped(&scene.title), medium.colour(Colour::Ink));
    let font = Font::embedded();
    let mut out = match medium {
        Medium::File => format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" fill=\"{ink}\">\n<title>{title}</title>\n{}\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
            glyphs(items, &font)
        ),
        Medium::Page => format!(
            "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{title}\" font-size=\"12\" \
             fill=\"{ink}\"{data}>\n"
        ),
    };
    items.iter().for_each(|item| out += &element(item, medium, &font));
    out + "</svg>\n"
}

fn element(item: &Item, medium: Medium, font: &Font) -> String {
    let (name, place) = match &item.shape {
        Shape::Rect { x, y, width, height } => {
            ("rect", format!(" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\""))
        }
        Shape::Circle { x, y, radius } => {
            ("circle", format!(" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.2}\""))
        }
        Shape::Line([[x1, y1], [x2, y2]]) => {
            ("line", format!(" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\""))
        }
        Shape::Polyline(points) => ("polyline", listed(points)),
        Shape::Polygon(points) => ("polygon", listed(points)),
        Shape::Text { x, y, size, anchor, text } => match medium {
            Medium::File => return outlined([*x, *y], *size, *anchor, text, font),
            Medium::Page => return plain([*x, *y], *size, *anchor, text),
        },
    };
    let data = if medium == Medium::Page { item.data.as_str() } else { "" };
    let paint = paint(item, medium);
    match &item.title {
        Some(title) => format!("<{name}{data}{place}{paint}><title>{}</title></{name}>\n", escaped(title)),
        None => format!("<{name}{data}{place}{paint}/>\n"),
    }
}

fn listed(points: &[[f64; 2]]) -> String {
    let points: Vec<String> = points.iter().map(|[x, y]| format!("{x:.1},{y:.1}")).collect();
    format!(" points=\"{}\"", points.join(" "))
}

fn paint(item: &Item, medium: Medium) -> String {
    let mut text = match item.fill {
        Some((colour, 1.0)) => format!(" fill=\"{}\"", medium.colour(colour)),
        Some((colour, opacity)) => {
            format!(" fill=\"{}\" fill-opacity=\"{opacity:.3}\"", medium.colour(colour))
        }
        None => " fill=\"none\"".to_owned(),
    };
    if let Some(Stroke { colour, width, dashes }) = item.stroke {
        let _ = write!(text, " stroke=\"{}\" stroke-width=\"{width}\"", medium.colour(colour));
        if let Shape::Polyline(points) = &item.shape {
            text += " stroke-linejoin=\"round\"";
            // A line of length 0 with round ends is a dot.
            if points.len() == 2 && points[0] == points[1] {
                text += " stroke-linecap=\"round\"";
            }
        }
        text += &dash_array(dashes);
    }
    text
}

/// The attribute of a dashed line; empty for a solid one.
pub(crate) fn dash_array(dashes: &[f32]) -> String {
    let words: Vec<String> = dashes.iter().map(f32::to_string).collect();
    if words.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{}\"", words.join(" ")) }
}

fn plain([x, y]: [f64; 2], size: f64, anchor: Anchor, text: &str) -> String {
    let anchor = match anchor {
        Anchor::Start => "",
        Anchor::Middle => " text-anchor=\"middle\"",
        Anchor::End => " text-anchor=\"end\"",
    };
    let size = if size == 12.0 { String::new() } else { format!(" font-size=\"{size}\"") };
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\"{anchor}{size}>{}</text>\n", escaped(text))
}

fn outlined([x, y]: [f64; 2], size: f64, anchor: Anchor, text: &str, font: &Font) -> String {
    let label = escaped(text);
    let mut out = format!("<g transform=\"translate({x:.1} {y:.1}) scale({size})\" aria-label=\"{label}\">");
    for (letter, x) in font.letters(text, anchor).iter().filter(|(letter, _)| *letter != ' ') {
        let _ = write!(out, "<use href=\"#u{:x}\" x=\"{x:.3}\"/>", u32::from(*letter));
    }
    out + "</g>\n"
}

/// The outlines of all characters in a chart.
fn glyphs(items: &[Item], font: &Font) -> String {
    let texts = items.iter().filter_map(|item| match &item.shape {
        Shape::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    let letters: BTreeSet<char> = texts.flat_map(str::chars).filter(|letter| *letter != ' ').collect();
    let mut out = String::from("<defs>\n");
    for letter in letters {
        let outline: String =
            font.outline(letter).iter().flat_map(|path| path.segments()).map(segment).collect();
        let _ = writeln!(out, "<path id=\"u{:x}\" d=\"{outline}\"/>", u32::from(letter));
    }
    out + "</defs>\n"
}

fn segment(segment: PathSegment) -> String {
    match segment {
        PathSegment::MoveTo(to) => format!("M{:.3} {:.3}", to.x, to.y),
        PathSegment::LineTo(to) => format!("L{:.3} {:.3}", to.x, to.y),
        PathSegment::QuadTo(by, to) => format!("Q{:.3} {:.3} {:.3} {:.3}", by.x, by.y, to.x, to.y),
        PathSegment::CubicTo(..) => unreachable!("TrueType outlines have no cubic curves"),
        PathSegment::Close => "Z".to_owned(),
    }
}

/// Text escaped for HTML and SVG.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_in_a_file_is_outlines_and_needs_no_font() {
        let mut scene = Scene::new("", [100.0, 50.0]);
        scene.text([50.0, 20.0], 10.0, Anchor::Middle, "a<b & \"c\"");
        scene.circle([1.0, 2.0], 3.0, Colour::Strategy(1));
        let svg = svg(&scene, Medium::File);
        assert!(!svg.contains("font") && !svg.contains("<text"), "{svg}");
        assert!(svg.contains("aria-label=\"a&lt;b &amp; &quot;c&quot;\""), "{svg}");
        assert!(svg.contains("<circle cx=\"1.0\" cy=\"2.0\" r=\"3.00\" fill=\"#d55e00\"/>"), "{svg}");
        assert_eq!(svg.matches("<use ").count(), 7);
    }

    #[test]
    fn the_page_gets_its_own_colours_text_and_attributes() {
        let mut scene = Scene::new("t", [100.0, 50.0]);
        scene.text([50.0, 20.0], 12.0, Anchor::Middle, "a<b");
        let circle = scene.circle([1.0, 2.0], 3.0, Colour::Strategy(9));
        (circle.data, circle.title) = (" data-s=\"9\"".to_owned(), Some("x & y".to_owned()));
        let svg = svg(&scene, Medium::Page);
        assert!(svg.contains(">a&lt;b</text>") && !svg.contains("xmlns"), "{svg}");
        assert!(svg.contains("<circle data-s=\"9\"") && svg.contains("fill=\"var(--s1)\""), "{svg}");
        assert!(svg.contains("<title>x &amp; y</title></circle>"), "{svg}");
    }
}
