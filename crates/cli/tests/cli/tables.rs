//! Tables from their schema to their predictions.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use crate::program::{Answer, fedtvd};
use std::path::PathBuf;

/// A folder with a table of 200 patients: age decides, town and ward do not.
pub(crate) struct Clinic {
    folder: tempfile::TempDir,
}

impl Clinic {
    pub(crate) fn new() -> Self {
        let clinic = Self { folder: tempfile::tempdir().unwrap() };
        clinic.write("patients.csv", "age,town,ward,sick\n", |age, town, ward, sick| {
            format!("{age},{town},{ward},{sick}")
        });
        clinic
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// The patients in another form.
    pub(crate) fn write(&self, name: &str, header: &str, line: impl Fn(usize, &str, &str, &str) -> String) {
        let row = |row: usize| {
            let age = 20 + row * 7 % 60;
            let (town, ward) = (["Rio", "Ulm", "Bern"][row % 3], ["a", "b"][row % 2]);
            line(age, town, ward, if age > 50 { "yes" } else { "no" }) + "\n"
        };
        let rows: String = (0..200).map(row).collect();
        std::fs::write(self.folder.path().join(name), header.to_owned() + &rows).unwrap();
    }

    /// A run over both wards in the folder `run`.
    pub(crate) fn run(&self, settings: &[&str]) -> PathBuf {
        let out = self.path("run");
        let set = format!("data.set={}", self.path("patients.csv"));
        let base = ["run", "--quiet", "--out", &out, "--set", &set, "--set", "data.label=sick"];
        let more = ["--set", "data.group=ward", "--set", "split.kind=natural", "--set", "rounds=3"];
        let model = ["--set", "model.name=logistic", "--set", "cohort.fraction=1", "--set", "local.lr=0.5"];
        good(&[&base[..], &more, &model, settings].concat());
        PathBuf::from(out)
    }

    pub(crate) fn evaluate(&self, table: &str, more: &[&str]) -> Answer {
        let set = format!("data.set={}", self.path(table));
        fedtvd(&[&["evaluate", &self.path("run"), "--json", "--set", &set][..], more].concat())
    }
}

pub(crate) fn good(arguments: &[&str]) -> Answer {
    let answer = fedtvd(arguments);
    assert_eq!(answer.code, 0, "{arguments:?}: {}", answer.err);
    answer
}

pub(crate) fn json(answer: &Answer) -> serde_json::Value {
    assert_eq!(answer.code, 0, "{}", answer.err);
    serde_json::from_str(&answer.out).unwrap()
}

#[test]
fn a_run_stores_its_schema_with_centres_and_scales_in_its_directory_and_in_its_model() {
    let clinic = Clinic::new();
    let run = clinic.run(&[]);
    let schema = std::fs::read_to_string(run.join("schema.toml")).unwrap();
    assert!(
        schema.contains("name = \"age\"\nkind = \"number\"\ncentre = ") && schema.contains("scale = "),
        "{schema}"
    );
    assert!(schema.contains("name = \"ward\"\nkind = \"ignored\""), "{schema}");
    let model = std::fs::read(run.join("model.safetensors")).unwrap();
    let model = String::from_utf8_lossy(&model);
    assert!(model.contains("categories = [") && model.contains("network"));
}

#[test]
fn another_table_is_evaluated_completely_and_with_the_schema_of_the_model() {
    let clinic = Clinic::new();
    clinic.run(&[]);
    // The columns in another order, with semicolons: the same patients, all 200 of them.
    clinic.write("other.csv", "sick;extra;town;age\n", |age, town, _, sick| format!("{sick};x;{town};{age}"));
    let same = json(&clinic.evaluate("other.csv", &[]));
    assert_eq!(same["samples"], 200);
    assert!(same["accuracy"].as_f64().unwrap() > 0.9, "{same}");
    // Ages ten times as large are not standardised anew: everybody is old, and predicted to be sick.
    clinic.write("large.csv", "age,town,ward,sick\n", |age, town, ward, sick| {
        format!("{},{town},{ward},{sick}", 10 * age + 1000)
    });
    let large = json(&clinic.evaluate("large.csv", &[]));
    let confusion = &large["confusion"];
    assert_eq!((&confusion[0][0], &confusion[1][0]), (&0.into(), &0.into()), "{large}");
    // The run's own table: its test rows, as before.
    let own = json(&clinic.evaluate("patients.csv", &[]));
    assert_eq!(own["samples"], 39);
    let train = clinic.evaluate("other.csv", &["--train"]);
    assert!(train.code == 2 && train.err.contains("--train is for the data of the run"), "{}", train.err);
}

#[test]
fn evaluate_says_what_it_did_to_the_data_and_refuses_what_has_no_effect() {
    let clinic = Clinic::new();
    clinic.run(&[]);
    let odd = "age,town,sick\n77,Rio,yes\n?,Rio,yes\n21,Oslo,no\n30,Rio,\n".to_owned();
    std::fs::write(clinic.path("odd.csv"), odd.clone() + &"22,Ulm,no\n".repeat(20)).unwrap();
    let answer = clinic.evaluate("odd.csv", &[]);
    let view = json(&answer);
    crate::page::same_fields("evaluate", &crate::page::shown("evaluate"), &view);
    let notes = view["notes"].to_string();
    for words in ["age: 1 of 23 are missing", "town: 1 of 23 are unknown", "these rows are left out"] {
        assert!(notes.contains(words), "{words}: {notes}");
        assert!(answer.err.lines().any(|line| line.starts_with("note: ") && line.contains(words)));
    }
    // All of its rows are evaluated, so that it needs no test rows.
    assert!(!notes.contains("test rows"), "{notes}");
    for (set, words) in [
        (
            "data.schema=other.toml",
            "--set data.schema=other.toml has no effect: data.schema is given by the model",
        ),
        ("data.label=town", "--set data.label=town has no effect: data.label is given by the model"),
    ] {
        let idle = clinic.evaluate("patients.csv", &["--set", set]);
        assert!(idle.code == 2 && idle.err.contains(words), "{}", idle.err);
    }
    json(&clinic.evaluate("patients.csv", &["--set", "data.label=sick"]));
}

#[test]
fn a_table_in_place_of_a_configuration_or_of_a_model_is_named() {
    let clinic = Clinic::new();
    let (run, table) = (clinic.run(&[]).display().to_string(), clinic.path("patients.csv"));
    let misplaced = fedtvd(&["evaluate", &run, &table]);
    let words =
        format!("is not a configuration; to evaluate the model on it: fedtvd evaluate {run} --set data.set=");
    assert!(misplaced.code == 2 && misplaced.err.contains(&words), "{}", misplaced.err);
    for command in [&["predict", &table, &table][..], &["evaluate", &table]] {
        let wrong = fedtvd(command);
        assert!(wrong.code == 2 && wrong.err.contains("patients.csv is not a model file"), "{}", wrong.err);
    }
}

#[test]
fn predictions_do_not_overwrite_what_they_are_made_from() {
    let clinic = Clinic::new();
    let run = clinic.run(&[]);
    let (table, model) = (clinic.path("patients.csv"), run.join("model.safetensors").display().to_string());
    let before = [&table, &model].map(|file| std::fs::read(file).unwrap());
    // The same file by another name.
    let again = clinic.path("run/../patients.csv");
    for out in [&table, &again, &model] {
        let predicted = fedtvd(&["predict", &model, &table, "--out", out]);
        assert!(predicted.code == 2 && predicted.err.contains("is the input"), "{}", predicted.err);
        let evaluated = clinic.evaluate("patients.csv", &["--predictions", out]);
        assert!(evaluated.code == 2 && evaluated.err.contains("is the input"), "{}", evaluated.err);
    }
    assert!([&table, &model].map(|file| std::fs::read(file).unwrap()) == before);
    // Another file is replaced, as by all subcommands.
    let other = clinic.path("old.csv");
    std::fs::write(&other, "old").unwrap();
    good(&["predict", &model, &table, "--out", &other]);
    assert!(std::fs::read_to_string(&other).unwrap().starts_with("age,"));
}

#[test]
fn a_comparison_on_a_table_names_the_model_that_it_trains() {
    let clinic = Clinic::new();
    let (out, set) = (clinic.path("runs"), format!("data.set={}", clinic.path("patients.csv")));
    let base = ["compare", "--out", &out, "--rounds", "1", "--seeds", "1", "--strategies", "fedavg,uniform"];
    let answer =
        good(&[&base[..], &["--set", &set, "--set", "data.label=sick", "--set", "clients=3"]].concat());
    assert!(answer.err.contains("mlp") && !answer.err.contains("lenet"), "{}", answer.err);
}

#[test]
fn predictions_name_the_rows_of_the_users_file_and_the_classes() {
    let clinic = Clinic::new();
    // Trained so little that labels and predictions differ.
    clinic.run(&["--set", "rounds=1", "--set", "local.lr=0.01"]);
    let out = clinic.path("predictions.csv");
    json(&clinic.evaluate("patients.csv", &["--predictions", &out]));
    let text = std::fs::read_to_string(&out).unwrap();
    let table = std::fs::read_to_string(clinic.path("patients.csv")).unwrap();
    let rows: Vec<&str> = table.lines().skip(1).collect();
    assert_eq!(text.lines().next(), Some("row,label,prediction,label_name,prediction_name,p_no,p_yes"));
    assert_eq!(text.lines().count(), 40);
    let mut errors = 0;
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        errors += usize::from(fields[1] != fields[2]);
        let row: usize = fields[0].parse().unwrap();
        assert_eq!(rows[row - 1].rsplit_once(',').unwrap().1, fields[3], "{line}");
        assert_eq!(["no", "yes"][fields[2].parse::<usize>().unwrap()], fields[4], "{line}");
        let p: Vec<f64> = fields[5..].iter().map(|p| p.parse().unwrap()).collect();
        assert!((p[0] + p[1] - 1.0).abs() < 2e-6 && (p[1] > p[0]) == (fields[4] == "yes"), "{line}");
    }
    assert!(errors > 0, "{text}");
}

