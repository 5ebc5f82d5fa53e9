//! A server that tries to get more out of a site than its policy allows, or to hold it for ever.

use crate::double::{CLASSES, Double, OnUpload, Step, data, network, welcome};
use fedtvd_core::labels::Reference;
use fedtvd_core::memory::Memory;
use fedtvd_core::model::{Layout, Params};
use fedtvd_core::round::{Job, Offer};
use fedtvd_core::stream::Key;
use fedtvd_core::train::{ClassWeights, Local, Samples, Values};
use fedtvd_net::client::{self, Options, Outcome, Policy, SiteData};
use fedtvd_net::wire::{self, work};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

fn survey(ask: &'static str) -> Step {
    Step::Survey(ask, Reference::uniform(CLASSES))
}

fn train() -> Step {
    Step::Train(Local { epochs: 1, ..Local::default() }, "fedtvd")
}

/// A job with this model and these class weights.
fn job(values: Vec<f32>, class_weights: ClassWeights) -> Step {
    let layout = Arc::new(Layout::of(&network()).unwrap());
    let offer = Offer {
        round: 0,
        strategy: "fedtvd".into(),
        local: Local { epochs: 1, ..Local::default() },
        class_weights,
        reference: Reference::uniform(CLASSES),
        branch: 0,
        params: Arc::new(Params { layout, values }),
        others: Vec::new(),
        carried: Arc::new(Memory::default()),
        own: Arc::default(),
    };
    let bytes =
        Job { client: 0, key: Key::of(1), accepted: None, matching: None, offer: Arc::new(offer) }.to_bytes();
    let transfer = wire::Transfer { round: 0, bytes: bytes.len() as u64 };
    Step::Messages(vec![work::Item::Train(transfer), work::Item::Chunk(bytes.into())])
}

fn parameters() -> usize {
    Layout::of(&network()).unwrap().len()
}

/// Joins a server of these steps; `None` if the client is still busy after some seconds.
async fn join(
    folder: &Path,
    (policy, data): (Policy, SiteData),
    welcome: wire::Welcome,
    steps: Vec<Step>,
    uploads: Vec<OnUpload>,
) -> (Option<Result<Outcome, String>>, Arc<Double>) {
    let (double, server) = Double::start(welcome, steps).await;
    *double.on_upload.lock().unwrap() = uploads.into();
    let options = Options::new(server, Double::security(), data, folder.to_owned());
    let give_up = Some(Duration::from_secs(1));
    let options = Options { policy, data_name: "data".into(), give_up, ..options };
    let joined = tokio::time::timeout(Duration::from_secs(10), client::join(options, &|_| {})).await;
    (joined.ok().map(|done| done.map_err(|error| error.to_string())), double)
}

