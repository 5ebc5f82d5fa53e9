//! A setting in one line, as people say it.

use crate::setting::{Setting, shown};
use fedtvd_core::round::cohort_size;
use fedtvd_run::value::Value;

/// Data, clients, split, model, seeds and rounds.
pub fn heading(setting: &Setting) -> String {
    let text = |path: &str| setting.value(path).map(shown).unwrap_or_default();
    let number = |path: &str| match setting.value(path) {
        Some(Value::Number(number)) => Some(*number),
        Some(Value::Whole(whole)) => Some(*whole as f64),
        _ => None,
    };
    let kind = text("split.kind");
    let clients = match (number("split.clients"), number("cohort.fraction")) {
        // Others have the clients that their data or file has.
        (Some(clients), Some(fraction)) if kind != "natural" && kind != "file" => {
            let cohort = cohort_size(fraction, clients as usize);
            format!("{clients} clients, {cohort} per round")
        }
        (_, Some(fraction)) => {
            // 0.57 is 56.99999999999999 %.
            let share = (1e4 * fraction).round() / 100.0;
            format!("{share} % of the clients per round")
        }
        _ => String::new(),
    };
    let split = setting.value("split.alpha").map_or(kind.clone(), |alpha| format!("{kind} {}", shown(alpha)));
    let model = match setting.value("model.layers") {
        Some(Value::List(lines)) if !lines.is_empty() => "a model of its own".to_owned(),
        _ => text("model.name"),
    };
    let records = || setting.strategies.iter().flat_map(|strategy| &strategy.records);
    let hardened = if records().all(|record| record.mode() != "paper") { " · hardened" } else { "" };
    let seeds = seeds(setting);
    format!(
        "{} · {clients} · {split} · {model}{hardened} · {seeds} × {} rounds",
        text("data.set"),
        text("rounds")
    )
}

/// How many seeds the strategies have.
fn seeds(setting: &Setting) -> String {
    let all = setting.seeds().len();
    let counts = || setting.strategies.iter().map(|strategy| strategy.records.len());
    match (counts().min().unwrap_or(0), counts().max().unwrap_or(0)) {
        (1, 1) if all == 1 => "1 seed".to_owned(),
        (least, _) if least == all => format!("{all} seeds"),
        (least, most) if least == most => format!("{least} of {all} seeds"),
        (least, most) => format!("{least} to {most} of {all} seeds"),
    }
}

/// What the clients are like, from all that ever counted.
pub fn population(setting: &Setting) -> Option<String> {
    let records = setting.strategies.first()?.records.iter();
    let clients: Vec<_> = records.flat_map(|record| record.counted.values()).collect();
    let (least, most) = (clients.iter().map(|c| c.size).min()?, clients.iter().map(|c| c.size).max()?);
    let distances: Vec<f64> = clients.iter().filter_map(|client| client.tvd).collect();
    let distance = match distances.as_slice() {
        [] => String::new(),
        known => format!("mean TVD {:.2}, ", crate::statistics::mean(known)),
    };
    let same = if setting.paired { "same split, same start, same cohorts for all · " } else { "" };
    Some(format!("{same}clients that counted: {distance}sizes {least}–{most}"))
}
