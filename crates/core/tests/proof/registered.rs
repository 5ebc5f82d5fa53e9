//! Methods that a program registers at run time.

use crate::federation::{SKEWED, local, run, skewed};
use fedtvd_core::labels::{Ask, Reference};
use fedtvd_core::memory::Memory;
use fedtvd_core::model::Params;
use fedtvd_core::round::{Accepted, Profile, ReadFailure, UpdatePart};
use fedtvd_core::rules::{
    Combine, Combined, NotationError, Origin, Outside, Recipe, Settings, Shares, Spec, Weighting, notation,
};
use fedtvd_core::settings::{Param, Range};
use fedtvd_core::strategy::{ALL, RegisterError, all, register};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// s_k = n_k^power / Σ n_j^power; fails for clients of `unlucky` samples.
#[derive(Debug)]
struct Power {
    power: f64,
    unlucky: u64,
    outside: Outside,
}

impl Weighting for Power {
    fn asks(&self) -> Ask {
        Ask::Nothing
    }

    fn shares(&self, profiles: &[&Profile], _: &Reference, _: &mut Memory) -> Shares {
        if profiles.iter().any(|profile| profile.size == self.unlucky) {
            self.outside.fail(format_args!("{} samples bring bad luck", self.unlucky));
        }
        let powers: Vec<f64> =
            profiles.iter().map(|profile| (profile.size as f64).powf(self.power)).collect();
        let sum: f64 = powers.iter().sum();
        let size = powers.iter().map(|power| power / sum).collect::<Vec<_>>();
        Shares { quality: None, weight: size.clone(), size }
    }
}

const PARAMS: &[Param] = &[
    Param::number("power", 0.5, Range::UNIT, "exponent of a client's size"),
    Param::whole("unlucky", 0, (0, 1000), "a size that fails"),
];

fn spec(
    name: &'static str,
    source: &str,
    build: impl Fn(&Settings, &Outside) -> Recipe + Send + Sync + 'static,
) -> Spec {
    let origin = Origin { source: source.to_owned(), build: Box::new(build) };
    Spec::outside(name, "an example of the tests of the registry", "no paper: an example", origin)
}

fn power(name: &'static str, source: &str) -> Spec {
    let build = |settings: &Settings, outside: &Outside| {
        let (power, unlucky) = (settings.number("power"), settings.whole("unlucky"));
        let weighting = Power { power, unlucky, outside: outside.clone() };
        Recipe { weighting: Some(Arc::new(weighting)), ..Recipe::default() }
    };
    Spec { params: PARAMS, ..spec(name, source, build) }
}

#[test]
fn a_registered_method_is_named_composed_and_parametrised_as_all_others() {
    register(power("power", "one")).unwrap();
    assert_eq!(all().len() - all().iter().filter(|spec| spec.outside.is_some()).count(), ALL.len());
    let strategy = notation::strategy("balanced+power:power=0.25+fedadam", [("unlucky", "7")]).unwrap();
    assert_eq!(strategy.label, "balanced+power:power=0.25:unlucky=7+fedadam");
    assert_eq!(
        strategy.outside.iter().map(|own| (own.name, own.source)).collect::<Vec<_>>(),
        [("power", "one")]
    );
    assert!(format!("{:?}", strategy.weighting).contains("power: 0.25"));
    assert_eq!(
        notation::strategy("power+fedtvd", []).unwrap_err().to_string(),
        "power and fedtvd both change the clients' weights; use one of them"
    );
    assert!(notation::strategy("power:power=2", []).is_err());
    assert!(notation::strategy("fedavg", []).unwrap().outside.is_empty());
    let unknown = notation::strategy("powr", []).unwrap_err().to_string();
    assert!(unknown.contains("did you mean power?"), "{unknown}");
}

#[test]
fn a_registered_method_makes_the_rounds_of_the_same_rules_in_the_program() {
    register(power("proportional", "one")).unwrap();
    let model = |label| {
        let mut federation = skewed(run(label, local(2, 4, 0.1, 0.9)), &SKEWED);
        federation.round();
        federation.state.params.values.clone()
    };
    assert_eq!(model("proportional:power=0+scaffold"), model("uniform+scaffold"));
    assert_eq!(model("proportional:power=1"), model("fedavg"));
}

#[test]
fn registering_a_name_again_replaces_its_rules_and_those_of_the_program_stay() {
    register(power("again", "first")).unwrap();
    let before = notation::strategy("again", []).unwrap();
    register(power("again", "second")).unwrap();
    assert_eq!(all().iter().filter(|spec| spec.name == "again").count(), 1);
    assert_eq!(notation::strategy("again", []).unwrap().outside[0].source, "second");
    assert_eq!(before.outside[0].source, "first", "a strategy keeps the rules that it was built from");
    assert_eq!(register(power("fedtvd", "x")), Err(RegisterError::Taken("fedtvd")));
    for name in ["", "My-Rule", "a+b", "a:b", "1st", "a b", "a.b"] {
        assert_eq!(register(power(name, "x")), Err(RegisterError::Name(name.to_owned())));
    }
    let bare = Spec::new("bare", "an example", "no paper: an example", |_| Recipe::default());
    assert_eq!(register(bare), Err(RegisterError::NoOrigin("bare")));
}

