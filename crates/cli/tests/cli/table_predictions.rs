//! The file that `predict` writes for a table.

use crate::program::fedtvd;
use crate::tables::{Clinic, good};

#[test]
fn probabilities_have_the_decimal_mark_of_the_schema() {
    let clinic = Clinic::new();
    clinic.write("patients.csv", "age;town;ward;sick\n", |age, town, ward, sick| {
        format!("{age},5;{town};{ward};{sick}")
    });
    let run = clinic.run(&[]).display().to_string();
    let predicted = good(&["predict", &run, &clinic.path("patients.csv"), "--quiet"]).out;
    let row = predicted.lines().nth(1).unwrap();
    let fields: Vec<&str> = row.split(';').collect();
    assert_eq!((fields.len(), fields[0]), (7, "20,5"), "{row}");
    for p in &fields[5..] {
        assert!(p.find(',') == Some(1) && p.len() == 8, "{row}");
    }
    // Where commas separate the fields, they are quoted.
    std::fs::write(clinic.path("new.csv"), "age,town\n\"20,5\",Rio\n").unwrap();
    let predicted = good(&["predict", &run, &clinic.path("new.csv"), "--quiet"]).out;
    assert!(predicted.lines().nth(1).unwrap().starts_with("\"20,5\",Rio,no,\""), "{predicted}");
}

#[test]
fn predictions_do_not_overwrite_a_file_of_a_run() {
    let clinic = Clinic::new();
    let run = clinic.run(&[]);
    let (table, model) = (clinic.path("patients.csv"), run.display().to_string());
    for name in ["rounds.jsonl", "schema.toml", "config.toml", "manifest.json", "summary.json"] {
        let out = run.join(name);
        let before = std::fs::read(&out).unwrap();
        let refused = fedtvd(&["predict", &model, &table, "--out", &out.display().to_string()]);
        let words = "is a file of the run in ";
        assert!(refused.code == 2 && refused.err.contains(words), "{name}: {}", refused.err);
        assert!(std::fs::read(&out).unwrap() == before);
    }
    let out = run.join("predictions.csv").display().to_string();
    for _ in 0..2 {
        good(&["predict", &model, &table, "--out", &out]);
    }
    assert_eq!(std::fs::read_to_string(&out).unwrap().lines().count(), 201);
}

#[test]
fn a_value_whose_input_would_be_infinite_is_named_by_predict_and_evaluate() {
    let clinic = Clinic::new();
    let run = clinic.run(&[]).display().to_string();
    let far = clinic.path("far.csv");
    std::fs::write(&far, "age,town,sick\n50,Rio,no\n1e300,Rio,yes\n").unwrap();
    let predicted = fedtvd(&["predict", &run, &far]);
    let evaluated = clinic.evaluate("far.csv", &[]);
    for answer in [predicted, evaluated] {
        let words = "far.csv: row 2 (line 3), column \"age\": \"1e300\" is too far from the centre ";
        assert!(answer.code == 2 && answer.err.contains(words), "{}", answer.err);
    }
}
