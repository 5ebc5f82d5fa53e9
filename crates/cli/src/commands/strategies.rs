//! `fedtvd strategies [NAME]`: the strategies with parameters, defaults, ranges and papers.

use crate::output::strategies_page;
use crate::request::{Failure, Output};
use clap::Args;
use fedtvd_core::rules::{Guide, Settings, Spec, notation};
use fedtvd_core::settings::{Param, ParamKind, Value};
use fedtvd_core::strategy::all;
use serde::Serialize;
use std::fmt::Write as _;

/// List the strategies with their parameters and papers.
#[derive(Args)]
pub(crate) struct Strategies {
    /// Show one strategy, or several joined by +, in detail
    name: Option<String>,
    /// Print the documentation page docs/strategies.md
    #[arg(long, conflicts_with_all = ["name", "json"])]
    markdown: bool,
    #[command(flatten)]
    output: Output,
}

#[derive(Serialize)]
struct SpecView {
    name: &'static str,
    about: &'static str,
    paper: &'static str,
    formula: &'static str,
    choose: &'static str,
    avoid: &'static str,
    leaves: String,
    cost: &'static str,
    params: Vec<ParamView>,
    /// The method whose weights it uses unless another name brings weights.
    suggests: Option<&'static str>,
    /// What no other name may change, with the reasons.
    keeps: Vec<KeptView>,
    needs_sgd: Option<&'static str>,
}

#[derive(Serialize)]
struct KeptView {
    rule: String,
    why: &'static str,
}

#[derive(Serialize)]
struct ParamView {
    name: &'static str,
    kind: &'static str,
    default: serde_json::Value,
    min: Option<f64>,
    /// Whether `min` itself is not allowed.
    above_min: bool,
    max: Option<f64>,
    choices: Option<Vec<&'static str>>,
    about: &'static str,
}

impl From<&'static Spec> for SpecView {
    fn from(spec: &'static Spec) -> Self {
        let params = spec.params.iter().map(ParamView::from).collect();
        let Guide { formula, choose, avoid, cost } = spec.guide;
        let Spec { name, about, paper, suggests, .. } = *spec;
        let keeps = spec.keeps.iter().map(|(rule, why)| KeptView { rule: rule.to_string(), why }).collect();
        let leaves = strategies_page::leaves(spec);
        let needs_sgd = needs_sgd(spec);
        Self { name, about, paper, formula, choose, avoid, leaves, cost, params, suggests, keeps, needs_sgd }
    }
}

impl From<&'static Param> for ParamView {
    fn from(param: &'static Param) -> Self {
        let (kind, min, max, choices) = match param.kind {
            ParamKind::Number { range, .. } => {
                ("number", Some(range.low), range.high.is_finite().then_some(range.high), None)
            }
            ParamKind::Whole { low, high, .. } => ("whole", Some(low as f64), Some(high as f64), None),
            ParamKind::Flag { .. } => ("flag", None, None, Some(vec!["false", "true"])),
            ParamKind::Choice { choices, .. } => ("choice", None, None, Some(choices.to_vec())),
            _ => ("text", None, None, None),
        };
        let above_min = matches!(param.kind, ParamKind::Number { range, .. } if range.open);
        let default = match param.default() {
            Some(Value::Number(number)) => number.into(),
            Some(Value::Whole(whole)) => whole.into(),
            Some(Value::Flag(flag)) => flag.into(),
            Some(other) => other.bare().into(),
            None => serde_json::Value::Null,
        };
        Self { name: param.name, kind, default, min, above_min, max, choices, about: param.about }
    }
}

impl Strategies {
    pub(crate) fn answer(&self) -> Result<(), Failure> {
        if self.markdown {
            return self.output.answer(&(), strategies_page::strategies);
        }
        match &self.name {
            None => {
                let views: Vec<SpecView> = all().into_iter().map(SpecView::from).collect();
                self.output.answer(&views, overview)
            }
            Some(name) => {
                let specs: Vec<&'static Spec> = name
                    .split('+')
                    .map(notation::find)
                    .collect::<Result<_, _>>()
                    .map_err(Failure::request)?;
                let views: Vec<SpecView> = specs.iter().map(|spec| SpecView::from(*spec)).collect();
                let text = || specs.iter().map(|spec| details(spec)).collect::<Vec<_>>().join("\n");
                self.output.answer(&views, text)
            }
        }
    }
}

fn overview() -> String {
    let all = all();
    let width = all.iter().map(|spec| spec.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for spec in all {
        let _ = writeln!(text, "{:width$}  {}", spec.name, spec.about);
        for param in spec.params {
            let _ = writeln!(text, "{:width$}    {} = {}", "", param.name, default(param));
        }
    }
    text += "\nStrategies can be combined: fedtvd+balanced, fedprox+fedtvd:temperature=0.1+fedadam.\n";
    text += "Ranges and papers: fedtvd strategies NAME\n";
    text
}

fn details(spec: &Spec) -> String {
    let mut text = format!("{}: {}\n{}\n", spec.name, spec.about, spec.paper);
    let Guide { formula, choose, avoid, cost } = spec.guide;
    let _ = writeln!(text, "\n  {}\n", formula.replace('\n', "\n  "));
    let leaves = strategies_page::leaves(spec);
    let guide =
        format!("Choose it {choose}.\nAvoid it {avoid}.\nWhat leaves a client: {leaves}.\nCost: {cost}.\n");
    text += &guide.replace('`', "");
    for param in spec.params {
        let _ = writeln!(text, "\n  {} = {}   ({})", param.name, default(param), param.kind);
        let _ = writeln!(text, "      {}", param.about);
    }
    if let Some(other) = spec.suggests {
        let _ = writeln!(text, "\nUses the weights of {other} unless it is combined with another weighting.");
    }
    for (part, why) in spec.keeps {
        let _ = writeln!(text, "\nCannot be combined with a strategy that changes {part}: {why}.");
    }
    if let Some(why) = needs_sgd(spec) {
        let _ = writeln!(text, "\nClients must train with SGD (local.optimizer): {why}.");
    }
    text
}

/// Why clients of a strategy must train with SGD, if they must.
pub(crate) fn needs_sgd(spec: &Spec) -> Option<&'static str> {
    (spec.build)(&Settings::defaults(spec)).needs_sgd()
}

/// A parameter's default, as text.
pub(crate) fn default(param: &Param) -> String {
    match param.default() {
        Some(Value::Number(number)) if number != 0.0 && number.abs() < 1e-3 => format!("{number:e}"),
        default => default.map_or_else(String::new, |value| value.bare()),
    }
}
