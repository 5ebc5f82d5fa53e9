//! A server that asks for more than a site agreed to.

use crate::double::{CLASSES, Double, Step, data, network, welcome};
use fedtvd_core::labels::{Ask, Reference};
use fedtvd_core::train::Local;
use fedtvd_net::client::{self, Disclosure, Options, Outcome, Policy, SentLine};
use fedtvd_net::wire;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// What a real client does with a server that takes these steps.
async fn joined(
    folder: &Path,
    policy: Policy,
    training: usize,
    welcome: wire::Welcome,
    steps: Vec<Step>,
) -> (Result<Outcome, String>, Arc<Double>) {
    let (double, server) = Double::start(welcome, steps).await;
    let options = Options::new(server, Double::security(), data(training), folder.to_owned());
    let options = Options { policy, data_name: "data".into(), ..options };
    (client::join(options, &|_| {}).await.map_err(|error| error.to_string()), double)
}

fn survey(ask: &'static str) -> Step {
    Step::Survey(ask, Reference::uniform(CLASSES))
}

fn train(epochs: u32) -> Step {
    Step::Train(Local { epochs, ..Local::default() }, "fedtvd")
}

fn lines(folder: &Path) -> Vec<SentLine> {
    let text = std::fs::read_to_string(folder.join("sent.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_that_leaves_a_site_is_listed_with_its_size_and_in_the_documentation() {
    let folder = tempfile::tempdir().unwrap();
    let steps = vec![survey("\"distance\""), train(1), Step::Evaluate, Step::Drop, survey("\"distance\"")];
    let welcome = wire::Welcome { clients_evaluate: true, ..welcome() };
    let (outcome, double) = joined(folder.path(), Policy::default(), 40, welcome, steps).await;
    assert_eq!(outcome.unwrap().stored, 1);
    let mut arrived: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for one in double.received() {
        let (count, bytes) = arrived.entry(one.method).or_default();
        (*count, *bytes) = (*count + 1, *bytes + one.bytes);
    }
    let listed = lines(folder.path());
    let mut sums: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for line in &listed {
        let (count, bytes) = sums.entry(&line.message).or_default();
        (*count, *bytes) = (*count + line.count, *bytes + line.bytes);
    }
    assert_eq!(sums, arrived);
    assert_eq!(sums.len(), 5, "Hello, Pull, Enrol, Upload and Judge");
    let page = include_str!("../../../../docs/security.md");
    for message in arrived.keys().chain(&["Pull", "Columns", "Fail", "Decline"]) {
        assert!(page.contains(&format!("| `{message}` |")), "docs/security.md does not list {message}");
    }
    assert!(listed.iter().any(|line| line.content.contains("number of training samples: 40")), "{listed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_histogram_is_disclosed_only_if_the_policy_allows_it() {
    let folder = tempfile::tempdir().unwrap();
    // The welcome announces a distance, and the survey asks for more.
    let steps = vec![survey("\"histogram\"")];
    let (outcome, double) = joined(folder.path(), Policy::default(), 40, welcome(), steps.clone()).await;
    let why = "the site's policy does not allow label counts (statistics = [\"distance\", \"released\"])";
    assert_eq!(outcome, Err(why.to_owned()));
    assert_eq!((double.texts("Enrol"), double.texts("Decline")), (vec![], vec![why.to_owned()]));
    let open = Policy { statistics: vec![Ask::Histogram], ..Policy::default() };
    let announced = wire::Welcome { ask: "\"histogram\"".into(), ..welcome() };
    let (outcome, double) = joined(folder.path(), open, 40, announced, steps).await;
    assert_eq!((outcome.is_ok(), double.texts("Enrol")), (true, vec!["{\"histogram\":[20,20]}".to_owned()]));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_of_ten_references_is_refused_also_in_another_run() {
    let folder = tempfile::tempdir().unwrap();
    let references: Vec<Step> = (1..=10)
        .map(|number| {
            let share = f64::from(number) / 20.0;
            let reference = serde_json::from_value(serde_json::json!([share, 1.0 - share])).unwrap();
            Step::Survey("\"distance\"", reference)
        })
        .collect();
    for (steps, answers) in [(references.clone(), 1), (references[3..].to_vec(), 0), (references, 1)] {
        let (outcome, double) = joined(folder.path(), Policy::default(), 40, welcome(), steps).await;
        assert!(outcome.unwrap_err().contains("another reference distribution"), "{answers}");
        assert_eq!((double.texts("Enrol").len(), double.texts("Decline").len()), (answers, 1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_announced_reference_that_is_one_too_many_is_found_by_a_check_and_ends_a_join_before_anything_is_sent()
 {
    let folder = tempfile::tempdir().unwrap();
    let used = joined(folder.path(), Policy::default(), 40, welcome(), vec![survey("\"distance\"")]).await;
    assert!(used.0.is_ok());
    let uniform = serde_json::to_string(&Reference::uniform(CLASSES)).unwrap();
    for (reference, refused) in [(uniform.as_str(), false), ("[0.25,0.75]", true)] {
        let announced = wire::Welcome { reference: reference.into(), ..welcome() };
        let (_double, server) = Double::start(announced.clone(), vec![]).await;
        let options = Options::new(server, Double::security(), data(40), folder.path().to_owned());
        let options = Options { data_name: "data".into(), ..options };
        let found = tokio::task::block_in_place(|| client::check(&options)).unwrap();
        assert_eq!(found.violations.iter().any(|one| one.key == "references"), refused, "{found:?}");
        let (outcome, double) = joined(folder.path(), Policy::default(), 40, announced, vec![]).await;
        assert_eq!(outcome.is_err(), refused, "{outcome:?}");
        let asked_for_work = double.received().iter().any(|one| one.method == "Pull");
        assert_eq!((asked_for_work, double.texts("Decline").len()), (!refused, usize::from(refused)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_beyond_the_policy_are_refused_before_anything_is_trained() {
    let narrow = Policy { strategies: vec!["fedavg".into()], ..Policy::default() };
    let foreign = Step::Train(Local::default(), "scaffold");
    let avg = wire::Welcome { strategy: "fedavg".into(), ..welcome() };
    for (policy, step, welcome, why) in [
        (Policy::default(), train(2_000_000_000), welcome(), "2000000000 epochs (epochs = 100)"),
        (narrow, foreign, avg, "the strategy scaffold (strategies = fedavg)"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (outcome, double) = joined(folder.path(), policy, 40, welcome, vec![step]).await;
        let why = format!("the site's policy does not allow {why}");
        assert_eq!(outcome, Err(why.clone()));
        assert_eq!((double.texts("Fail"), double.texts("Upload")), (vec![why], vec![]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_of_three_gigabytes_is_refused_before_its_bytes_arrive() {
    let folder = tempfile::tempdir().unwrap();
    let steps = vec![Step::Endless(3 << 30)];
    let (outcome, double) = joined(folder.path(), Policy::default(), 40, welcome(), steps).await;
    assert!(outcome.unwrap_err().contains("a job or model of 3221225472 bytes"));
    assert_eq!(double.texts("Fail").len(), 1);
    // What fits into the windows of HTTP/2 had left the server.
    assert!(double.chunks() < 100, "{} chunks", double.chunks());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_does_not_fit_is_refused_before_it_is_allocated() {
    let with = |layers: serde_json::Value| {
        let network =
            fedtvd_core::model::Network { layers: serde_json::from_value(layers).unwrap(), ..network() };
        wire::Welcome { network: serde_json::to_string(&network).unwrap(), ..welcome() }
    };
    let linear = |name: &str, out: u64| serde_json::json!({"layer": "linear", "name": name, "out": out});
    for (layers, why) in [
        (serde_json::json!([linear("a", 1 << 62), linear("b", 2)]), "is too large"),
        (
            serde_json::json!([linear("a", 30_000_000), linear("b", 2)]),
            "a model of 687 MB (model-megabytes = 512)",
        ),
        (
            serde_json::json!([
                {"layer": "conv", "name": "a", "out": 3_000_000, "kernel": [1, 1], "stride": 1, "pad": 0, "bias": false},
                {"layer": "conv", "name": "b", "out": 1, "kernel": [5, 5], "stride": 1, "pad": 2, "bias": false},
                linear("c", 2)
            ]),
            "of memory (memory-megabytes = 4096)",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (outcome, double) = joined(folder.path(), Policy::default(), 40, with(layers), vec![]).await;
        let error = outcome.unwrap_err();
        assert!(error.contains(why), "{error}");
        assert_eq!(double.texts("Enrol"), Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_with_few_samples_does_not_train() {
    let folder = tempfile::tempdir().unwrap();
    let (outcome, double) = joined(folder.path(), Policy::default(), 19, welcome(), vec![]).await;
    let why = "the site's policy does not allow training on 19 samples (min-samples = 20)";
    assert_eq!(outcome, Err(why.to_owned()));
    assert_eq!(double.texts("Decline"), [why]);
    let (outcome, _) = joined(folder.path(), Policy::default(), 20, welcome(), vec![]).await;
    assert!(outcome.is_ok());
    // A check says the same, and how large the model is: two classes, each with three weights and a bias.
    let (_double, server) = Double::start(welcome(), vec![]).await;
    let options = Options::new(server, Double::security(), data(19), folder.path().to_owned());
    let found = tokio::task::block_in_place(|| client::check(&options)).unwrap();
    assert_eq!(found.violations.iter().map(ToString::to_string).collect::<Vec<_>>(), [why]);
    assert_eq!(found.model_values, 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn evaluations_disclose_as_much_as_the_policy_says() {
    let matrix = "[5, 0, 5, 0]";
    for (evaluation, statistics, text) in [
        (Disclosure::Nothing, vec![], "[]"),
        (Disclosure::Counts, vec![], "[]"),
        (Disclosure::Confusion, vec![Ask::Histogram], matrix),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let policy = Policy { evaluation, statistics, ..Policy::default() };
        let ask = "\"nothing\"".into();
        let quiet = wire::Welcome { ask, clients_evaluate: true, ..welcome() };
        let steps = vec![survey("\"nothing\""), Step::Evaluate];
        let (outcome, double) = joined(folder.path(), policy, 40, quiet, steps).await;
        assert!(outcome.is_ok(), "{outcome:?}");
        assert_eq!(double.texts("Judge"), [text], "{evaluation:?}");
        let listed = lines(folder.path()).into_iter().find(|line| line.message == "Judge").unwrap().content;
        let total = if evaluation == Disclosure::Nothing { "0 of 0" } else { "5 of 10" };
        assert!(listed.contains(total), "{listed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_sends_no_more_updates_than_its_rounds_per_day_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let policy = Policy { rounds_per_day: 2, ..Policy::default() };
    let again = |epochs| Step::Train(Local { epochs, ..Local::default() }, "fedtvd");
    let steps = vec![again(1), again(2), again(3)];
    let (outcome, double) = joined(folder.path(), policy, 40, welcome(), steps).await;
    assert_eq!(outcome.unwrap().stored, 2);
    let why = "the site's policy does not allow another update today (rounds-per-day = 2)";
    assert_eq!(double.texts("Fail"), [why]);
}
