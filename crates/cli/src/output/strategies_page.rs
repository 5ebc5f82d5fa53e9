//! Pages of the documentation that are made from the program itself.

use crate::commands::strategies::default;
use fedtvd_core::settings::Param;
use fedtvd_core::strategy::ALL;
use std::fmt::Write as _;

/// `docs/strategies.md`.
pub(crate) fn strategies() -> String {
    let mut text = String::from(
        "# Strategies\n\n\
         Made by `fedtvd strategies --markdown` from the specs in `crates/core/src/strategy/`.\n\n\
         Names combine with `+`: each contributes the rules in which it departs from FedAvg, in any order. \
         `fedtvd:temperature=0.1+balanced` sets parameters in the name; `--set lambda=0.25` sets them beside it \
         (`--set strategy.fedadam.lr=0.1` where two methods share a name).\n\n\
         | name | changes | what it does |\n|---|---|---|\n",
    );
    for spec in ALL {
        let recipe = (spec.build)(&fedtvd_core::rules::Settings::defaults(spec));
        let parts: Vec<String> = recipe.rules().iter().map(ToString::to_string).collect();
        let changes =
            if parts.is_empty() { "nothing: the others depart from it".to_owned() } else { parts.join(", ") };
        let _ = writeln!(text, "| [`{}`](#{}) | {changes} | {} |", spec.name, spec.name, spec.about);
    }
    for spec in ALL {
        let _ = writeln!(text, "\n## {}\n\n{}.\n\nPaper: {}.", spec.name, capital(spec.about), spec.paper);
        if !spec.params.is_empty() {
            text += "\n| parameter | default | allowed | meaning |\n|---|---|---|---|\n";
            for param in spec.params {
                let Param { name, kind, about } = param;
                let _ = writeln!(text, "| `{name}` | {} | {kind} | {about} |", default(param));
            }
        }
        if let Some(other) = spec.suggests {
            let _ = writeln!(text, "\nTakes the weights of `{other}` unless another name brings weights.");
        }
        if let Some((part, why)) = spec.keeps {
            let _ = writeln!(text, "\nNo other name may change {part}: {why}.");
        }
        for (property, why) in spec.lacks {
            let _ = writeln!(text, "\nUnlike most methods, {property}: {why}.");
        }
    }
    text
}

fn capital(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
