//! `fedtvd compare`: strategies side by side on the same splits, initial models and cohorts.

use crate::progress::Bars;
use crate::request::{Configured, Failure, Output};
use anyhow::anyhow;
use clap::Args;
use fedtvd_core::statistic::{Reference, tvd};
use fedtvd_lab::chart::{MARKS, chart};
use fedtvd_lab::comparison::{Comparison, ComparisonError, Curve};
use fedtvd_lab::statistics::mean;
use fedtvd_lab::summary::{LAST, Line, mean_curve, summary};
use fedtvd_run::config::Config;
use fedtvd_run::value::Value;
use serde::Serialize;
use std::fmt::Write as _;

/// Train several strategies side by side.
#[derive(Args)]
pub(crate) struct Compare {
    #[command(flatten)]
    configured: Configured,
    /// Strategies, separated by commas; differences are to the first one
    #[arg(long, value_delimiter = ',', default_value = "fedavg,uniform,fedtvd,fedtvd+balanced")]
    strategies: Vec<String>,
    /// How many seeds, counted up from the configuration's, or a list of seeds such as 3,7
    #[arg(long, default_value = "5")]
    seeds: String,
    /// How many rounds
    #[arg(long)]
    rounds: Option<u64>,
    /// How many runs at a time; all cores unless set
    #[arg(long)]
    workers: Option<usize>,
    #[command(flatten)]
    output: Output,
}

#[derive(Serialize)]
struct View<'a> {
    runs: Vec<RunView<'a>>,
    summary: &'a [Line],
    report: Option<&'a str>,
}

#[derive(Serialize)]
struct RunView<'a> {
    strategy: &'a str,
    seed: u64,
    rounds: usize,
    accuracy: f64,
    last10_accuracy: f64,
    seconds: f64,
    images_per_second: f64,
}

impl Compare {
    /// Answers.
    pub(crate) fn answer(&self) -> Result<(), Failure> {
        let mut config = self.configured.read()?;
        if let Some(rounds) = self.rounds {
            config.set(&format!("rounds={rounds}")).map_err(Failure::request)?;
        }
        let seeds = seeds(&self.seeds, &config).map_err(Failure::Request)?;
        let comparison = Comparison::new(&config, &self.configured.places(), &self.strategies, &seeds)
            .map_err(Failure::request)?;
        let quiet = self.output.quiet || self.output.json;
        if !quiet {
            eprintln!("{}\n", heading(&config, &comparison));
        }
        let bars = Bars::new(&comparison, quiet);
        let workers =
            self.workers.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
        let curves =
            comparison.run(workers, &|progress| bars.show(progress)).map_err(|error| match error {
                ComparisonError::Run { .. } => Failure::work(error),
                _ => Failure::request(error),
            })?;
        bars.finish();
        let lines = summary(comparison.labels(), &curves);
        let view = View { runs: runs(&comparison, &curves), summary: &lines, report: None };
        self.output.answer(&view, || text(&comparison, &lines, &curves))
    }
}

/// `5` means five seeds counted up from the configuration's, `3,7` those two.
fn seeds(text: &str, config: &Config) -> anyhow::Result<Vec<u64>> {
    let wrong = || anyhow!("--seeds {text} is neither a number of seeds above 0 nor a list such as 3,7");
    let numbers: Vec<u64> =
        text.split(',').map(|seed| seed.trim().parse()).collect::<Result<_, _>>().map_err(|_| wrong())?;
    match (numbers.as_slice(), config.get("seed")) {
        ([0], _) => Err(wrong()),
        ([count], Value::Whole(first)) => Ok((first..first.saturating_add(*count)).collect()),
        _ => Ok(numbers),
    }
}

