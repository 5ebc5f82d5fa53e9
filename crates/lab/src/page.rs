//! A comparison as one self-contained HTML page: table, curves, configuration; nothing is loaded from elsewhere.

use crate::comparison::Curve;
use crate::statistics::deviation;
use crate::summary::{LAST, Line, mean_curve};
use crate::svg::{COLOURS, Series, curves as drawn, escaped};
use std::fmt::Write as _;

/// What a page shows.
pub struct Page<'a> {
    /// What was compared, in one line or two.
    pub heading: &'a str,
    /// One line per strategy.
    pub lines: &'a [Line],
    /// Every run.
    pub curves: &'a [Curve],
    /// Sentences below the table.
    pub verdicts: &'a [String],
    /// The resolved configuration.
    pub config: &'a str,
    /// The command that repeats it.
    pub command: &'a str,
}

const STYLE: &str = "
:root { color-scheme: light dark; --line: #8884; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .6rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
.mark { display: inline-block; width: .8em; height: .8em; border-radius: 50%; margin-right: .5em; }
svg { width: 100%; height: auto; } pre { overflow-x: auto; padding: .8rem; border: 1px solid var(--line); border-radius: 6px; }
small { opacity: .75; }
@media print { body { max-width: none; margin: 0; } details { display: none; } }
";

impl Page<'_> {
    /// The page's text.
    pub fn html(&self) -> String {
        let mut text = format!(
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>fedtvd compare</title>\n<style>{STYLE}</style>\n<h1>Strategies compared</h1>\n<p>{}</p>\n",
            escaped(self.heading).replace('\n', "<br>")
        );
        text += &self.table();
        for verdict in self.verdicts {
            let _ = writeln!(text, "<p>{}</p>", escaped(verdict));
        }
        text +=
            "<h2>Accuracy over rounds</h2>\n<p><small>mean over seeds, band of one deviation</small></p>\n";
        text += &drawn(&self.series());
        let _ = write!(
            text,
            "<h2>Repeat it</h2>\n<pre>{}</pre>\n<details><summary>Configuration</summary>\n<pre>{}</pre></details>\n\
             <p><small>fedtvd {}</small></p>\n</html>\n",
            escaped(self.command),
            escaped(self.config),
            env!("CARGO_PKG_VERSION")
        );
        text
    }

    fn table(&self) -> String {
        let first = self.lines.first().map_or("", |line| &line.strategy);
        let mut text = format!(
            "<div class=\"scroll\"><table>\n<thead><tr><th>strategy</th><th>accuracy</th><th>vs {} (95 %)</th><th>wins</th>\
             <th>rounds</th><th>wobble</th><th>counted</th></tr></thead>\n<tbody>\n",
            escaped(first)
        );
        for (place, line) in self.lines.iter().enumerate() {
            let cells = line.cells(self.seeds());
            let colour = COLOURS[place % COLOURS.len()];
            let _ = writeln!(
                text,
                "<tr><td><span class=\"mark\" style=\"background:{colour}\"></span>{}</td>{}</tr>",
                escaped(&line.strategy),
                cells.iter().map(|cell| format!("<td>{}</td>", escaped(cell))).collect::<String>()
            );
        }
        let _ = writeln!(
            text,
            "</tbody></table></div>\n<p><small>accuracy: mean of the last {LAST} rounds, in %, and its deviation over \
             seeds · vs: paired difference in points with its 95 % interval (Student's t) · rounds: until {}'s final \
             accuracy · wobble: deviation between the last {LAST} rounds · counted: effective number of clients</small></p>",
            escaped(first)
        );
        text
    }

    fn seeds(&self) -> usize {
        self.curves.iter().filter(|curve| curve.strategy == 0).count()
    }

    fn series(&self) -> Vec<Series> {
        let of = |(strategy, line): (usize, &Line)| {
            let own: Vec<&Curve> = self.curves.iter().filter(|curve| curve.strategy == strategy).collect();
            let mean = mean_curve(&own);
            let spread = |round: usize| {
                deviation(&own.iter().map(|curve| curve.accuracy[round]).collect::<Vec<_>>()).unwrap_or(0.0)
            };
            let deviation = (0..mean.len()).map(spread).collect();
            Series { label: line.strategy.clone(), mean, deviation }
        };
        self.lines.iter().enumerate().map(of).collect()
    }
}
