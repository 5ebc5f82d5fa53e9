//! `fedtvd weights`: how much each of some clients would count, and why.

use crate::request::{Changes, Failure, Output};
use anyhow::{Context, anyhow, bail, ensure};
use clap::Args;
use fedtvd_core::hardened;
use fedtvd_core::memory::Memory;
use fedtvd_core::profile::{ClientId, Profile};
use fedtvd_core::record::effective;
use fedtvd_core::statistic::{Reference, size, tvd};
use fedtvd_run::config::Config;
use fedtvd_run::experiment::{Experiment, ReferenceSource};
use fedtvd_run::value::Value;
use serde::Serialize;
use std::fmt::Write as _;

/// Explain the weights of given clients.
#[derive(Args)]
pub(crate) struct Weights {
    /// Label counts: classes separated by commas, clients by semicolons
    #[arg(long, value_name = "COUNTS", allow_hyphen_values = true, default_value = PAPER)]
    counts: String,
    /// The strategy whose weights to explain
    #[arg(long, default_value = "fedtvd")]
    strategy: String,
    #[command(flatten)]
    changes: Changes,
    #[command(flatten)]
    output: Output,
}

/// The three clients of the paper's Figure 1.
const PAPER: &str = "30,30,30;20,40,40;10,30,70";

#[derive(Serialize)]
struct View {
    strategy: String,
    clients: Vec<ClientView>,
    effective_clients: f64,
    class_mix: Vec<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    beside: Vec<View>,
}

#[derive(Serialize)]
struct ClientView {
    client: ClientId,
    size: u64,
    tvd: f64,
    quality_share: Option<f64>,
    size_share: f64,
    weight: f64,
}

impl Weights {
    /// Answers.
    pub(crate) fn answer(&self) -> Result<(), Failure> {
        let counts = parse(&self.counts).map_err(Failure::Request)?;
        let config = self.changes.apply(Config::default().with_strategy(&self.strategy))?;
        let useless = config
            .paths()
            .into_iter()
            .find(|path| !path.starts_with("strategy.") && !path.starts_with("labels."));
        if let Some(path) = useless {
            let error = anyhow!(
                "{path} has no influence on weights; set parameters of {}, strategy.mode or labels.reference",
                self.strategy
            );
            return Err(Failure::Request(error));
        }
        let mut view = view(&config, &counts).map_err(Failure::Request)?;
        for name in ["fedavg", "uniform"] {
            let mut plain = config.with_strategy(name);
            plain.set("strategy.mode=paper").map_err(Failure::request)?;
            view.beside.push(self::view(&plain, &counts).map_err(Failure::Request)?);
        }
        let hardened = config.get("strategy.mode") == Value::Text("hardened".to_owned());
        self.output.answer(&view, || text(&view, &counts, hardened))
    }
}

/// Counts of every client, all of the same number of classes.
fn parse(text: &str) -> anyhow::Result<Vec<Vec<u64>>> {
    let mut clients: Vec<Vec<u64>> = Vec::new();
    for (number, row) in text.split(';').enumerate().map(|(place, row)| (place + 1, row.trim())) {
        ensure!(!row.is_empty(), "client {number} of \"{text}\" has no counts; write counts such as {PAPER}");
        let counts: Vec<u64> = row
            .split(',')
            .map(|count| parse_count(count.trim()).with_context(|| format!("client {number}")))
            .collect::<Result<_, _>>()?;
        if let Some(first) = clients.first() {
            let (got, expected) = (counts.len(), first.len());
            ensure!(
                got == expected,
                "client {number} has {got} classes and client 1 has {expected}; all must have the same"
            );
        }
        ensure!(counts.len() >= 2, "client {number} has {} class; at least 2 are needed", counts.len());
        let sum: u128 = counts.iter().map(|&count| u128::from(count)).sum();
        ensure!(
            sum > 0,
            "client {number} has no samples: its counts \"{row}\" are all 0; at least one must be above 0"
        );
        ensure!(
            u64::try_from(sum).is_ok(),
            "client {number} has {sum} samples; at most {} can be counted",
            u64::MAX
        );
        clients.push(counts);
    }
    Ok(clients)
}

