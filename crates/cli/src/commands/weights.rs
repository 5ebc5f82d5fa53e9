//! `fedtvd weights`: the aggregation weights of clients with given label counts.

use crate::output::plot;
use crate::request::{Changes, Failure, Output};
use anyhow::{Context, anyhow, bail, ensure};
use clap::Args;
use fedtvd_lab::experiments::explanation::Explanation;
use fedtvd_lab::figures::{distinct, illustration};
use fedtvd_run::configuration::{Config, Value};
use std::fmt::Write as _;
use std::path::PathBuf;

/// Show the aggregation weights of clients with given label counts.
#[derive(Args)]
pub(crate) struct Weights {
    /// Label counts of the clients: classes separated by commas, clients by semicolons
    #[arg(long, value_name = "COUNTS", allow_hyphen_values = true, default_value = PAPER)]
    counts: String,
    /// Strategy that computes the weights
    #[arg(long, default_value = "fedtvd")]
    strategy: String,
    /// Write a chart to an .svg or .png file
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    changes: Changes,
    #[command(flatten)]
    output: Output,
}

/// The three clients of the paper's Figure 1.
const PAPER: &str = "30,30,30;20,40,40;10,30,70";

impl Weights {
    pub(crate) fn answer(&self) -> Result<(), Failure> {
        let counts = parse(&self.counts).map_err(Failure::Request)?;
        self.plot.iter().try_for_each(|path| plot::check(path))?;
        let config = self.changes.apply(Config::default().with_strategy(&self.strategy))?;
        self.changes.refuse("strategy.name", "is given by --strategy")?;
        self.changes.refuse("strategy.screen", "is for updates; it does not affect the weights")?;
        let useless = config
            .paths()
            .into_iter()
            .find(|path| !path.starts_with("strategy.") && !path.starts_with("labels."));
        if let Some(path) = useless {
            let error = anyhow!(
                "{path} does not affect the weights; set parameters of {}, strategy.mode or labels.reference",
                self.strategy
            );
            return Err(Failure::Request(error));
        }
        let mut view = Explanation::new(&config, &counts).map_err(Failure::request)?;
        for name in ["fedavg", "uniform"] {
            let mut plain = config.with_strategy(name);
            plain.set("strategy.mode=paper").map_err(Failure::request)?;
            view.beside.push(Explanation::new(&plain, &counts).map_err(Failure::request)?);
        }
        if let Some(path) = &self.plot {
            let all: Vec<Explanation> = view.beside.iter().chain([&view]).cloned().collect();
            plot::write(path, &illustration(&counts, &distinct(all)))?;
        }
        let hardened = config.get("strategy.mode") == Value::Text("hardened".to_owned());
        self.output.answer(&view, || text(&view, &counts, hardened))
    }
}

/// The label counts of every client; all have the same number of classes.
fn parse(text: &str) -> anyhow::Result<Vec<Vec<u64>>> {
    let mut clients: Vec<Vec<u64>> = Vec::new();
    for (number, row) in text.split(';').map(str::trim).enumerate() {
        ensure!(!row.is_empty(), "client {number} of \"{text}\" has no counts; write counts such as {PAPER}");
        let counts: Vec<u64> = row
            .split(',')
            .map(|count| parse_count(count.trim()).with_context(|| format!("client {number}")))
            .collect::<Result<_, _>>()?;
        if let Some(first) = clients.first() {
            let (got, expected) = (counts.len(), first.len());
            ensure!(
                got == expected,
                "client {number} has {got} classes and client 0 has {expected}; all must have the same number"
            );
        }
        ensure!(counts.len() >= 2, "client {number} has {} class; there must be at least 2", counts.len());
        let sum: u128 = counts.iter().map(|&count| u128::from(count)).sum();
        ensure!(
            sum > 0,
            "client {number} has no samples: its counts \"{row}\" are all 0; at least one must be above 0"
        );
        ensure!(u64::try_from(sum).is_ok(), "client {number} has {sum} samples; the maximum is {}", u64::MAX);
        clients.push(counts);
    }
    Ok(clients)
}

fn parse_count(text: &str) -> anyhow::Result<u64> {
    match text.parse::<u64>() {
        Ok(count) => Ok(count),
        Err(_) if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => {
            bail!("count {text} does not fit into 64 bits; the maximum is {}", u64::MAX)
        }
        Err(_) => bail!("\"{text}\" is not a count; counts are whole numbers from 0"),
    }
}

fn text(view: &Explanation, counts: &[Vec<u64>], hardened: bool) -> String {
    let others = &view.beside;
    let labels = |shares: &[f64]| match shares.len() {
        // Too many for a line: bars instead of numbers.
        13.. => bars(shares),
        _ => shares.iter().map(|share| format!("{share:.2}")).collect::<Vec<_>>().join(" "),
    };
    let wide = 6.max(labels(&view.class_mix).chars().count());
    let mut text = format!("{}{}\n\n", view.strategy, if hardened { ", hardened" } else { "" });
    let _ = writeln!(
        text,
        "client  {:>8}  {:wide$}  {:>6}  {:>7}  {:>6}  {:>6}  │ {:>6}  {:>7}",
        "samples", "labels", "TVD", "quality", "size", "weight", others[0].strategy, others[1].strategy
    );
    for (k, client) in view.clients.iter().enumerate() {
        let n = client.size as f64;
        let shares: Vec<f64> = counts[k].iter().map(|&count| count as f64 / n).collect();
        let quality = client.quality_share.map_or("—".to_owned(), |share| format!("{share:.4}"));
        let _ = writeln!(
            text,
            "{:>6}  {:>8}  {:wide$}  {:.4}  {quality:>7}  {:.4}  {:.4}  │ {:.4}  {:>7.4}",
            client.index,
            client.size,
            labels(&shares),
            client.tvd,
            client.size_share,
            client.weight,
            others[0].clients[k].weight,
            others[1].clients[k].weight,
        );
    }
    text += "labels: label distribution · TVD: its total variation distance to the reference\n\
             quality, size: the client's shares by label distribution and by size\n\
             weight: aggregation weight, beside those of fedavg and uniform\n";
    if let Some(name) = &view.combined_by {
        let _ = writeln!(
            text,
            "note: {name} combines updates by their values too; the weights that entered a round are entered_weight in \
             rounds.jsonl"
        );
    }
    let all = view.clients.len();
    let _ = writeln!(text, "\neffective number of clients (of {all})");
    for view in std::iter::once(view).chain(others) {
        let _ = writeln!(text, "  {:<20} {:.3}", view.strategy, view.effective_clients);
    }
    let _ = writeln!(text, "weighted mean of the label distributions");
    for view in std::iter::once(view).chain(others) {
        let _ = writeln!(text, "  {:<20} {}", view.strategy, labels(&view.class_mix));
    }
    text
}

/// Shares as bars; the largest has full height.
fn bars(shares: &[f64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let largest = shares.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    shares.iter().map(|share| BARS[(share / largest * 7.0).round() as usize]).collect()
}
