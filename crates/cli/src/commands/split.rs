//! `fedtvd split [CONFIG]`: shows a split and writes its files.

use crate::ignored::{self, Purpose};
use crate::output::plot;
use crate::request::{Configured, Failure, Output, eprint_line};
use anyhow::Context;
use clap::Args;
use fedtvd_data::export::{export, vacant};
use fedtvd_data::set::Loaded;
use fedtvd_data::split::{Dealt, Deck, PartitionFile, SplitKind, Terms};
use fedtvd_data::statistics::Statistics;
use fedtvd_lab::figures::{split_chart, split_text};
use fedtvd_run::configuration::Experiment;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Show how a data set is split over clients, and save or export the split.
#[derive(Args)]
pub(crate) struct Split {
    #[command(flatten)]
    configured: Configured,
    /// Folder for partition.json [default: runs/split-HASH]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write a chart to an .svg or .png file; can be repeated
    #[arg(long, value_name = "FILE")]
    plot: Vec<PathBuf>,
    /// Write the data of each client to its own subfolder of DIR, for use with fedtvd join
    #[arg(long, value_name = "DIR")]
    export: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
}

#[derive(Serialize)]
struct View<'a> {
    set: &'a str,
    kind: &'a str,
    seed: u64,
    rows: usize,
    classes: usize,
    #[serde(flatten)]
    statistics: &'a Statistics,
    asked_rank_correlation: Option<f64>,
    names: Option<&'a [String]>,
    partition: &'a Path,
    plots: &'a [PathBuf],
    export: Option<&'a Path>,
    notes: &'a [String],
}

impl Split {
    pub(crate) fn answer(&self) -> Result<(), Failure> {
        for plot in &self.plot {
            plot::check(plot)?;
        }
        if let Some(folder) = &self.export {
            vacant(folder).map_err(Failure::request)?;
        }
        let (config, file) = self.configured.read_with_text()?;
        let experiment = Experiment::of(&config).map_err(Failure::request)?;
        let given = (&self.configured, file.as_str());
        let ignored = ignored::checked(given, "split", std::slice::from_ref(&config), Purpose::Split)?;
        if !self.output.quiet && !self.output.json {
            ignored.iter().for_each(|note| eprint_line(format_args!("note: {note}")));
        }
        let data = experiment.data.load(&self.configured.places()).map_err(Failure::request)?;
        let deck = Deck::new(&data.samples, data.groups.as_ref());
        let Experiment { split_seed: seed, holdout, .. } = experiment;
        let reference = experiment.reference.resolve(deck.classes).map_err(Failure::request)?;
        let terms = Terms { set: &experiment.data.set, seed, holdout, reference: reference.as_ref() };
        let dealt = experiment.split.deal(&deck, &terms).map_err(Failure::request)?;
        let statistics = dealt.statistics(&deck, &terms);
        let shifted = dealt.shifted(&experiment.data.set, &data.samples).map_err(Failure::request)?;
        let Dealt { partition, clients, names, notes, .. } = dealt;
        let notes = [data.notes.as_slice(), &notes].concat();
        let file = PartitionFile::new(&experiment.data.set, &deck, &partition, names.clone());
        let saved = self.save(&file, &statistics.hash).map_err(Failure::Work)?;
        let scene = split_chart(&title(&experiment), &statistics, &data.class_names);
        self.plot.iter().try_for_each(|path| plot::write(path, &scene))?;
        if let Some(folder) = &self.export {
            let samples = shifted.map_or_else(|| Arc::clone(&data.samples), Arc::new);
            let data = Loaded { samples, ..data.clone() };
            export(&experiment.data.set, &data, &clients, folder).map_err(Failure::work)?;
            file.write(&folder.join("partition.json")).map_err(Failure::work)?;
        }
        let view = View {
            set: &experiment.data.set,
            kind: experiment.split.kind.word(),
            seed: experiment.split_seed,
            rows: deck.labels.len(),
            classes: deck.classes,
            statistics: &statistics,
            asked_rank_correlation: experiment.split.asked_correlation(),
            names: names.as_deref(),
            partition: &saved,
            plots: &self.plot,
            export: self.export.as_deref(),
            notes: &notes,
        };
        self.output.answer(&view, || text(&view))
    }

    fn save(&self, file: &PartitionFile, hash: &str) -> anyhow::Result<PathBuf> {
        let own = || PathBuf::from("runs").join(format!("split-{}", &hash[..8]));
        let folder = self.out.clone().unwrap_or_else(own);
        std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        let path = folder.join("partition.json");
        file.write(&path)?;
        Ok(path)
    }
}

fn title(experiment: &Experiment) -> String {
    let split = &experiment.split;
    let set = &experiment.data.set;
    match split.kind {
        SplitKind::Dirichlet if split.self_balancing => {
            format!("{set} · Dirichlet alpha {}, self-balancing", split.alpha)
        }
        SplitKind::Dirichlet => format!("{set} · Dirichlet alpha {}", split.alpha),
        SplitKind::Hsu => format!("{set} · Dirichlet alpha {} (Hsu et al.)", split.alpha),
        SplitKind::Shards => format!("{set} · {} shards per client", split.shards),
        SplitKind::Labels => format!("{set} · {} labels per client", split.labels),
        SplitKind::Quantity => format!("{set} · quantity skew, beta {}", split.beta),
        SplitKind::Correlated => format!("{set} · rank correlation of size and TVD {}", split.correlation),
        SplitKind::Iid => format!("{set} · IID"),
        SplitKind::Natural => format!("{set} · natural split"),
        SplitKind::File => format!("{set} · split from a file"),
    }
}

fn text(view: &View) -> String {
    let View { statistics, .. } = view;
    let mut text = split_text(statistics);
    if let Some(names) = view.names {
        let some = names.iter().take(8).enumerate().map(|(client, name)| format!("{client} {name}"));
        let more = if names.len() > 8 { " · …" } else { "" };
        let _ = writeln!(text, "{}{more}", some.collect::<Vec<_>>().join(" · "));
    }
    let sizes: Vec<usize> = statistics.clients.iter().map(|client| client.size).collect();
    let shown = |r: Option<f64>| r.map_or("-".to_owned(), |r| format!("{r:+.3}"));
    let _ = writeln!(
        text,
        "\n{} · {} · seed {} · {} clients · {} rows · {} classes\n\
         mean TVD             {:.4}\n\
         samples per client   {} to {}, coefficient of variation {:.4}\n\
         size and TVD         correlation {}, rank correlation {}\n\
         effective classes    {:.2} of {}\n\
         hash                 {}\n\
         saved to             {}",
        view.set,
        view.kind,
        view.seed,
        sizes.len(),
        view.rows,
        view.classes,
        statistics.mean_tvd,
        sizes.iter().min().unwrap_or(&0),
        sizes.iter().max().unwrap_or(&0),
        statistics.size_cv,
        shown(statistics.size_tvd_correlation),
        shown(statistics.size_tvd_rank_correlation),
        statistics.effective_classes,
        view.classes,
        statistics.hash,
        view.partition.display(),
    );
    for plot in view.plots {
        let _ = writeln!(text, "plot                 {}", plot.display());
    }
    if let Some(folder) = view.export {
        let _ = writeln!(text, "data of clients      {}", folder.display());
    }
    for note in view.notes {
        let _ = writeln!(text, "note                 {note}");
    }
    text
}
