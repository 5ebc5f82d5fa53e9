//! Any two registered names make a strategy, or an error that names both.

use crate::federation::{SKEWED, local, run, skewed};
use fedtvd_core::rules::{NotationError, Rule, Settings, Spec, Strategy, notation};
use fedtvd_core::strategy::ALL;

fn parts(spec: &Spec) -> Vec<Rule> {
    (spec.build)(&Settings::defaults(spec)).rules()
}

/// The rules of a strategy, without its label.
fn rules(strategy: &Strategy) -> String {
    let Strategy { weighting, loss, local, combine, server, .. } = strategy;
    format!("{weighting:?} {loss:?} {local:?} {combine:?} {server:?}")
}

fn keeps_from(owner: &Spec, other: &Spec) -> bool {
    owner.keeps.is_some_and(|(part, _)| parts(other).contains(&part))
}

#[test]
fn two_names_combine_exactly_when_no_rule_is_defined_twice_or_reserved() {
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
fn fedavg_adds_nothing_unless_its_server_lr_is_set() {
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
fn each_name_contributes_its_rules_to_a_composition() {
    let named = |strategy: &Strategy, part: Rule| match part {
        Rule::Weighting => format!("{:?}", strategy.weighting),
        Rule::Loss => format!("{:?}", strategy.loss),
        Rule::Local => format!("{:?}", strategy.local),
        Rule::Combine => format!("{:?}", strategy.combine),
        Rule::Server => format!("{:?}", strategy.server),
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
fn every_composition_of_three_trains_all_clients_and_lowers_their_loss_in_two_rounds() {
    let mut trained = 0;
    for (i, first) in ALL.iter().enumerate() {
        for (j, second) in ALL.iter().enumerate().skip(i + 1) {
            for third in &ALL[j + 1..] {
                let label = format!("{}+{}+{}", first.name, second.name, third.name);
                if notation::strategy(&label, []).is_err() {
                    continue;
                }
                let mut federation = skewed(run(&label, local(1, 4, 0.05, 0.9)), &SKEWED);
                let mut losses = Vec::new();
                for _ in 0..2 {
                    let before = federation.model().to_vec();
                    let record = federation.round();
                    assert_ne!(federation.model(), before, "{label}: the model stayed unchanged");
                    let weights = record.clients.iter().map(|client| client.weight.unwrap());
                    // Rounding of five weights.
                    assert!((weights.sum::<f64>() - 1.0).abs() < 1e-14, "{label}");
                    let weighted = record.clients.iter().map(|c| c.weight.unwrap() * c.first_loss.unwrap());
                    losses.push(weighted.sum::<f64>());
                }
                // The second round starts from the model that the first one trained.
                assert!(losses[1] < losses[0], "{label}: {losses:?}");
                trained += 1;
            }
        }
    }
    assert!(trained > 20, "only {trained} compositions exist");
}
