//! Strategies by name: `fedprox+fedtvd:temperature=0.1+fedadam`.
//!
//! Each name contributes the rules in which it differs from FedAvg, in any order. Two names that define the same rule
//! are an error; a rule that a method merely suggests is replaced by any name that defines it.

use crate::rules::{Outside, Recipe, Rule, Settings, Spec, Strategy};
use crate::settings::{Param, ParamError, nearest};
use crate::strategy;
use thiserror::Error;

/// Why a name is not a strategy.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum NotationError {
    /// An empty name.
    #[error("\"{0}\" has an empty strategy name; write names joined by +, such as fedtvd+balanced")]
    Empty(String),
    /// No method has this name.
    #[error("there is no strategy {name}; did you mean {nearest}? (fedtvd strategies lists all)")]
    Unknown {
        /// The name given.
        name: String,
        /// The nearest known name.
        nearest: String,
    },
    /// The same name twice.
    #[error("{0} is named twice")]
    Twice(&'static str),
    /// Two names define the same rule.
    #[error("{first} and {second} both change {rule}; use one of them")]
    Clash {
        /// The first method.
        first: &'static str,
        /// The second method.
        second: &'static str,
        /// The rule that both define.
        rule: Rule,
    },
    /// A rule that another method must not change.
    #[error("{owner} cannot be combined with {other}, which changes {rule}: {why}")]
    Inseparable {
        /// The method that does not allow it.
        owner: &'static str,
        /// The method that changes the rule.
        other: &'static str,
        /// The rule.
        rule: Rule,
        /// The reason.
        why: &'static str,
    },
    /// Text after a colon that is not name=value.
    #[error("\"{0}\" is not a parameter; write name=value, as in fedtvd:lambda=0.5")]
    NoSetting(String),
    /// No named method has this parameter.
    #[error("{strategy} has no parameter {param}; {known}")]
    NoSuchParam {
        /// The strategy.
        strategy: String,
        /// The name given.
        param: String,
        /// The parameters that exist.
        known: String,
    },
    /// Two of the methods have this parameter.
    #[error("{first} and {second} both have {param}; write {first}.{param} or {second}.{param}")]
    Ambiguous {
        /// The first method.
        first: &'static str,
        /// The second method.
        second: &'static str,
        /// The parameter.
        param: String,
    },
    /// Rules from outside that cannot be made.
    #[error("{0}")]
    Outside(String),
    /// A value that is not allowed.
    #[error(transparent)]
    Param(#[from] ParamError),
}

/// A strategy by its name, with further parameters as (name, value) pairs.
///
/// A parameter's name may be prefixed with its method's, `fedadam.lr`, and must be if two methods share it.
pub fn strategy<'a>(
    name: &str,
    settings: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Strategy, NotationError> {
    let mut named = Vec::new();
    for word in name.split('+') {
        let mut parts = word.split(':').map(str::trim);
        let word = parts.next().filter(|word| !word.is_empty());
        let spec = find(word.ok_or_else(|| NotationError::Empty(name.to_owned()))?)?;
        if named.iter().any(|(other, _): &(&Spec, _)| other.name == spec.name) {
            return Err(NotationError::Twice(spec.name));
        }
        let mut chosen = Settings::defaults(spec);
        for part in parts {
            let (param, value) =
                part.split_once('=').ok_or_else(|| NotationError::NoSetting(part.to_owned()))?;
            chosen.set(own_param(spec, spec.name, param.trim())?, value.trim())?;
        }
        named.push((spec, chosen));
    }
    for (param, value) in settings {
        let place = owner(&named, name, param)?;
        let (spec, chosen) = &mut named[place];
        let bare = param.rsplit_once('.').map_or(param, |(_, bare)| bare);
        chosen.set(own_param(spec, name, bare)?, value)?;
    }
    merge(&named)
}

/// The method of this name.
pub fn find(name: &str) -> Result<&'static Spec, NotationError> {
    let all = strategy::all();
    all.iter().copied().find(|spec| spec.name == name).ok_or_else(|| {
        let names = all.iter().map(|spec| spec.name);
        NotationError::Unknown {
            name: name.to_owned(),
            nearest: nearest(name, names).unwrap_or_default().to_owned(),
        }
    })
}

