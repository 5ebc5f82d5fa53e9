//! A federation over tables: sites whose files differ in form train the model that a simulation trains.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use crate::federation::Process;
use crate::page::{same_fields, shown};
use crate::program::{Answer, fedtvd};
use std::path::Path;

/// A patient: ward, age, blood pressure (missing if 0), town, label.
type Patient = (usize, usize, usize, &'static str, &'static str);

const WARDS: [&str; 3] = ["a", "b", "c"];

/// Three wards of different sizes and ranges; Oslo is in no schema.
fn patients() -> Vec<Patient> {
    let patient = |row: usize| {
        let ward = [0, 1, 2, 0, 0, 1][row % 6];
        let age = 20 + row * 7 % 60 + 10 * ward;
        let pressure = if row.is_multiple_of(11) { 0 } else { 100 + row * 13 % 80 + 1000 * (ward / 2) };
        let town = ["Rio", "Ulm", "Rio", "Oslo", "Ulm"][row % 5];
        (ward, age, pressure, town, if (age + row % 5) > 55 { "yes" } else { "no" })
    };
    (0..300).map(patient).collect()
}

fn pressure(pressure: usize) -> String {
    if pressure == 0 { "?".to_owned() } else { pressure.to_string() }
}

struct Ground {
    folder: tempfile::TempDir,
}

impl Ground {
    /// One table with all wards, one per ward in a form of its own, and a schema.
    fn new(fixed: bool) -> Self {
        let ground = Self { folder: tempfile::tempdir().unwrap() };
        let mut all = "ward,age,bp,town,sick\n".to_owned();
        let mut sites = [
            "age,bp,town,sick\n".to_owned(),
            "sick;id;town;bp;age\n".to_owned(),
            "\u{feff}town\tage\tsick\tbp\n".to_owned(),
        ];
        for (row, (ward, age, bp, town, sick)) in patients().into_iter().enumerate() {
            let bp = pressure(bp);
            all += &format!("{},{age},{bp},{town},{sick}\n", WARDS[ward]);
            sites[ward] += &match ward {
                0 => format!("{age},{bp},{town},{sick}\n"),
                1 => format!("{sick};{row};\"{town}\";{bp};{age}.0\n"),
                _ => format!("{town}\t {age}\t{sick}\t{bp}\n"),
            };
        }
        ground.put("all.csv", &all);
        sites.iter().zip(WARDS).for_each(|(text, ward)| ground.put(&format!("{ward}.csv"), text));
        let call = ["data", "schema", &ground.path("all.csv"), "--label", "sick", "--ignore", "ward"];
        let schema = good(&[&call[..], if fixed { &["--fixed"] } else { &[] }].concat()).out;
        let schema = schema.replace("[\"Oslo\", \"Rio\", \"Ulm\"]", "[\"Rio\", \"Ulm\"]");
        ground.put("schema.toml", &schema.replace("\"zeros\"", "\"input\""));
        ground
    }

