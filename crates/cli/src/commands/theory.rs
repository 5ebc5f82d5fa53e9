//! `fedtvd reproduce theory`: the paper's convergence bound and its claim about gradient dissimilarity, measured on a
//! convex problem.

use crate::request::{Failure, Output, quoted};
use anyhow::Context;
use fedtvd_data::set::Places;
use fedtvd_lab::experiments::theory::experiment::{Finding, Protocol, finding};
use fedtvd_lab::experiments::theory::reduction::Reduction;
use fedtvd_run::configuration::{Config, Experiment};
use fedtvd_run::setup::{Data, Setup};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::Path;

/// The results of one split.
#[derive(Serialize)]
struct Row {
    alpha: f64,
    seed: u64,
    #[serde(flatten)]
    finding: Finding,
}

#[derive(Serialize)]
struct View<'a> {
    experiment: &'static str,
    protocol: Protocol,
    splits: &'a [Row],
    directory: &'a Path,
}

/// The levels of skew.
const ALPHAS: [f64; 3] = [0.1, 0.5, 1.0];

/// Measures every skew and seed, writes the tables and prints the result.
pub(crate) fn answer(
    config: &Config,
    seeds: &[u64],
    rounds: Option<u64>,
    places: &Places,
    out: &Path,
    output: Output,
) -> Result<(), Failure> {
    let rounds = rounds.map_or(Protocol::USUAL.rounds, |rounds| rounds.try_into().unwrap_or(u32::MAX));
    let protocol = Protocol { rounds, ..Protocol::USUAL };
    let data = Data::load(&Experiment::of(config).map_err(Failure::request)?.data, places)
        .map_err(Failure::request)?;
    let mut rows = Vec::new();
    for alpha in ALPHAS {
        for &seed in seeds {
            let mut config = config.with_seed(seed);
            config.set(&format!("split.alpha={alpha}")).map_err(Failure::request)?;
            let experiment = Experiment::of(&config).map_err(Failure::request)?;
            let setup = Setup::new(&experiment, &data).map_err(Failure::request)?;
            let finding = finding(&setup, &protocol, seed).map_err(Failure::request)?;
            if !output.quiet && !output.json {
                eprintln!("alpha {alpha}, seed {seed}: done");
            }
            rows.push(Row { alpha, seed, finding });
        }
    }
    let head = heading(config, seeds, &protocol);
    std::fs::create_dir_all(out)
        .with_context(|| format!("making {}", out.display()))
        .map_err(Failure::Work)?;
    for (name, text) in [
        ("theory.md", text(&head, &rows)),
        ("theory-gaps.csv", gaps(&rows)),
        ("theory-delta.csv", deltas(&rows)),
    ] {
        let path = out.join(name);
        std::fs::write(&path, text)
            .with_context(|| format!("writing {}", path.display()))
            .map_err(Failure::Work)?;
    }
    let view = View { experiment: "theory", protocol, splits: &rows, directory: out };
    output.answer(&view, || {
        format!("{}\nTable:  {}/theory.md\n", text(&head, &rows), quoted(&out.display().to_string()))
    })
}

/// The mean of a value over the rows of one skew.
fn mean(rows: &[Row], alpha: f64, value: impl Fn(&Finding) -> f64) -> f64 {
    let own: Vec<f64> = rows.iter().filter(|row| row.alpha == alpha).map(|row| value(&row.finding)).collect();
    own.iter().sum::<f64>() / own.len().max(1) as f64
}

/// What was measured.
fn heading(config: &Config, seeds: &[u64], protocol: &Protocol) -> String {
    let Protocol { rounds, steps, lr, ridge, cohort, cohorts } = protocol;
    let seeds: Vec<String> = seeds.iter().map(ToString::to_string).collect();
    format!(
        "Data {}, {} clients, {}. Softmax regression with ridge penalty {ridge}; in each of {rounds} rounds, all clients \
         take {steps} full gradient steps with learning rate {lr}. Cohorts: {cohorts} random cohorts of {cohort} clients \
         in each measured round, if there are more clients than that.",
        config.get("data.set"),
        config.get("split.clients"),
        match seeds.as_slice() {
            [seed] => format!("seed {seed}"),
            several => format!("seeds {}", several.join(", ")),
        }
    )
}