#[test]
fn predict_writes_the_users_rows_and_columns_with_classes_and_probabilities() {
    let clinic = Clinic::new();
    let run = clinic.run(&[]);
    // The model's file alone is enough, and there is no label.
    let model = clinic.path("alone.safetensors");
    std::fs::copy(run.join("model.safetensors"), &model).unwrap();
    let (file, out) = (clinic.path("new.csv"), clinic.path("predicted.csv"));
    std::fs::write(&file, "town;id;age\nRio;\"a;1\";77\n?;b;21\nOslo;c;78\n").unwrap();
    let answer = good(&["predict", &model, &file, "--out", &out]);
    assert_eq!(answer.out, format!("3 predictions written to {out}\n"));
    assert!(answer.err.contains("note: town: 1 of 3 are unknown, such as \"Oslo\""), "{}", answer.err);
    let text = std::fs::read_to_string(&out).unwrap();
    let starts = ["town;id;age;prediction;p_no;p_yes", "Rio;\"a;1\";77;yes;", "?;b;21;no;", "Oslo;c;78;yes;"];
    assert_eq!(text.lines().count(), 4);
    for (line, start) in text.lines().zip(starts) {
        assert!(line.starts_with(start), "{line}");
    }
    let view = json(&fedtvd(&["predict", &model, &file, "--json", "--quiet"]));
    crate::page::same_fields("predict", &crate::page::shown("predict"), &view);
    assert_eq!(view["predictions"][2]["prediction"], "yes");
    std::fs::write(&file, "town,age\nRio,77\nRio,old\n").unwrap();
    let wrong = fedtvd(&["predict", &model, &file]);
    assert_eq!((wrong.code, wrong.out.as_str()), (2, ""));
    assert!(
        wrong.err.contains("new.csv: row 2 (line 3), column \"age\": \"old\" is not a number"),
        "{}",
        wrong.err
    );
    std::fs::write(&file, "town,years\nRio,77\n").unwrap();
    let wrong = fedtvd(&["predict", &model, &file]);
    assert!(wrong.err.contains("there is no column \"age\"; its columns are town, years"), "{}", wrong.err);
}