    fn put(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn settings(&self, more: &[&str]) -> Vec<String> {
        let mut settings = vec![
            format!("data.set={}", self.path("all.csv")),
            format!("data.schema={}", self.path("schema.toml")),
        ];
        let fixed =
            ["data.group=ward", "split.kind=natural", "rounds=3", "cohort.fraction=1", "model.name=logistic"];
        settings.extend(fixed.iter().chain(more).map(ToString::to_string));
        settings.iter().flat_map(|setting| ["--set".to_owned(), setting.clone()]).collect()
    }

    /// Starts the server, lets the three sites join, and waits for the end; `first` are further options of client 0.
    fn federate(&self, out: &str, settings: &[String], first: &[&str]) {
        self.put("roster", "0\n1\n2\n");
        let (out, roster) = (self.path(out), self.path("roster"));
        let serve = ["serve", "--plaintext", "--listen", "127.0.0.1:0", "--out", &out, "--roster", &roster];
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let mut server = Process::start(&[&serve[..], &settings].concat());
        server.listening();
        let at = format!("@{out}/federation/address");
        let checked = fedtvd(&["join", &at, &self.path("b.csv"), "--plaintext", "1", "--check", "--json"]);
        let view: serde_json::Value =
            serde_json::from_str(&checked.out).unwrap_or_else(|_| panic!("{}", checked.err));
        same_fields("join --check", &shown("join --check"), &view);
        let notes = view["notes"].to_string();
        assert!(notes.contains("town: ") && notes.contains("are unknown, such as \\\"Oslo\\\""), "{notes}");
        assert!(notes.contains("columns that the schema does not have are left out: id"), "{notes}");
        self.put("short.csv", "age,town,sick\n40,Rio,no\n41,Ulm,yes\n");
        for more in [&["--check"][..], &[]] {
            let call = ["join", &at, &self.path("short.csv"), "--plaintext", "2"];
            let lacking = fedtvd(&[&call[..], more].concat());
            assert_eq!(lacking.code, 2, "{}", lacking.err);
            assert!(
                lacking.err.contains("there is no column \"bp\"; its columns are age, town, sick"),
                "{}",
                lacking.err
            );
        }
        let site = |(client, ward): (usize, &str)| {
            let (data, number) = (self.path(&format!("{ward}.csv")), client.to_string());
            let more = if client == 0 { first } else { &[] };
            Process::start(&[&["join", &at, &data, "--plaintext", &number][..], more].concat())
        };
        // The last one first: the order of arrival does not matter.
        let sites: Vec<Process> = WARDS.into_iter().enumerate().rev().map(site).collect();
        sites.into_iter().for_each(Process::succeeds);
        server.succeeds();
    }
}

fn good(arguments: &[&str]) -> Answer {
    let answer = fedtvd(arguments);
    assert_eq!(answer.code, 0, "{arguments:?}: {}", answer.err);
    answer
}

/// Simulates a federation with the configuration that its server wrote.
fn simulate(ground: &Ground, out: &str, federation: &str, more: &[&str]) {
    let config = ground.path(&format!("{federation}/config.toml"));
    good(&[&["run", &config, "--quiet", "--out", &ground.path(out)][..], more].concat());
}

fn file(ground: &Ground, run: &str, name: &str) -> Vec<u8> {
    std::fs::read(Path::new(&ground.path(run)).join(name)).unwrap()
}

#[test]
fn sites_with_other_columns_categories_and_scales_train_to_the_bits_of_a_simulation() {
    let ground = Ground::new(false);
    for mode in ["paper", "hardened"] {
        let settings = ground.settings(&[&format!("strategy.mode={mode}")]);
        let (simulated, federated) = (format!("simulated-{mode}"), format!("federated-{mode}"));
        ground.federate(&federated, &settings, &[]);
        simulate(&ground, &simulated, &federated, &[]);
        let both = |name| [&simulated, &federated].map(|run| file(&ground, run, name));
        let [schema, same] = both("schema.toml");
        assert_eq!(String::from_utf8(schema).unwrap(), String::from_utf8(same).unwrap());
        let [model, same] = both("model.safetensors");
        assert!(model == same, "{mode}");
    }
    // The caps of hardened mode reach centres and scales: ward a has half of all patients.
    assert_ne!(
        file(&ground, "simulated-paper", "schema.toml"),
        file(&ground, "simulated-hardened", "schema.toml")
    );
    let federated = ground.path("federated-paper");
    let verdict = fedtvd(&["verify", &federated, "--json", "--quiet"]);
    assert!(verdict.out.contains("\"same_bits\": true"), "{} {}", verdict.out, verdict.err);
    let predicted = good(&["predict", &federated, &ground.path("b.csv"), "--quiet"]);
    assert!(predicted.out.starts_with("sick;id;town;bp;age;prediction;p_no;p_yes\n"), "{}", predicted.out);
}

#[test]
fn a_schema_with_centres_and_scales_needs_no_statistics_and_no_roster() {
    let ground = Ground::new(true);
    let settings = ground.settings(&[]);
    ground.federate("federated", &settings, &[]);
    simulate(&ground, "simulated", "federated", &[]);
    assert!(
        file(&ground, "simulated", "model.safetensors") == file(&ground, "federated", "model.safetensors")
    );
    let open = Ground::new(false);
    let (out, settings) = (open.path("run"), open.settings(&[]));
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let refused = fedtvd(
        &[&["serve", "--plaintext", "--listen", "127.0.0.1:0", "--out", &out][..], &settings].concat(),
    );
    let sentence = "a schema without all centres and scales needs to know all clients before the first round";
    assert!(refused.code == 2 && refused.err.contains(sentence), "{}", refused.err);
}

#[test]
fn a_site_that_flips_the_labels_of_its_table_does_what_a_liar_of_a_simulation_does() {
    let ground = Ground::new(false);
    let settings = ground.settings(&[]);
    ground.federate("federated", &settings, &["--attack", "label-flip"]);
    simulate(&ground, "simulated", "federated", &["--set", "attack.kind=label-flip"]);
    simulate(&ground, "honest", "federated", &[]);
    let [lied, same, honest] =
        ["federated", "simulated", "honest"].map(|run| file(&ground, run, "model.safetensors"));
    assert!(lied == same && lied != honest);
    // Centres and scales do not depend on labels.
    assert_eq!(file(&ground, "federated", "schema.toml"), file(&ground, "honest", "schema.toml"));
}

#[test]
fn the_model_after_a_round_reads_tables_with_the_schema_of_its_run() {
    let ground = Ground::new(false);
    ground.federate("federated", &ground.settings(&[]), &[]);
    let (run, set) = (ground.path("federated"), format!("data.set={}", ground.path("b.csv")));
    let evaluated = |more: &[&str]| {
        let answer = good(&[&["evaluate", &run, "--json", "--set", &set][..], more].concat());
        serde_json::from_str::<serde_json::Value>(&answer.out).unwrap()
    };
    let (last, third, first) = (evaluated(&[]), evaluated(&["--round", "3"]), evaluated(&["--round", "1"]));
    assert_eq!((&third["loss"], &third["samples"]), (&last["loss"], &last["samples"]));
    assert!(first["loss"] != last["loss"] && first["samples"] == last["samples"]);
    std::fs::remove_file(ground.folder.path().join("federated/summary.json")).unwrap();
    std::fs::remove_file(ground.folder.path().join("federated/model.safetensors")).unwrap();
    assert_eq!(evaluated(&["--round", "1"]), first);
    let early = fedtvd(&["predict", &run, &ground.path("b.csv")]);
    let advice = format!(
        "to resume it: fedtvd serve {run} with the options of its server; to evaluate the model after round 3"
    );
    assert!(early.code == 2 && early.err.contains(&advice), "{}", early.err);
}
