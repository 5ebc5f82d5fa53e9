//! A setting described in one line.

use crate::runs::record::Record;
use crate::runs::setting::{Setting, shown};
use fedtvd_core::round::cohort_size;
use fedtvd_core::rules::{Rule, Settings, notation};
use fedtvd_run::attack::Attack;
use fedtvd_run::configuration::{Config, Liars, Value};

/// Data set, clients, split, model, seeds and rounds of a setting.
pub fn heading(setting: &Setting) -> String {
    let kind = setting.value("split.kind").map(shown).unwrap_or_default();
    let clients = match setting.value("split.clients") {
        // The other kinds take the number of clients from the data or the file.
        Some(Value::Whole(clients)) if kind != "natural" && kind != "file" => Some(*clients as usize),
        _ => None,
    };
    let records = || setting.strategies.iter().flat_map(|strategy| &strategy.records);
    let hardened = records().all(|record| record.mode() != "paper");
    let federated = records().all(Record::is_federation);
    let value =
        |path: &'static str| setting.value(path).filter(|_| !(federated && path == "split.kind")).cloned();
    let clients = match federated {
        true => records().map(|record| record.client_updates.len()).max(),
        false => clients,
    };
    describe(&value, clients, hardened, &seeds(setting))
}

/// The same for a configuration that has not run yet.
pub fn heading_of_config(config: &Config, clients: usize, seeds: usize) -> String {
    let hardened = shown(&config.get("strategy.mode")) != "paper";
    describe(&|path| Some(config.get(path)), Some(clients), hardened, &seed_count(seeds))
}

fn describe(
    value: &dyn Fn(&'static str) -> Option<Value>,
    clients: Option<usize>,
    hardened: bool,
    seeds: &str,
) -> String {
    let text = |path: &'static str| value(path).as_ref().map(shown).unwrap_or_default();
    let fraction = match value("cohort.fraction") {
        Some(Value::Number(fraction)) => fraction,
        _ => 1.0,
    };
    let clients = match clients {
        Some(clients) => format!("{clients} clients, {} per round", cohort_size(fraction, clients)),
        // 0.57 is 56.99999999999999 %.
        None => format!("{} % of the clients per round", (1e4 * fraction).round() / 100.0),
    };
    let kind = text("split.kind");
    let split = match kind.as_str() {
        "dirichlet" => format!("Dirichlet alpha {}", text("split.alpha")),
        "hsu" | "correlated" => format!("{kind} alpha {}", text("split.alpha")),
        "quantity" => format!("{kind} beta {}", text("split.beta")),
        "shards" => format!("{} shards per client", text("split.shards")),
        "labels" => format!("{} labels per client", text("split.labels")),
        "iid" => "IID".to_owned(),
        "" => "a federation".to_owned(),
        _ => kind,
    };
    let model = match value("model.layers") {
        // The layers of a table's own model are written out beside the name mlp.
        Some(Value::List(lines)) if !lines.is_empty() && text("model.name") != "mlp" => {
            "custom model".to_owned()
        }
        _ => text("model.name"),
    };
    let hardened = if hardened { " · hardened" } else { "" };
    let liars = liars(value).map_or(String::new(), |liars| format!(" · {liars}"));
    let (set, rounds) = (text("data.set"), text("rounds"));
    let set = if set.is_empty() { "data of the sites".to_owned() } else { set };
    format!("{set} · {clients} · {split} · {model}{hardened}{liars} · {seeds} × {rounds} rounds")
}

/// The clients that lie, if any do.
fn liars(value: &dyn Fn(&'static str) -> Option<Value>) -> Option<Liars> {
    let number = |path| value(path).and_then(|value| value.number()).unwrap_or_default();
    let kind = shown(&value("attack.kind")?);
    let attack = Attack::named(&kind, number("attack.scale"), number("attack.size") as u64)?;
    let per_round = Some(number("cohort.liars") as usize).filter(|per_round| *per_round > 0);
    Some(Liars { attack, clients: number("attack.clients") as usize, per_round })
}

/// The number of seeds of the strategies.
fn seeds(setting: &Setting) -> String {
    let all = setting.seeds().len();
    let counts = || setting.strategies.iter().map(|strategy| strategy.records.len());
    match (counts().min().unwrap_or(0), counts().max().unwrap_or(0)) {
        (least, _) if least == all => seed_count(all),
        (least, most) if least == most => format!("{least} of {all} seeds"),
        (least, most) => format!("{least} to {most} of {all} seeds"),
    }
}

/// `1 seed`, `5 seeds`.
pub(crate) fn seed_count(seeds: usize) -> String {
    if seeds == 1 { "1 seed".to_owned() } else { format!("{seeds} seeds") }
}

/// `last round`, `mean of the last 10 rounds`, `mean of the last 3 evaluated rounds`; the model is evaluated after every n-th round.
pub fn last_rounds(count: usize, every: u32) -> String {
    let evaluated = if every > 1 { "evaluated " } else { "" };
    if count == 1 { "last round".to_owned() } else { format!("mean of the last {count} {evaluated}rounds") }
}

/// `5–20 samples`, `20 samples`.
pub fn samples(least: u64, most: u64) -> String {
    if least == most { format!("{most} samples") } else { format!("{least}–{most} samples") }
}

/// Sizes and label skew of all clients that took part in a run.
pub fn population(setting: &Setting) -> Option<String> {
    let records = setting.strategies.first()?.records.iter();
    let clients: Vec<_> = records.flat_map(|record| record.participants.values()).collect();
    let (least, most) = (clients.iter().map(|c| c.size).min()?, clients.iter().map(|c| c.size).max()?);
    let distances: Vec<f64> = clients.iter().filter_map(|client| client.tvd).collect();
    let distance = match distances.as_slice() {
        [] => String::new(),
        known => format!(
            ", mean total variation distance (TVD) of labels {:.2}",
            crate::stats::statistics::mean(known)
        ),
    };
    let federated =
        setting.strategies.iter().flat_map(|strategy| &strategy.records).any(Record::is_federation);
    let same = match setting.paired && !federated {
        true if setting.strategies.iter().any(|strategy| selects(&strategy.label)) => {
            "same split and initial model for all, and the same cohorts for those that do not select them · "
        }
        true => "same split, initial model and cohorts for all · ",
        false => "",
    };
    Some(format!("{same}{} per client{distance}", samples(least, most)))
}

/// Whether one of the methods of a label selects the clients of a round.
fn selects(label: &str) -> bool {
    let methods = label.split(" (").next().unwrap_or(label).split('+');
    let names = methods.map(|method| method.split(':').next().unwrap_or(method));
    names.filter_map(|name| notation::find(name).ok()).any(|spec| {
        let recipe = (spec.build)(&Settings::defaults(spec));
        recipe.rules().contains(&Rule::Selection)
    })
}
