//! A schema that is edited or lost while a federation is under way.

use crate::puppet::Puppet;
use crate::stage::{Running, Stage, config};
use fedtvd_core::train::Evaluation;
use fedtvd_data::table::Schema;
use fedtvd_net::client::{self, JoinError, Progress, SiteData, Task, join};
use fedtvd_net::federation::{Event, Options};
use fedtvd_net::wire::{ColumnStatistic, ColumnStatistics};
use fedtvd_run::configuration::Config;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Ten classes, as the puppets' labels have.
const FIXED: &str = r#"
[label]
column = "sick"
classes = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]
[[column]]
name = "age"
kind = "number"
bounds = [0, 100]
centre = 50.0
scale = 20.0
"#;

const MORE: &str = "[[column]]\nname = \"bp\"\nkind = \"number\"\ncentre = 120.0\nscale = 20.0\n";

/// The same without centre and scale.
fn open() -> String {
    FIXED.replace("centre = 50.0\nscale = 20.0\n", "")
}

fn options() -> Options {
    Options { roster: Some([0, 1].into()), workers: 1, ..Options::default() }
}

struct Clinic {
    stage: Stage,
    schema: PathBuf,
    config: Config,
}

impl Clinic {
    /// A federation with this schema, whose server has no data.
    fn new(schema: &str) -> Self {
        let stage = Stage::new(2);
        let path = stage.path("schema.toml");
        std::fs::write(&path, schema).unwrap();
        let named = format!("data.schema={}", path.display());
        let config = config(&["data.set=patients", "cohort.fraction=1", "rounds=3", &named]);
        Self { stage, schema: path, config }
    }

    fn edit(&self, schema: &str) {
        std::fs::write(&self.schema, schema).unwrap();
    }

    /// Two clients finish the first round; then the server stops.
    async fn first_round(&self) {
        let running = self.stage.serve("run", &self.config, options());
        let mut puppets = [running.puppet(&self.stage, 0).await, running.puppet(&self.stage, 1).await];
        if puppets[0].welcome.schema.parse::<Schema>().unwrap().open().count() > 0 {
            let [zero, one] = &mut puppets;
            let (zero, one) = tokio::join!(told(zero), told(one));
            assert_eq!(zero, one);
        }
        for puppet in &mut puppets {
            puppet.enrol().await.unwrap();
        }
        for puppet in &mut puppets {
            answer(puppet).await;
        }
        for puppet in &mut puppets {
            evaluate(puppet).await;
        }
        assert_eq!(puppets[0].job().await.offer.round, 1);
        drop(puppets);
        running.stop();
    }

    /// Why the server does not start.
    fn refusal(&self) -> String {
        let prepared = self.stage.try_prepare("run", &self.config, options());
        prepared.err().expect("the server must not start").to_string()
    }

    fn noted(&self, words: &str) {
        self.stage.until(|event| match event {
            Event::Note { note } if note.contains(words) => Some(()),
            _ => None,
        });
    }

    /// All files of the run, except for the lock.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        collect(&self.stage.path("run"), &mut files);
        files
    }
}