fn text(head: &str, rows: &[Row]) -> String {
    let mut text = format!(
        "{head}

F is the objective with clients weighted by size, F_s with the strategy's weights; w* and w_s* are their minimisers.
delta^2 is the gradient dissimilarity as the paper defines it: with weights 1/K (K clients) for FedAvg, with its own
weights for FedTVD. C = (F(w) - F(w*)) / (1/T + delta^2) is the smallest constant for which the paper's bound holds
after T rounds. Means over seeds.

| alpha | strategy | round | F(w) - F(w*) | F_s(w) - F_s(w_s*) | delta^2 | C |
|---|---|---|---|---|---|---|
"
    );
    let looks: Vec<(String, u32)> = rows.first().map_or(Vec::new(), |row| {
        row.finding.gaps.iter().map(|gap| (gap.strategy.clone(), gap.round)).collect()
    });
    for alpha in ALPHAS {
        for (place, (strategy, round)) in looks.iter().enumerate() {
            let whole = mean(rows, alpha, |finding| finding.gaps[place].whole);
            let own = mean(rows, alpha, |finding| finding.gaps[place].own);
            let delta = mean(rows, alpha, |finding| finding.gaps[place].delta);
            let constant = mean(rows, alpha, |finding| finding.gaps[place].constant());
            let _ = writeln!(
                text,
                "| {alpha} | {strategy} | {round} | {whole:.3e} | {own:.3e} | {delta:.3e} | {constant:.3e} |"
            );
        }
    }
    text += "\nBias of FedTVD: the gap F(w_s*) - F(w*) at the minimum of its objective:\n\n| alpha | bias |\n|---|---|\n";
    for alpha in ALPHAS {
        let _ = writeln!(text, "| {alpha} | {:.3e} |", mean(rows, alpha, |finding| finding.bias));
    }
    text += "\nHow often FedTVD's weights do not increase delta^2, and the mean ratio of delta^2: compared with 1/K (the paper's \
             definition for FedAvg) and with n_k/n (FedAvg's weights):\n\n| alpha | clients | comparisons | vs 1/K | ratio | vs n_k/n | ratio |\n\
             |---|---|---|---|---|---|---|\n";
    for alpha in ALPHAS {
        for place in 0..rows.first().map_or(0, |row| row.finding.reductions.len()) {
            let of = rows.first().map_or("", |row| row.finding.reductions[place].of);
            let times: usize = rows
                .iter()
                .filter(|row| row.alpha == alpha)
                .map(|row| row.finding.reductions[place].count)
                .sum();
            let share =
                |value: fn(&Reduction) -> f64| mean(rows, alpha, |finding| value(&finding.reductions[place]));
            let _ = writeln!(
                text,
                "| {alpha} | {of} | {times} | {:.0} % | {:.3} | {:.0} % | {:.3} |",
                100.0 * share(|r| r.below_even),
                share(|r| r.ratio_even),
                100.0 * share(|r| r.below_size),
                share(|r| r.ratio_size),
            );
        }
    }
    text
}

fn gaps(rows: &[Row]) -> String {
    let mut text = "alpha,seed,strategy,round,gap_whole,gap_own,delta,constant,bias\n".to_owned();
    for Row { alpha, seed, finding } in rows {
        for gap in &finding.gaps {
            let (strategy, round, bias) = (&gap.strategy, gap.round, finding.bias);
            let _ = writeln!(
                text,
                "{alpha},{seed},{strategy},{round},{:.6e},{:.6e},{:.6e},{:.6e},{bias:.6e}",
                gap.whole,
                gap.own,
                gap.delta,
                gap.constant()
            );
        }
    }
    text
}

fn deltas(rows: &[Row]) -> String {
    let mut text = "alpha,seed,of,times,below_even,ratio_even,below_size,ratio_size\n".to_owned();
    for Row { alpha, seed, finding } in rows {
        for r in &finding.reductions {
            let _ = writeln!(
                text,
                "{alpha},{seed},{},{},{:.4},{:.4},{:.4},{:.4}",
                r.of, r.count, r.below_even, r.ratio_even, r.below_size, r.ratio_size
            );
        }
    }
    text
}
