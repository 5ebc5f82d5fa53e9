//! Golden robust combinations: models and entered weights as NumPy computes them on whole vectors.

use crate::federation::strategy;
use crate::robust::Round;
use crate::vectors::{converged, counts, numbers, read, rows, same_f32};
use serde_json::Value;

fn golden() -> Value {
    read(include_str!("../golden/robust.json"))
}

fn narrowed(values: &Value) -> Vec<f32> {
    numbers(values).into_iter().map(|x| x as f32).collect()
}

fn models(values: &Value) -> Vec<Vec<f32>> {
    rows(values).into_iter().map(|model| model.into_iter().map(|x| x as f32).collect()).collect()
}

#[test]
fn robust_rules_combine_the_golden_models_and_record_the_weights_that_entered() {
    for case in golden()["cases"].as_array().unwrap() {
        let (base, sizes) = (narrowed(&case["base"]), counts(&case["sizes"]));
        for result in case["results"].as_array().unwrap() {
            let rule = result["label"].as_str().unwrap();
            // Krum leaves out nobody of fewer than five clients, and refuses a round of theirs unless it is to leave out nobody.
            let refused = sizes.len() < strategy(rule).combine.least_clients();
            let rule = if refused { &rule.replace("byzantine=0.15", "byzantine=0") } else { rule };
            let label = match result["weights"].as_str().unwrap() {
                "size" => format!("fedtvd:lambda=0+{rule}"),
                _ => rule.to_owned(),
            };
            let what = format!("{}, {label}", case["name"]);
            let mut round = Round::new(&label, &base, &sizes);
            let entered = round.close(&models(&case["models"]));
            // Six digits of the weights, since Weiszfeld's iterations end at a gradient of 1e-9.
            converged(&entered, &result["entered"], &what);
            same_f32(round.model(), &result["model"], &what);
        }
    }
}

#[test]
fn centred_clipping_starts_its_second_round_from_the_change_of_the_first() {
    let golden = &golden()["two_rounds"];
    let base = narrowed(&golden["base"]);
    let mut round = Round::new(golden["label"].as_str().unwrap(), &base, &[10; 5]);
    for (number, expected) in golden["rounds"].as_array().unwrap().iter().enumerate() {
        let entered = round.close(&models(&expected["models"]));
        converged(&entered, &expected["entered"], &format!("round {number}"));
        same_f32(round.model(), &expected["model"], &format!("round {number}"));
    }
}
