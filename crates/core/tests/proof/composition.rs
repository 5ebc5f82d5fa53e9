//! Any two registered names make a strategy, or an error that names both.

use crate::federation::{SKEWED, local, models, run, skewed, strategy, sums};
use crate::in_memory::InMemory;
use fedtvd_core::round::{close, plan};
use fedtvd_core::rules::{NotationError, Rule, Settings, Spec, Strategy, notation};
use fedtvd_core::strategy::ALL;

fn parts(spec: &Spec) -> Vec<Rule> {
    (spec.build)(&Settings::defaults(spec)).rules()
}

/// The rules of a strategy, without its label.
fn rules(strategy: &Strategy) -> String {
    let Strategy { weighting, loss, local, combine, server, selection, .. } = strategy;
    format!("{weighting:?} {loss:?} {local:?} {combine:?} {server:?} {selection:?}")
}

fn keeps_from(owner: &Spec, other: &Spec) -> bool {
    owner.keeps.iter().any(|(part, _)| parts(other).contains(part))
}

#[test]
fn two_names_make_a_strategy_exactly_when_no_part_is_brought_twice_or_kept() {
    for first in ALL {
        for second in ALL {
            let label = format!("{}+{}", first.name, second.name);
            let made = notation::strategy(&label, []);
            if first.name == second.name {
                assert_eq!(made.unwrap_err(), NotationError::Twice(first.name));
                continue;
            }
            let shared = parts(first).iter().any(|part| parts(second).contains(part));
            let kept = keeps_from(first, second) || keeps_from(second, first);
            assert_eq!(made.is_err(), shared || kept, "{label}");
            if let Err(error) = made {
                let message = error.to_string();
                assert!(message.contains(first.name) && message.contains(second.name), "{message}");
            }
        }
    }
}

#[test]
fn the_order_of_names_does_not_matter() {
    for first in ALL {
        for second in ALL {
            let one = notation::strategy(&format!("{}+{}", first.name, second.name), []);
            let other = notation::strategy(&format!("{}+{}", second.name, first.name), []);
            assert_eq!(one.as_ref().ok().map(rules), other.as_ref().ok().map(rules));
        }
    }
}

#[test]
fn fedavg_adds_nothing_unless_its_server_rate_is_set() {
    for spec in ALL.iter().filter(|spec| spec.name != "fedavg") {
        let alone = notation::strategy(spec.name, []).unwrap();
        let both = notation::strategy(&format!("{}+fedavg", spec.name), []).unwrap();
        assert_eq!(rules(&both), rules(&alone));
        let stepped = notation::strategy(&format!("fedavg:server_lr=0.5+{}", spec.name), []);
        let brings_step = parts(spec).contains(&Rule::Server);
        assert_eq!(stepped.is_err(), brings_step, "{}", spec.name);
        assert!(stepped.is_err() || rules(&stepped.unwrap()) != rules(&alone));
    }
}

#[test]
fn each_name_brings_its_parts_into_a_composition() {
    let named = |strategy: &Strategy, part: Rule| match part {
        Rule::Weighting => format!("{:?}", strategy.weighting),
        Rule::Loss => format!("{:?}", strategy.loss),
        Rule::Local => format!("{:?}", strategy.local),
        Rule::Combine => format!("{:?}", strategy.combine),
        Rule::Server => format!("{:?}", strategy.server),
        Rule::Selection => format!("{:?}", strategy.selection),
        Rule::Sharing => format!("{:?}", strategy.sharing),
        Rule::Personal => format!("{:?}", strategy.personal.as_ref().expect("the name brings it")),
        Rule::Grouping => format!("{:?}", strategy.grouping.as_ref().expect("the name brings it")),
        Rule::Matching => format!("{:?}", strategy.matching),
    };
    for first in ALL {
        let alone = notation::strategy(first.name, []).unwrap();
        for second in ALL {
            let Ok(both) = notation::strategy(&format!("{}+{}", second.name, first.name), []) else {
                continue;
            };
            for part in parts(first) {
                assert_eq!(named(&both, part), named(&alone, part), "{}+{}", second.name, first.name);
            }
        }
    }
}

#[test]
fn every_composition_of_three_trains_all_clients_for_two_rounds_and_moves_towards_what_they_learned() {
    let mut trained = 0;
    for (i, first) in ALL.iter().enumerate() {
        for (j, second) in ALL.iter().enumerate().skip(i + 1) {
            for third in &ALL[j + 1..] {
                let names = [*first, *second, *third];
                if notation::strategy(&label(&names), []).is_ok() {
                    two_rounds(&names);
                    trained += 1;
                }
            }
        }
    }
    assert!(trained > 20, "only {trained} compositions exist");
}

fn label(names: &[&Spec]) -> String {
    names.iter().map(|spec| spec.name).collect::<Vec<_>>().join("+")
}

fn two_rounds(names: &[&Spec]) {
    let label = label(names);
    let order = run(&label, local(1, 4, 0.05, 0.9));
    // The same strategy with a server that adopts what its clients' models combine to.
    let mut adopting = order.clone();
    adopting.strategy.server = strategy("fedavg").server;
    // A robust combination may need more clients than choose the same model.
    if order.strategy.models() > 1 && order.strategy.combine.least_clients() > 1 {
        return;
    }
    let mut federation = skewed(order, &SKEWED);
    let adopts = !names.iter().any(|spec| parts(spec).contains(&Rule::Server));
    let mut losses = Vec::new();
    for _ in 0..2 {
        let before = federation.state.clone();
        let jobs = plan(&federation.run, &before);
        let answers = federation.answers(&jobs);
        let updates = InMemory::new(&adopting, &before, &jobs, answers.clone());
        let (adopted, _) = close(&adopting, &before, &jobs, &updates).unwrap();
        let record = federation.close(&jobs, answers);
        let (after, was, adopted) = (models(&federation.state), models(&before), models(&adopted));
        assert_ne!(after, was, "{label}: the model stayed where it was");
        let models = after.iter().zip(&was).zip(&adopted);
        // Later a server optimiser also follows the momentum of earlier rounds.
        for ((next, before), adopted) in models.filter(|_| before.round == 0) {
            assert!((next - before) * (adopted - before) >= 0.0, "{label}: away from the clients' models");
        }
        if adopts {
            assert_eq!(after, adopted, "{label}");
        }
        // Five roundings.
        assert!(sums(&record, |client| client.weight).iter().all(|sum| (sum - 1.0).abs() < 1e-14), "{label}");
        let weighted = record.clients.iter().map(|c| c.weight.unwrap() * c.first_loss.unwrap());
        losses.push(weighted.sum::<f64>());
    }
    // The second round starts from what the first one learned; a server optimiser's step may be too long for that.
    assert!(losses[1] < losses[0] || !adopts, "{label}: {losses:?}");
}