fn own_param(spec: &'static Spec, strategy: &str, name: &str) -> Result<&'static Param, NotationError> {
    spec.params.iter().find(|param| param.name == name).ok_or_else(|| no_such_param(&[spec], strategy, name))
}

fn no_such_param(specs: &[&Spec], strategy: &str, param: &str) -> NotationError {
    let names: Vec<&str> = specs.iter().flat_map(|spec| spec.params).map(|param| param.name).collect();
    let known = match (nearest(param, names.iter().copied()), names.len()) {
        (None, _) => "it has no parameters".to_owned(),
        (Some(only), 1) => format!("it has {only}"),
        (Some(close), _) => format!("did you mean {close}? it has {}", names.join(", ")),
    };
    NotationError::NoSuchParam { strategy: strategy.to_owned(), param: param.to_owned(), known }
}

fn owner(named: &[(&'static Spec, Settings)], strategy: &str, param: &str) -> Result<usize, NotationError> {
    let (method, bare) = param.rsplit_once('.').map_or((None, param), |(m, bare)| (Some(m), bare));
    let mut owners = named.iter().enumerate().filter(|(_, (spec, _))| {
        method.is_none_or(|method| method == spec.name) && spec.params.iter().any(|p| p.name == bare)
    });
    match (owners.next(), owners.next()) {
        (Some((place, _)), None) => Ok(place),
        (Some((_, (first, _))), Some((_, (second, _)))) => {
            Err(NotationError::Ambiguous { first: first.name, second: second.name, param: bare.to_owned() })
        }
        (None, _) => {
            let specs: Vec<&Spec> = named.iter().map(|(spec, _)| *spec).collect();
            Err(no_such_param(&specs, strategy, param))
        }
    }
}

fn merge(named: &[(&'static Spec, Settings)]) -> Result<Strategy, NotationError> {
    let mut recipe = Recipe::default();
    let mut brought: Vec<(Rule, &'static str)> = Vec::new();
    for (spec, settings) in named {
        let own = (spec.build)(settings);
        if let Some(why) = own.outside.iter().find_map(Outside::failure) {
            return Err(NotationError::Outside(why));
        }
        for rule in own.rules() {
            if let Some((_, first)) = brought.iter().find(|(other, _)| *other == rule) {
                return Err(NotationError::Clash { first, second: spec.name, rule });
            }
            brought.push((rule, spec.name));
        }
        recipe = recipe.or(own);
    }
    for (spec, _) in named {
        for &(rule, why) in spec.keeps {
            if let Some((_, other)) = brought.iter().find(|(other, by)| *other == rule && *by != spec.name) {
                return Err(NotationError::Inseparable { owner: spec.name, other, rule, why });
            }
        }
    }
    for suggestion in named.iter().filter_map(|(spec, _)| spec.suggests) {
        let spec = find(suggestion)?;
        recipe = recipe.or((spec.build)(&Settings::defaults(spec)));
    }
    let words: Vec<String> =
        named.iter().map(|(spec, settings)| format!("{}{}", spec.name, settings.changes(spec))).collect();
    Ok(strategy::fedavg::complete(recipe, words.join("+")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(name: &str, settings: &[(&str, &str)]) -> String {
        strategy(name, settings.iter().copied()).unwrap_err().to_string()
    }

    #[test]
    fn each_name_contributes_its_own_rules() {
        let mixed = strategy("fedprox+fedtvd:temperature=0.1+fedadam", [("lambda", "0.25")]).unwrap();
        let printed = format!("{:?} {:?} {:?}", mixed.local, mixed.weighting, mixed.server);
        assert_eq!(mixed.label, "fedprox+fedtvd:lambda=0.25:temperature=0.1+fedadam");
        assert!(
            printed.contains("mu: 0.01")
                && printed.contains("lambda: 0.25")
                && printed.contains("beta1: 0.9")
        );
    }

    #[test]
    fn a_label_parses_to_the_same_strategy() {
        let first = strategy("fedtvd:temperature=0.1+balanced", [("tau", "0.5")]).unwrap();
        let again = strategy(&first.label, []).unwrap();
        assert_eq!(format!("{first:?}"), format!("{again:?}"));
    }

    #[test]
    fn a_suggested_rule_is_replaced_by_a_named_one() {
        let weights = |name| format!("{:?}", strategy(name, []).unwrap().weighting);
        assert_eq!(weights("scaffold"), weights("uniform"));
        assert_eq!(weights("scaffold+fedtvd"), weights("fedtvd"));
        assert_eq!(weights("fedtvd+median"), weights("fedtvd"));
    }

    #[test]
    fn wrong_names_are_refused_with_what_would_have_been_right() {
        assert_eq!(
            refusal("fedtvd+uniform", &[]),
            "fedtvd and uniform both change the clients' weights; use one of them"
        );
        assert_eq!(
            refusal("fedtdv", &[]),
            "there is no strategy fedtdv; did you mean fedtvd? (fedtvd strategies lists all)"
        );
        assert_eq!(
            refusal("fedtvd", &[("lamda", "0.5")]),
            "fedtvd has no parameter lamda; did you mean lambda? it has lambda, temperature"
        );
        assert_eq!(refusal("fedtvd:lambda=1.5", &[]), "lambda = 1.5 is not allowed; it must be 0 to 1");
        assert_eq!(refusal("fedtvd", &[("lambda", "NaN")]), "lambda = NaN is not allowed; it must be 0 to 1");
        assert_eq!(
            refusal("fedtvd+", &[]),
            "\"fedtvd+\" has an empty strategy name; write names joined by +, such as fedtvd+balanced"
        );
        assert_eq!(refusal("fedtvd+fedtvd", &[]), "fedtvd is named twice");
        assert_eq!(
            refusal("balanced+fedlc", &[("tau", "1")]),
            "balanced and fedlc both have tau; write balanced.tau or fedlc.tau"
        );
    }

    #[test]
    fn scaffold_refuses_other_ways_to_combine() {
        let message = refusal("median+scaffold", &[]);
        assert!(
            message.starts_with("scaffold cannot be combined with median, which changes how updates"),
            "{message}"
        );
    }
}