fn heading(config: &Config, comparison: &Comparison) -> String {
    let shown = |path| match config.get(path) {
        Value::Text(text) => text,
        other => other.to_string(),
    };
    let clients = comparison.setups().next().map_or(0, |setup| setup.clients.len());
    let fraction: f64 = shown("cohort.fraction").parse().unwrap_or(1.0);
    let (mut distances, mut sizes) = (Vec::new(), Vec::new());
    for setup in comparison.setups() {
        let uniform = Reference::uniform(setup.samples.classes());
        distances.extend(setup.clients.iter().map(|client| tvd(&client.counts, &uniform)));
        sizes.extend(setup.clients.iter().map(|client| client.rows.len()));
    }
    format!(
        "{} · {clients} clients, {:.0} per round · {} {} · {} · {} seeds × {} rounds\n\
         same split, same start, same cohorts for all · mean TVD {:.2} · sizes {}–{}",
        shown("data.set"),
        (fraction * clients as f64 + 1e-9).floor().max(1.0),
        shown("split.kind"),
        shown("split.alpha"),
        shown("model.name"),
        comparison.seeds().len(),
        comparison.rounds(),
        mean(&distances),
        sizes.iter().min().unwrap_or(&0),
        sizes.iter().max().unwrap_or(&0),
    )
}

fn runs<'a>(comparison: &'a Comparison, curves: &[Curve]) -> Vec<RunView<'a>> {
    let view = |curve: &Curve| RunView {
        strategy: &comparison.labels()[curve.strategy],
        seed: curve.seed,
        rounds: curve.accuracy.len(),
        accuracy: curve.accuracy.last().copied().unwrap_or(0.0),
        last10_accuracy: mean(&curve.accuracy[curve.accuracy.len().saturating_sub(LAST)..]),
        seconds: curve.seconds,
        images_per_second: curve.images as f64 / curve.seconds,
    };
    curves.iter().map(view).collect()
}

fn text(comparison: &Comparison, lines: &[Line], curves: &[Curve]) -> String {
    let wide = lines.iter().map(|line| line.strategy.len()).max().unwrap_or(0).max(8);
    let seeds = comparison.seeds().len();
    let first = &lines[0].strategy;
    let mut text = String::new();
    let _ = writeln!(
        text,
        "  {:wide$}  {:>12}  {:>22}  {:>5}  {:>6}  {:>6}  {:>7}",
        "strategy",
        "accuracy",
        format!("vs {first} (95 %)"),
        "wins",
        "rounds",
        "wobble",
        "counted"
    );
    for (line, mark) in lines.iter().zip(MARKS.iter().cycle()) {
        let points = |share: f64| format!("{:.1}", 100.0 * share);
        let accuracy = format!(
            "{}{}",
            points(line.mean),
            line.std.map_or(String::new(), |s| format!(" ± {}", points(s)))
        );
        let versus = match (line.difference, line.low, line.high) {
            (Some(d), Some(low), Some(high)) => {
                format!("{:+.1} [{:+.1}, {:+.1}]", 100.0 * d, 100.0 * low, 100.0 * high)
            }
            (Some(d), ..) => format!("{:+.1}", 100.0 * d),
            _ => "—".to_owned(),
        };
        let wins = line.wins.map_or("—".to_owned(), |wins| format!("{wins}/{seeds}"));
        let rounds = line.rounds_to_target.map_or("never".to_owned(), |rounds| rounds.to_string());
        let wobble = line.wobble.map_or("—".to_owned(), points);
        let _ = writeln!(
            text,
            "{mark} {:wide$}  {accuracy:>12}  {versus:>22}  {wins:>5}  {rounds:>6}  {wobble:>6}  {:>7.1}",
            line.strategy, line.effective_clients
        );
    }
    let _ = writeln!(
        text,
        "accuracy: last {LAST} rounds, in % · rounds: until {first}'s final accuracy · wobble: deviation between \
         the last {LAST} · counted: effective clients\n"
    );
    let means: Vec<Vec<f64>> = (0..lines.len())
        .map(|strategy| mean_curve(&curves.iter().filter(|c| c.strategy == strategy).collect::<Vec<_>>()))
        .collect();
    text += &chart(&means, 70, 14);
    for line in lines
        .iter()
        .filter(|line| matches!((line.low, line.high), (Some(l), Some(h)) if l <= 0.0 && h >= 0.0))
    {
        let _ = writeln!(
            text,
            "No difference between {} and {first} can be told at {seeds} seeds.",
            line.strategy
        );
    }
    text
}
