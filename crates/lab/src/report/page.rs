//! A report as one self-contained HTML page: it opens from disk, can be printed, and loads nothing from elsewhere.

use crate::figures::{DARK, Figure, LIGHT, dash_array, dashes, escaped};
use crate::report::findings::{Report, SettingReport, toml};
use crate::report::latex;
use std::fmt::Write as _;
use table::{clients, clusters, copy, overview, table, times};

mod table;

const STYLE: &str = include_str!("page/style.css");
const SCRIPT: &str = include_str!("page/script.js");

/// The HTML of the page.
pub(super) fn html(report: &Report) -> String {
    let name = escaped(&report.name);
    let mut text = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{name} · fedtvd</title>\n\
         <style>\n:root {{ {} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {} }} }}\n\
         @media print {{ :root {{ {} }} }}\n{STYLE}</style>\n</head>\n\
         <body>\n<main>\n<header>\n<h1>{name}</h1>\n<p class=\"verdict\">{}</p>\n",
        colours(&LIGHT),
        colours(&DARK),
        colours(&LIGHT),
        escaped(&report.verdict)
    );
    let several = report.parts.len() > 1;
    if several {
        text += "<nav aria-label=\"settings\">";
        for (place, part) in report.parts.iter().enumerate() {
            let _ = write!(text, "<a href=\"#setting-{place}\">{}</a>", escaped(&part.setting.title));
        }
        text += "</nav>\n";
    }
    text += "</header>\n";
    if several {
        text += &overview(report);
    }
    for (place, part) in report.parts.iter().enumerate() {
        text += &section(place, part, several, &report.labels);
    }
    text += &footer(report);
    let _ = write!(text, "</main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n");
    text
}

fn colours(all: &[u32]) -> String {
    let colours = all.iter().enumerate();
    colours.map(|(place, colour)| format!("--s{place}: #{colour:06x};")).collect::<Vec<_>>().join(" ")
}

fn section(place: usize, part: &SettingReport, several: bool, labels: &[String]) -> String {
    let mut text = format!("<section id=\"setting-{place}\">\n");
    if several {
        let (title, verdict) = (escaped(&part.setting.title), escaped(&part.verdict));
        let _ = write!(text, "<h2>{title}</h2>\n<p class=\"said\">{verdict}</p>\n");
    }
    let _ = writeln!(text, "<p class=\"heading\">{}</p>", escaped(&part.heading).replace('\n', "<br>"));
    for note in &part.setting.notes {
        let _ = writeln!(text, "<p class=\"note\">{}</p>", escaped(note));
    }
    text += &table(&part.table, labels);
    if let Some(sentence) = &part.test_set {
        let _ = writeln!(text, "<p class=\"small\">{}</p>", escaped(sentence));
    }
    text += &copy(&latex::setting(part));
    text += &clients(part);
    text += &clusters(part);
    text += &charts(part, labels);
    for why in &part.missing {
        let _ = writeln!(text, "<p class=\"small\">{}</p>", escaped(why));
    }
    let _ = write!(
        text,
        "<h3>Reproduce</h3>\n<pre class=\"command\">{}</pre>\n<details><summary>Configuration</summary>\n<pre>{}</pre></details>\n\
         </section>\n",
        escaped(&part.commands.join("\n")),
        escaped(&toml(&part.setting.values))
    );
    text
}

/// A short piece of a strategy's curve, for legends.
fn swatch(place: usize) -> String {
    let dashes = dash_array(dashes(place));
    format!(
        "<svg class=\"swatch\" viewBox=\"0 0 24 8\" aria-hidden=\"true\"><line x1=\"1\" x2=\"23\" y1=\"4\" y2=\"4\" \
         stroke=\"var(--s{})\" stroke-width=\"3\"{dashes}/></svg>",
        place % LIGHT.len()
    )
}

fn charts(part: &SettingReport, labels: &[String]) -> String {
    let mut text = String::from(
        "<div class=\"charts\">\n<div class=\"legend\" role=\"group\" aria-label=\"strategies shown\">",
    );
    for label in &part.table.labels {
        let place = labels.iter().position(|own| own == label).unwrap_or(0);
        let _ = write!(
            text,
            "<button type=\"button\" aria-pressed=\"true\" data-s=\"{place}\">{}<span>{}</span><output></output></button>",
            swatch(place),
            escaped(label)
        );
    }
    text += "</div>\n";
    for figure in &part.figures {
        text += &shown(figure);
    }
    text + "</div>\n"
}

fn shown(figure: &Figure) -> String {
    let Figure { name, title, inline, tab, .. } = figure;
    let switch = if figure.switch.is_empty() { String::new() } else { switch(&figure.switch) };
    format!(
        "<figure data-name=\"{name}\" data-tab=\"{tab}\">\n{switch}{inline}<figcaption>{} <span class=\"readout\" aria-live=\"polite\"></span></figcaption>\n</figure>\n",
        escaped(title)
    )
}

/// Buttons to choose the strategy whose weights the bubbles show.
fn switch(strategies: &[(usize, String)]) -> String {
    let mut text = String::from("<div class=\"switch\" role=\"group\" aria-label=\"strategy\">");
    for (column, (place, label)) in strategies.iter().enumerate() {
        let pressed = column == 0;
        let _ = write!(
            text,
            "<button type=\"button\" aria-pressed=\"{pressed}\" data-column=\"{column}\" data-s=\"{place}\">{}{}</button>",
            swatch(*place),
            escaped(label)
        );
    }
    text + "</div>\n"
}

fn footer(report: &Report) -> String {
    let mut text = format!("<footer>\n<h2>Method</h2>\n<p>{}</p>\n", escaped(&report.method));
    for note in &report.notes {
        let _ = writeln!(text, "<p class=\"note\">{}</p>", escaped(note));
    }
    if let Some(timing) = &report.timing {
        text += "<h2>Timing</h2>\n";
        text += &times(timing);
    }
    let _ = write!(
        text,
        "<p class=\"small\">Made with fedtvd {}.</p>\n</footer>\n",
        escaped(&report.versions.join(", "))
    );
    text
}