#[test]
fn images_are_predicted_with_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    for (class, grey) in [("dark", 0u8), ("light", 255)] {
        std::fs::create_dir_all(folder.path().join("set").join(class)).unwrap();
        for n in 0..20u8 {
            let image = fedtvd_data::decode::picture::png([1, 4, 4], &[grey ^ n; 16]).unwrap();
            std::fs::write(folder.path().join(format!("set/{class}/{n:02}.png")), image).unwrap();
        }
    }
    let (set, out) = (format!("data.set={}", place("set")), place("run"));
    let base = ["run", "--quiet", "--out", &out, "--set", &set, "--set", "model.name=logistic"];
    let small = ["--set", "split.clients=2", "--set", "split.kind=iid", "--set", "cohort.fraction=1"];
    good(&[&base[..], &small, &["--set", "rounds=3", "--set", "local.lr=0.1"]].concat());
    let answer = good(&["predict", &out, &place("set/light")]);
    let lines: Vec<&str> = answer.out.lines().collect();
    assert_eq!((lines[0], lines.len()), ("file,prediction,p_dark,p_light", 21));
    assert!(lines[1..].iter().all(|line| line.contains(".png,light,0.")), "{}", answer.out);
    let table = place("table.csv");
    std::fs::write(&table, "x\n1\n").unwrap();
    let wrong = fedtvd(&["predict", &out, &table]);
    assert!(wrong.err.contains("is for images, and") && wrong.code == 2, "{}", wrong.err);
}

