//! A scene as SVG. Letters are outlines, so that it looks the same everywhere, in LaTeX too.

use super::font::{Font, Stroke};
use super::scene::{Color, INK, Item, Scene};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The scene as an SVG file.
pub fn svg(scene: &Scene) -> String {
    let font = Font::embedded();
    let mut out = String::new();
    let Scene { width, height, items } = scene;
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">"
    );
    let words = items.iter().filter_map(|item| match item {
        Item::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    let letters: BTreeSet<char> = words.flat_map(str::chars).filter(|letter| *letter != ' ').collect();
    out.push_str("<defs>\n");
    for letter in letters {
        let outline: String = font.outline(letter).iter().map(path).collect();
        let _ = writeln!(out, "<path id=\"u{:x}\" d=\"{outline}\"/>", u32::from(letter));
    }
    out.push_str("</defs>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n");
    for item in items {
        let _ = match item {
            Item::Rect { x, y, width, height, color } => writeln!(
                out,
                "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" fill=\"{}\"/>",
                web(*color)
            ),
            Item::Circle { x, y, radius, color } => writeln!(
                out,
                "<circle cx=\"{x:.2}\" cy=\"{y:.2}\" r=\"{radius:.2}\" fill=\"{}\"/>",
                web(*color)
            ),
            Item::Text { x, y, size, anchor, text } => {
                let (letters, width) = font.letters(text);
                let start = x - Font::shift(*anchor, width) * size;
                let _ = write!(
                    out,
                    "<g fill=\"{}\" transform=\"translate({start:.2} {y:.2}) scale({size})\" aria-label=\"{}\">",
                    web(INK),
                    escaped(text)
                );
                for (letter, x) in letters.iter().filter(|(letter, _)| *letter != ' ') {
                    let _ = write!(out, "<use href=\"#u{:x}\" x=\"{x:.3}\"/>", u32::from(*letter));
                }
                writeln!(out, "</g>")
            }
        };
    }
    out.push_str("</svg>\n");
    out
}

fn path(stroke: &Stroke) -> String {
    match stroke {
        Stroke::Move([x, y]) => format!("M{x:.3} {y:.3}"),
        Stroke::Line([x, y]) => format!("L{x:.3} {y:.3}"),
        Stroke::Curve([a, b], [x, y]) => format!("Q{a:.3} {b:.3} {x:.3} {y:.3}"),
        Stroke::Close => "Z".to_owned(),
    }
}

fn web([red, green, blue]: Color) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::Anchor;

    #[test]
    fn words_are_outlines_and_no_font_is_asked_for() {
        let mut scene = Scene { width: 100.0, height: 50.0, items: Vec::new() };
        scene.text(50.0, 20.0, 10.0, Anchor::Middle, "a<b & \"c\"");
        scene.circle(1.0, 2.0, 3.0, [255, 0, 16]);
        let svg = svg(&scene);
        assert!(!svg.contains("font") && !svg.contains("<text"), "{svg}");
        assert!(svg.contains("aria-label=\"a&lt;b &amp; &quot;c&quot;\""), "{svg}");
        assert!(svg.contains("<circle cx=\"1.00\" cy=\"2.00\" r=\"3.00\" fill=\"#ff0010\"/>"), "{svg}");
        assert_eq!(svg.matches("<use ").count(), 7);
    }
}