fn collect(folder: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if !path.ends_with("lock") && !path.ends_with("lease") {
            files.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
}

async fn told(puppet: &mut Puppet) -> String {
    let columns = vec![ColumnStatistic { count: 50, mean: 40.0, squares: 5000.0 }];
    let told = ColumnStatistics { run: puppet.welcome.run.clone(), size: 50, columns };
    puppet.link.columns(told).await.unwrap()
}

/// Answers the next job.
async fn answer(puppet: &mut Puppet) {
    let job = puppet.job().await;
    let mut upload = puppet.one_hot(&job);
    upload.params.values = job.offer.params.values.iter().map(|w| w + 0.01).collect();
    puppet.send(job.offer.round, upload.to_bytes()).await.unwrap();
}

/// Evaluates the next model, on an empty hold-out.
async fn evaluate(puppet: &mut Puppet) {
    let run = puppet.welcome.run.clone();
    let round = loop {
        match puppet.link.pull(&run).await.unwrap() {
            Task::Evaluate(round, _) => break round,
            Task::Wait => {}
            other => panic!("{other:?} instead of a model"),
        }
    };
    let nothing = Evaluation { loss: 0.0, confusion: vec![0; 100] };
    puppet.link.evaluate(&run, round, nothing.into()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edited_schema_is_refused_after_the_first_round_and_nothing_is_touched() {
    for schema in [FIXED.to_owned(), open()] {
        let clinic = Clinic::new(&schema);
        clinic.first_round().await;
        let before = clinic.files();
        assert_eq!(
            clinic.stage.path("run/rounds.jsonl").metadata().map(|data| data.len() > 0).ok(),
            Some(true)
        );
        for edited in [
            schema.clone() + MORE,
            schema.replace("[0, 100]", "[0, 90]"),
            schema.replace("\"9\"]", "{ name = \"9\", values = [\"nine\"] }]"),
        ] {
            clinic.edit(&edited);
            let error = clinic.refusal();
            let run = clinic.stage.path("run").display().to_string();
            assert!(error.starts_with("the schema changed since the run began: "), "{error}");
            assert!(error.contains(&clinic.schema.display().to_string()), "{error}");
            assert!(error.contains(&format!("copying {run}/schema.toml over it")), "{error}");
            assert!(clinic.files() == before, "{edited}");
        }
        // A comment is not a change, and neither is the run's own schema.
        let own = std::fs::read_to_string(clinic.stage.path("run/schema.toml")).unwrap();
        for same in [schema.clone() + "# more\n", own] {
            clinic.edit(&same);
            assert!(clinic.stage.try_prepare("run", &clinic.config, options()).is_ok(), "{same}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_schema_is_gone_continues_with_its_own() {
    for schema in [FIXED.to_owned(), open()] {
        let clinic = Clinic::new(&schema);
        clinic.first_round().await;
        std::fs::remove_file(&clinic.schema).unwrap();
        let running = clinic.stage.serve("run", &clinic.config, options());
        clinic.noted("schema.toml is gone; the run continues with ");
        let mut zero = running.puppet(&clinic.stage, 0).await;
        assert_eq!(zero.job().await.offer.round, 1);
        let own = std::fs::read_to_string(clinic.stage.path("run/schema.toml")).unwrap();
        assert_eq!(zero.welcome.schema, own);
        drop(zero);
        tokio::task::block_in_place(|| running.stop());
    }
}

/// Site 0 joins, and is killed once it has agreed to the schema; the error if it does not agree.
async fn visit(clinic: &Clinic, running: &Running) -> Result<(), JoinError> {
    let path = clinic.stage.path("patients.csv");
    let rows: String =
        (0..200).map(|row| format!("{},{},{}\n", 20 + row % 60, 90 + row % 50, row % 10)).collect();
    std::fs::write(&path, format!("age,bp,sick\n{rows}")).unwrap();
    let data = SiteData::Table { path, label: None, test: 0.2, columns: None };
    let (security, state) = (clinic.stage.security(0), clinic.stage.path("state"));
    let options = client::Options::new(running.address(), security, data, state);
    let agreed = tokio::sync::Notify::new();
    let report = |progress: &Progress| {
        if matches!(progress, Progress::Gathering | Progress::Joined(_)) {
            agreed.notify_one();
        }
    };
    tokio::select! {
        ended = join(options, &report) => ended.map(drop),
        () = agreed.notified() => Ok(()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_that_has_joined_can_join_again_after_the_schema_is_edited_before_the_first_round() {
    for schema in [FIXED.to_owned(), open()] {
        let clinic = Clinic::new(&schema);
        let running = clinic.stage.serve("run", &clinic.config, options());
        visit(&clinic, &running).await.unwrap();
        tokio::task::block_in_place(|| running.stop());
        clinic.edit(&schema.replace("[0, 100]", "[0, 90]"));
        let running = clinic.stage.serve("run", &clinic.config, options());
        visit(&clinic, &running).await.unwrap();
        clinic.noted(
            "schema.toml was edited before the first round: the run starts with it, under a new id; sites ",
        );
        tokio::task::block_in_place(|| running.stop());
        // The roster is kept.
        let again = Options { roster: None, ..options() };
        assert!(clinic.stage.try_prepare("run", &clinic.config, again).is_ok());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn before_the_first_round_an_edited_schema_is_taken_up() {
    let versions = [FIXED.to_owned(), open(), FIXED.to_owned() + MORE, open() + MORE];
    for (first, second) in [(0, 1), (1, 0), (0, 2), (1, 3), (3, 2)] {
        let clinic = Clinic::new(&versions[first]);
        let running = clinic.stage.serve("run", &clinic.config, options());
        let zero = running.puppet(&clinic.stage, 0).await;
        let old = zero.welcome.run.clone();
        drop(zero);
        tokio::task::block_in_place(|| running.stop());
        clinic.edit(&versions[second]);
        let running = clinic.stage.serve("run", &clinic.config, options());
        clinic.noted("schema.toml was edited before the first round: the run starts with it, under a new id");
        let zero = running.puppet(&clinic.stage, 0).await;
        let schema: Schema = versions[second].parse().unwrap();
        assert_eq!(zero.welcome.schema, schema.text());
        assert_ne!(zero.welcome.run, old);
        drop(zero);
        tokio::task::block_in_place(|| running.stop());
        // It is the run's schema from now on.
        assert_eq!(clinic.stage.path("run/schema.toml").exists(), schema.open().count() == 0);
        if schema.open().count() == 0 {
            clinic.first_round().await;
            clinic.edit(&versions[first]);
            assert!(clinic.refusal().starts_with("the schema changed since the run began"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn finished_rounds_are_kept_if_no_checkpoint_can_be_used() {
    let clinic = Clinic::new(FIXED);
    clinic.first_round().await;
    for entry in std::fs::read_dir(clinic.stage.path("run/checkpoint")).unwrap() {
        std::fs::write(entry.unwrap().path().join("index.json"), "{").unwrap();
    }
    let before = clinic.files();
    let error = clinic.refusal();
    assert!(error.starts_with("rounds.jsonl reaches round 1, but no checkpoint in "), "{error}");
    assert!(clinic.files() == before);
}