#[test]
fn resume_and_verify_notice_a_changed_schema() {
    let clinic = Clinic::new();
    let schema = clinic.path("schema.toml");
    let made = good(&["data", "schema", &clinic.path("patients.csv"), "--label", "sick", "--ignore", "ward"]);
    std::fs::write(&schema, &made.out).unwrap();
    let run = clinic.run(&["--set", &format!("data.schema={schema}")]);
    let verify = || fedtvd(&["verify", run.to_str().unwrap(), "--quiet"]);
    assert_eq!(verify().code, 0, "{}", verify().err);
    // A comment is not a change.
    std::fs::write(&schema, made.out.clone() + "# more\n").unwrap();
    assert_eq!(verify().code, 0, "{}", verify().err);
    let table = clinic.path("patients.csv");
    let bare = good(&["data", "schema", &table, "--label", "sick", "--ignore", "ward", "--no-comments"]).out;
    assert!(!bare.contains('#') && made.out.contains("# 0 of 200 are missing"), "{bare}");
    std::fs::write(&schema, bare).unwrap();
    assert_eq!(verify().code, 0, "{}", verify().err);
    std::fs::write(&schema, made.out.replace("\"Bern\", \"Rio\"", "\"Rio\", \"Bern\"")).unwrap();
    let changed = verify();
    assert_eq!(changed.code, 1);
    let sentence = format!("the schema {schema} changed since the run began");
    assert!(changed.err.contains(&sentence), "{}", changed.err);
    std::fs::remove_file(run.join("summary.json")).unwrap();
    let resumed = fedtvd(&["resume", run.to_str().unwrap()]);
    assert!(resumed.err.contains(&sentence), "{}", resumed.err);
    // The schema in the run directory is what a model is used with; it is checked, too.
    std::fs::write(&schema, &made.out).unwrap();
    let stored = run.join("schema.toml");
    let text = std::fs::read_to_string(&stored).unwrap();
    std::fs::write(&stored, text.replacen("scale = ", "scale = 1", 1)).unwrap();
    assert!(verify().err.contains("schema.toml changed since the run began"), "{}", verify().err);
}

#[test]
fn class_weights_for_another_number_of_classes_are_refused_by_a_dry_run() {
    let clinic = Clinic::new();
    let (set, out) = (format!("data.set={}", clinic.path("patients.csv")), clinic.path("run"));
    let base = ["run", "--dry-run", "--out", &out, "--set", &set, "--set", "data.label=sick"];
    let dry = |weights: &str| {
        let weights = format!("local.class_weights={weights}");
        fedtvd(&[&base[..], &["--set", "split.clients=2", "--set", &weights]].concat())
    };
    let refused = dry("[1, 5, 1]");
    assert_eq!(refused.code, 2, "{}", refused.out);
    let sentence = "local.class_weights: 3 numbers were given, but there are 2 classes";
    assert!(refused.err.contains(sentence), "{}", refused.err);
    assert_eq!(dry("[1, 5]").code, 0);
    assert_eq!(dry("inverse").code, 0);
}