fn daily(rounds_per_day: u64) -> (Policy, SiteData) {
    (Policy { rounds_per_day, ..Policy::default() }, data(40))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_update_of_a_day_can_be_continued() {
    let folder = tempfile::tempdir().unwrap();
    let distance = || survey("\"distance\"");
    let steps = vec![distance(), train(), distance(), train()];
    let (done, double) = join(folder.path(), daily(1), welcome(), steps, vec![OnUpload::Break(0)]).await;
    assert_eq!(done.unwrap().unwrap().stored, 1);
    assert_eq!(double.texts("Fail"), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn class_weights_that_leave_few_samples_are_refused() {
    // One sample of the second class.
    let values: Vec<f32> = (0..40 * 3).map(|place| (place % 7) as f32).collect();
    let labels = (0..40).map(|row| u32::from(row == 17)).collect();
    let samples = Samples::new([3, 1, 1], CLASSES, Values::Floats(values), labels, 40).unwrap();
    let class_names = vec!["no".into(), "yes".into()];
    let data = SiteData::Samples { samples: Arc::new(samples), class_names };
    for (weights, refused) in [(vec![1.0, 5.0], false), (vec![1e-6, 1e6], true)] {
        let folder = tempfile::tempdir().unwrap();
        let weights = ClassWeights::given(weights).unwrap();
        let steps = vec![survey("\"distance\""), job(vec![0.0; parameters()], weights)];
        let site = (Policy::default(), data.clone());
        let (done, double) = join(folder.path(), site, welcome(), steps, vec![]).await;
        let why = done.unwrap().err().unwrap_or_default();
        assert_eq!(why.contains("count as 1.0 (min-samples = 20)"), refused, "{why}");
        assert_eq!(double.texts("Upload").is_empty(), refused);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_that_fail_count_among_the_rounds_of_a_day() {
    let folder = tempfile::tempdir().unwrap();
    // Each overflows, which depends on the data.
    let failing = || job(vec![f32::MAX; parameters()], ClassWeights::Equal);
    let steps = std::iter::once(survey("\"distance\"")).chain((0..10).map(|_| failing())).collect();
    let (done, double) = join(folder.path(), daily(3), welcome(), steps, vec![]).await;
    done.unwrap().unwrap();
    let (limited, failed): (Vec<_>, Vec<_>) =
        double.texts("Fail").into_iter().partition(|why| why.contains("another update today"));
    assert_eq!((failed.len(), limited.len()), (3, 7), "{failed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_announced_evaluations_are_answered_and_no_more_than_rounds_per_day() {
    for (announced, answered) in [(false, 0), (true, 3)] {
        let folder = tempfile::tempdir().unwrap();
        let welcome = wire::Welcome { clients_evaluate: announced, ..welcome() };
        let steps = std::iter::once(survey("\"distance\"")).chain((0..50).map(|_| Step::Evaluate)).collect();
        let (_, double) = join(folder.path(), daily(3), welcome, steps, vec![]).await;
        assert_eq!(double.texts("Judge").len(), answered);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_kinds_of_distance_to_one_reference_are_two_disclosures() {
    let folder = tempfile::tempdir().unwrap();
    let steps = vec![survey("\"distance\""), Step::Drop, survey("\"released\"")];
    let (done, double) = join(folder.path(), daily(9), welcome(), steps, vec![]).await;
    assert!(done.unwrap().unwrap_err().contains("(references = 1)"));
    assert_eq!(double.texts("Enrol").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_asks_again_and_again_is_asked_less_and_less_often() {
    let folder = tempfile::tempdir().unwrap();
    let steps = (0..1_000_000).map(|_| survey("\"distance\"")).collect();
    let (_, double) = join(folder.path(), daily(9), welcome(), steps, vec![]).await;
    let answered = double.texts("Enrol").len();
    assert!((4..100).contains(&answered), "{answered} surveys");
    let folder = tempfile::tempdir().unwrap();
    let steps = vec![survey("\"distance\""), train()];
    let (done, _) = join(folder.path(), daily(9), welcome(), steps, vec![OnUpload::ProceedForEver]).await;
    assert!(done.is_some(), "the client still listens");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_of_the_far_future_is_not_remembered_and_a_missing_one_is_refused_once_one_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64;
    for (lease, works) in [(Some(u64::MAX), false), (Some(now), true), (Some(now + 1), true), (None, false)] {
        let (double, server) = Double::start(welcome(), vec![survey("\"distance\"")]).await;
        *double.lease.lock().unwrap() = lease;
        let options = Options::new(server, Double::security(), data(40), folder.path().to_owned());
        let options = Options { give_up: Some(Duration::from_millis(300)), ..options };
        let joined = tokio::time::timeout(Duration::from_secs(20), client::join(options, &|_| {})).await;
        assert_eq!(joined.unwrap().is_ok(), works, "{lease:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn false_offsets_and_the_last_number_of_a_round_do_no_harm() {
    for (first, second) in [
        (OnUpload::From(u64::MAX), OnUpload::From(5)),
        (OnUpload::From(1 << 40), OnUpload::From(0)),
        (OnUpload::Break(100), OnUpload::ReceiptOnly),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let distance = || survey("\"distance\"");
        let steps = vec![distance(), train(), distance(), train()];
        let (done, _) = join(folder.path(), daily(9), welcome(), steps, vec![first, second]).await;
        let listed = std::fs::read_to_string(folder.path().join("sent.jsonl")).unwrap();
        let updates = listed.lines().filter(|line| line.contains("\"update of round")).count();
        assert_eq!((done.unwrap().unwrap().stored, updates), (1, 1), "{first:?} {second:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let transfer = wire::Transfer { round: u32::MAX, bytes: 3 };
    let last = Step::Messages(vec![work::Item::Train(transfer), work::Item::Chunk(vec![0; 3].into())]);
    let steps = vec![survey("\"distance\""), last];
    let (done, double) = join(folder.path(), daily(9), welcome(), steps, vec![]).await;
    done.unwrap().unwrap();
    assert_eq!(double.texts("Fail").len(), 1);
}