fn parse_count(text: &str) -> anyhow::Result<u64> {
    match text.parse::<u64>() {
        Ok(count) => Ok(count),
        Err(_) if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => {
            bail!("count {text} does not fit into 64 bits; at most {} can be counted", u64::MAX)
        }
        Err(_) => bail!("\"{text}\" is no count; counts are whole numbers from 0 on"),
    }
}

fn view(config: &Config, counts: &[Vec<u64>]) -> anyhow::Result<View> {
    let Experiment { run, reference, .. } = Experiment::of(config)?;
    let classes = counts[0].len();
    let reference = match reference {
        ReferenceSource::Uniform => Reference::uniform(classes),
        ReferenceSource::Aggregated => Reference::aggregated(counts.iter().map(Vec::as_slice))?,
        ReferenceSource::Given(given) => {
            let got = given.classes();
            ensure!(got == classes, "labels.reference has {got} numbers; the clients have {classes} classes");
            given
        }
    };
    let weighting = run.strategy.weighting.as_ref();
    let profile = |(place, counts): (usize, &Vec<u64>)| Profile {
        client: place as ClientId + 1,
        size: size(counts),
        statistic: weighting.asks().answer(counts, &reference),
    };
    let profiles: Vec<Profile> = counts.iter().enumerate().map(profile).collect();
    let shares =
        hardened::shares(weighting, run.mode, &profiles.iter().collect::<Vec<_>>(), &mut Memory::default());
    let client = |(k, profile): (usize, &Profile)| ClientView {
        client: profile.client,
        size: profile.size,
        tvd: tvd(&counts[k], &reference),
        quality_share: shares.quality.as_ref().map(|quality| quality[k]),
        size_share: shares.size[k],
        weight: shares.weight[k],
    };
    let mix = |class: usize| {
        let part = |(counts, weight): (&Vec<u64>, &f64)| weight * counts[class] as f64 / size(counts) as f64;
        counts.iter().zip(&shares.weight).map(part).sum()
    };
    Ok(View {
        strategy: run.strategy.label,
        clients: profiles.iter().enumerate().map(client).collect(),
        effective_clients: effective(&shares.weight),
        class_mix: (0..classes).map(mix).collect(),
        beside: Vec::new(),
    })
}

fn text(view: &View, counts: &[Vec<u64>], hardened: bool) -> String {
    let others = &view.beside;
    let labels = |shares: &[f64]| match shares.len() {
        // More than a line holds: bars alone.
        13.. => bars(shares),
        _ => shares.iter().map(|share| format!("{share:.2}")).collect::<Vec<_>>().join(" "),
    };
    let wide = 6.max(labels(&view.class_mix).chars().count());
    let mut text = format!("{}{}\n\n", view.strategy, if hardened { ", hardened" } else { "" });
    let _ = writeln!(
        text,
        "client  {:>8}  {:wide$}  {:>6}  {:>7}  {:>6}  {:>6}  │ {:>6}  {:>7}",
        "n", "labels", "TVD", "quality", "size", "weight", others[0].strategy, others[1].strategy
    );
    for (k, client) in view.clients.iter().enumerate() {
        let n = client.size as f64;
        let shares: Vec<f64> = counts[k].iter().map(|&count| count as f64 / n).collect();
        let quality = client.quality_share.map_or("—".to_owned(), |share| format!("{share:.4}"));
        let _ = writeln!(
            text,
            "{:>6}  {:>8}  {:wide$}  {:.4}  {quality:>7}  {:.4}  {:.4}  │ {:.4}  {:>7.4}",
            client.client,
            client.size,
            labels(&shares),
            client.tvd,
            client.size_share,
            client.weight,
            others[0].clients[k].weight,
            others[1].clients[k].weight,
        );
    }
    let all = view.clients.len();
    let _ = writeln!(text, "\neffective clients of {all}");
    for view in std::iter::once(view).chain(others) {
        let _ = writeln!(text, "  {:<20} {:.3}", view.strategy, view.effective_clients);
    }
    let _ = writeln!(text, "class mix of the weights");
    for view in std::iter::once(view).chain(others) {
        let _ = writeln!(text, "  {:<20} {}", view.strategy, labels(&view.class_mix));
    }
    text
}

/// Shares as bars, the largest one full.
fn bars(shares: &[f64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let largest = shares.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    shares.iter().map(|share| BARS[(share / largest * 7.0).round() as usize]).collect()
}
