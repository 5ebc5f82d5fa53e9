//! Tests of a site's data and training.

use super::*;
use crate::client::{Security, SiteData};
use fedtvd_core::round::Offer;
use fedtvd_core::stream::Key;
use fedtvd_core::train::{ClassWeights, Values};

/// A site with four rows of two classes.
fn site(folder: PathBuf) -> Site {
    let samples = Samples::new([2, 1, 1], 2, Values::Floats(vec![0.5; 8]), vec![0, 0, 0, 1], 4).unwrap();
    let (samples, class_names) = (Arc::new(samples), vec!["no".to_owned(), "yes".to_owned()]);
    let network = fedtvd_nn::models::named("logistic", [2, 1, 1], 2).unwrap();
    let welcome = wire::Welcome {
        run: "run".to_owned(),
        network: serde_json::to_string(&network).unwrap(),
        classes: class_names.clone(),
        ..wire::Welcome::default()
    };
    let data = SiteData::Samples { samples, class_names };
    let readable = data.read("").unwrap();
    let security = Security::Claimed("0".to_owned());
    let policy = Policy { min_samples: 2, ..Policy::default() };
    let options = Options { policy, ..Options::new(String::new(), security, data, folder) };
    Site::new(&welcome, &options, &readable).unwrap()
}

fn offer(site: &Site, strategy: &str, carried: Memory) -> Offer {
    Offer {
        round: 0,
        strategy: strategy.to_owned(),
        local: Local::default(),
        class_weights: ClassWeights::Equal,
        reference: Reference::uniform(2),
        branch: 0,
        params: Arc::new(Params::initial(Arc::clone(&site.parts.whole), 1)),
        others: Vec::new(),
        carried: Arc::new(carried),
        own: Arc::default(),
    }
}

fn answer(site: &mut Site, offer: Offer) -> Result<Vec<u8>, ClientFailure> {
    let job = Job { client: 0, key: Key::of(1), accepted: None, matching: None, offer: Arc::new(offer) };
    match site.train(&job.to_bytes()).unwrap() {
        Answer::Update(bytes) => Ok(bytes),
        Answer::Failure(failure) => Err(failure),
        Answer::Refused(violation) => panic!("{violation}"),
    }
}

#[test]
fn a_job_with_other_vectors_than_its_strategy_declares_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut site = site(folder.path().to_owned());
    let vector = vec![0.0f32; site.parts.whole.len()];
    let mut job = |strategy: &str, names: &[&str]| {
        let mut carried = Memory::default();
        names.iter().for_each(|name| carried.put(name, vector.clone()));
        let offer = offer(&site, strategy, carried);
        answer(&mut site, offer).map(|_| ())
    };
    assert_eq!(job("fedavg", &[]), Ok(()));
    assert_eq!(job("scaffold", &["control"]), Ok(()));
    let bad = |why: &str| Err(ClientFailure::BadJob(why.to_owned()));
    assert_eq!(job("fedavg", &["control"]), bad("fedavg has no vector \"control\" of this length"));
    assert_eq!(job("scaffold", &["control", "more"]), bad("scaffold has no vector \"more\" of this length"));
    assert_eq!(job("scaffold", &[]), bad("the vector \"control\" is missing"));
}

#[test]
fn a_job_with_a_reference_over_other_classes_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut site = site(folder.path().to_owned());
    for classes in [1, 3] {
        let reference = Reference::uniform(classes);
        let offer = Offer { reference, ..offer(&site, "fedtvd", Memory::default()) };
        let why = format!("its reference has {classes} shares, but there are 2 classes");
        assert_eq!(answer(&mut site, offer), Err(ClientFailure::BadJob(why)));
    }
}

#[test]
fn a_job_with_class_weights_for_other_classes_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut site = site(folder.path().to_owned());
    let mut answer = |class_weights| {
        let offer = Offer { class_weights, ..offer(&site, "fedavg", Memory::default()) };
        answer(&mut site, offer)
    };
    let plain = answer(ClassWeights::Equal).unwrap();
    assert_ne!(answer(ClassWeights::Inverse).unwrap(), plain);
    assert_ne!(answer(ClassWeights::given(vec![1.0, 5.0]).unwrap()).unwrap(), plain);
    let refused = answer(ClassWeights::given(vec![1.0, 5.0, 1.0]).unwrap()).unwrap_err();
    let why = "its class weights: 3 numbers were given, but there are 2 classes";
    assert_eq!(refused, ClientFailure::BadJob(why.to_owned()));
}