#[test]
fn a_rule_that_cannot_answer_is_a_failure_of_the_strategy() {
    register(power("unlucky", "one")).unwrap();
    let strategy = notation::strategy("unlucky:unlucky=13", []).unwrap();
    let shares = |size| {
        let profile = Profile::new(0, size, Ask::Nothing.answer(&[size, 0], &Reference::uniform(2)));
        strategy.weighting.shares(&[&profile], &Reference::uniform(2), &mut Memory::default());
    };
    shares(12);
    assert_eq!(strategy.failure(), None);
    shares(13);
    assert_eq!(strategy.failure().as_deref(), Some("unlucky: 13 samples bring bad luck"));
    assert_eq!(notation::strategy("unlucky:unlucky=13", []).unwrap().failure(), None, "each has its own");
}

#[test]
fn a_method_that_cannot_be_made_is_refused_when_it_is_named() {
    register(spec("odd", "one", |_, outside| {
        static CALLS: AtomicU64 = AtomicU64::new(0);
        if CALLS.fetch_add(1, Ordering::Relaxed) > 0 {
            outside.fail("it is used up");
        }
        let rule = Power { power: 1.0, unlucky: 0, outside: outside.clone() };
        Recipe { weighting: Some(Arc::new(rule)), ..Recipe::default() }
    }))
    .unwrap();
    let refusal = notation::strategy("odd+balanced", []).unwrap_err();
    assert_eq!(refusal, NotationError::Outside("odd: it is used up".to_owned()));
}

#[derive(Debug)]
struct Answer(fn(usize, u64) -> Vec<f64>, AtomicU64);

impl Weighting for Answer {
    fn asks(&self) -> Ask {
        Ask::Distance
    }

    fn shares(&self, profiles: &[&Profile], _: &Reference, _: &mut Memory) -> Shares {
        let weight = (self.0)(profiles.len(), self.1.fetch_add(1, Ordering::Relaxed));
        Shares { quality: None, size: vec![0.0; profiles.len()], weight }
    }
}

impl Combine for Answer {
    fn combine(
        &self,
        base: &Params,
        accepted: &mut Accepted<'_>,
        weights: &[f64],
        _: &mut Memory,
    ) -> Result<Combined, ReadFailure> {
        accepted.weighted_sum(UpdatePart::Model, 0..base.values.len(), weights)?;
        Ok(Combined { values: (self.0)(base.values.len(), 0), counted: weights.to_vec() })
    }
}

#[test]
fn rules_that_break_the_contract_on_small_examples_are_not_registered() {
    let refusal = |name, answer: Option<fn(usize, u64) -> Vec<f64>>| {
        let recipe = move |_: &Settings, _: &Outside| Recipe {
            weighting: answer.map(|answer| Arc::new(Answer(answer, AtomicU64::new(0))) as Arc<dyn Weighting>),
            ..Recipe::default()
        };
        register(spec(name, "one", recipe)).unwrap_err().to_string()
    };
    let told = |name: &str, why: &str| format!("{name} cannot be registered: {why}");
    assert_eq!(refusal("nothing", None), told("nothing", "it has no rule; write at least one"));
    assert_eq!(
        refusal("short", Some(|_, _| vec![1.0])),
        told("short", "the weights of 4 clients are 1 numbers")
    );
    assert_eq!(
        refusal("loose", Some(|clients, _| vec![1.0; clients])),
        told(
            "loose",
            "the weights must not be negative and must sum to 1, but are [1.0, 1.0, 1.0, 1.0] on a small example"
        )
    );
    assert_eq!(
        refusal("nan", Some(|clients, _| vec![f64::NAN; clients])),
        told("nan", "the weights are not all finite: NaN on a small example")
    );
    let moody = |clients: usize, call: u64| {
        (0..clients).map(|k| f64::from(u8::from(k as u64 == call % 2))).collect::<Vec<f64>>()
    };
    assert_eq!(
        refusal("moody", Some(moody)),
        told(
            "moody",
            "the weights differ when the rule is asked twice the same; what it remembers belongs into its memory"
        )
    );
    let short = |_: &Settings, _: &Outside| Recipe {
        combine: Some(Arc::new(Answer(|_, _| vec![0.0], AtomicU64::new(0)))),
        ..Recipe::default()
    };
    assert_eq!(
        register(spec("stub", "one", short)).unwrap_err().to_string(),
        told("stub", "the combined values of 6 parameters are 1 numbers")
    );
    assert!(all().iter().all(|spec| spec.name != "stub" && spec.name != "moody"));
}
