//! Which rows of a table a model is evaluated on.

use crate::program::fedtvd;
use crate::tables::{Clinic, good, json};

#[test]
fn a_table_that_changed_since_the_run_is_evaluated_only_if_it_is_named() {
    let clinic = Clinic::new();
    let (table, schema) = (clinic.path("patients.csv"), clinic.path("schema.toml"));
    let text = std::fs::read_to_string(&table).unwrap();
    let own = || fedtvd(&["evaluate", &clinic.path("run"), "--json"]);
    for open in [false, true] {
        let named = format!("data.schema={schema}");
        let made = good(&["data", "schema", &table, "--label", "sick", "--ignore", "ward"]).out;
        std::fs::write(&schema, made).unwrap();
        let settings = ["--set", &named];
        let run = clinic.run(if open { &settings } else { &[] });
        assert_eq!(json(&own())["samples"], 39);
        // Without its first row, another fifth of the rows are test rows.
        let changed = text.replacen("20,Rio,a,no\n", "", 1);
        assert_ne!(changed, text);
        std::fs::write(&table, changed).unwrap();
        let refused = own();
        assert_eq!(refused.code, 2, "{}", refused.out);
        let words = "patients.csv has changed since the run, so that its test rows may be ones that the model was trained on; \
                     to evaluate all of its rows: fedtvd evaluate ";
        assert!(refused.err.contains(words) && refused.err.contains("--set data.set="), "{}", refused.err);
        let all = json(&clinic.evaluate("patients.csv", &[]));
        assert_eq!(all["samples"], 199);
        let note = "patients.csv has changed since the run; all of its rows are evaluated, and the model may have been trained \
                    on some of them";
        assert!(all["notes"].to_string().contains(note), "{all}");
        std::fs::write(&table, &text).unwrap();
        // The schema as it was before centres and scales were computed may be gone.
        std::fs::remove_file(&schema).unwrap();
        assert_eq!(json(&own())["samples"], 39);
        std::fs::remove_dir_all(run).unwrap();
    }
}

#[test]
fn settings_that_have_no_effect_on_an_evaluation_are_refused() {
    let clinic = Clinic::new();
    clinic.run(&[]);
    std::fs::copy(clinic.path("patients.csv"), clinic.path("other.csv")).unwrap();
    for table in ["patients.csv", "other.csv"] {
        for set in
            ["data.group=nothing", "data.test=0.9", "data.crop=9", "data.flip=true", "data.imbalance=0.5"]
        {
            let idle = clinic.evaluate(table, &["--set", set]);
            let words = format!("--set {set} has no effect: ");
            assert!(idle.code == 2 && idle.err.contains(&words), "{table} {set}: {}", idle.err);
        }
    }
}

#[test]
fn a_label_that_is_not_that_of_the_schema_is_refused_even_if_it_is_the_default() {
    let clinic = Clinic::new();
    let (table, schema) = (clinic.path("patients.csv"), clinic.path("schema.toml"));
    std::fs::write(&schema, good(&["data", "schema", &table, "--label", "sick"]).out).unwrap();
    let (set, named, out) =
        (format!("data.set={table}"), format!("data.schema={schema}"), clinic.path("split"));
    let split = |label: &str| {
        fedtvd(&[
            "split",
            "--out",
            &out,
            "--set",
            &set,
            "--set",
            &named,
            "--set",
            "clients=2",
            "--set",
            label,
        ])
    };
    for label in ["label", "town"] {
        let refused = split(&format!("data.label={label}"));
        let words =
            format!("data.label = {label:?}, but the label of {schema} is \"sick\"; leave data.label out");
        assert!(refused.code == 2 && refused.err.contains(&words), "{}", refused.err);
    }
    assert_eq!(split("data.label=sick").code, 0);
}