#[test]
fn a_comparison_and_a_sweep_do_not_answer_with_results_of_other_data_or_of_another_schema() {
    let clinic = Clinic::new();
    let (table, schema) = (clinic.path("patients.csv"), clinic.path("schema.toml"));
    let made = good(&["data", "schema", &table, "--label", "sick", "--ignore", "ward"]).out;
    std::fs::write(&schema, &made).unwrap();
    let config = clinic.path("config.toml");
    let settings = format!(
        "rounds = 2\ndata.set = {table:?}\ndata.schema = {schema:?}\ncohort.fraction = 1.0\nsplit.clients = 3\n\
         model.name = \"logistic\"\n[sweep]\nseed = [1, 2]\n"
    );
    std::fs::write(&config, settings).unwrap();
    let out = clinic.path("runs");
    let compare = ["compare", &config, "--strategies", "fedavg,uniform", "--quiet", "--out", &out];
    let sweep = ["sweep", &config, "--json", "--out", &out];
    let edited = made.replace("kind = \"number\"", "kind = \"number\"\nbounds = [0, 60]");
    let patients = std::fs::read_to_string(&table).unwrap();
    let corrected = patients.replacen("20,Rio", "21,Rio", 1);
    for command in [&compare[..], &sweep] {
        good(command);
        for (file, text, was, name) in
            [(&schema, &edited, &made, "schema"), (&table, &corrected, &patients, "data set")]
        {
            std::fs::write(file, text).unwrap();
            let changed = fedtvd(command);
            assert_eq!(changed.code, 1, "{}", changed.err);
            let sentence = format!("the {name} {file} changed since the run began");
            let said = changed.err + &changed.out;
            assert!(said.contains(&sentence) && said.contains("another --out"), "{said}");
            std::fs::write(file, was).unwrap();
        }
        good(command);
    }
    // Without its data a finished run cannot be compared, and stays finished.
    std::fs::remove_file(&table).unwrap();
    assert_eq!(json(&good(&sweep))["done"], 2);
}

#[test]
fn a_wrong_schema_is_refused_with_its_file_and_what_would_have_been_right() {
    let clinic = Clinic::new();
    let schema = clinic.path("schema.toml");
    let made = good(&["data", "schema", &clinic.path("patients.csv"), "--label", "sick"]).out;
    let set = format!("data.set={}", clinic.path("patients.csv"));
    let named = format!("data.schema={schema}");
    let refused = |text: &str| {
        std::fs::write(&schema, text).unwrap();
        let answer = fedtvd(&["split", "--set", &set, "--set", &named, "--set", "clients=2"]);
        assert_eq!(answer.code, 2, "{}", answer.out);
        answer.err
    };
    let error = refused(&made.replace("\"age\"", "\"years\""));
    assert!(
        error.contains("patients.csv: there is no column \"years\"; its columns are age, town, ward, sick"),
        "{error}"
    );
    let error = refused(&made.replace("\"number\"", "\"numeric\""));
    assert!(error.contains("schema.toml: column \"age\": "), "{error}");
}

#[test]
fn a_schema_is_made_as_it_was_asked_for_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: String| {
        std::fs::write(folder.path().join(name), text).unwrap();
        folder.path().join(name).display().to_string()
    };
    // More categories than are taken over without being asked.
    let rows: String = (0..70).map(|row| format!("{row},c{row},{}\n", ["no", "yes"][row % 2])).collect();
    let codes = put("codes.csv", format!("age,code,sick\n{rows}"));
    let asked = fedtvd(&["data", "schema", &codes, "--label", "sick", "--category", "code"]);
    assert_eq!(asked.code, 2, "{}", asked.out);
    assert!(asked.err.contains("\"code\" was declared a category, but has more than 64"), "{}", asked.err);
    let unasked = good(&["data", "schema", &codes, "--label", "sick"]).out;
    assert!(unasked.contains("left out: it has more than 64 different texts\n"), "{unasked}");
    // Numbers with a comma and numbers with a point: the decimal comma is not taken for granted.
    let row = |row: usize| format!("{row};{}{}47;{}\n", row, [",", "."][row % 2], ["no", "yes"][row % 2]);
    let mixed = put("mixed.csv", format!("age;crp;sick\n{}", (0..200).map(row).collect::<String>()));
    let made = good(&["data", "schema", &mixed, "--label", "sick"]).out;
    assert!(!made.contains("decimal = \",\""), "{made}");
    assert!(made.contains("some are numbers with a decimal comma"), "{made}");
}
