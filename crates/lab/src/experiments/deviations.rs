//! How a configuration deviates from the paper's protocol, so that its accuracies cannot be compared with the paper's.

use crate::experiments::preset::protocol;
use crate::runs::setting::shown;
use fedtvd_core::settings::ParamKind;
use fedtvd_run::configuration::{Config, keys};

/// Keys that are not part of the protocol: what is run and recorded, not how.
const FREE: [&str; 6] = ["name", "seed", "data.set", "model.name", "strategy.name", "evaluation.details"];

/// Every deviation as `rounds = 1 (300)`: the value, and the paper's value in parentheses.
pub fn deviations(config: &Config) -> Vec<String> {
    let (papers, set) = (protocol(), config.paths());
    let own = |key: &&keys::Key| match key.param.kind {
        ParamKind::Seed => set.iter().any(|path| path == key.path()),
        _ => !FREE.contains(&key.path()) && config.get(key.path()) != papers.get(key.path()),
    };
    let word = |key: &keys::Key| {
        let paper = match key.param.kind {
            ParamKind::Seed => "follows seed".to_owned(),
            _ => shown(&papers.get(key.path())),
        };
        format!("{} = {} ({paper})", key.path(), shown(&config.get(key.path())))
    };
    keys::ALL.iter().filter(own).map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deviation_is_shown_with_the_papers_value() {
        assert_eq!(deviations(&protocol()), Vec::<String>::new());
        let mut config = protocol();
        for setting in
            ["local.lr=0.5", "rounds=1", "split.seed=7", "name=\"mine\"", "evaluation.details=false"]
        {
            config.set(setting).unwrap();
        }
        assert_eq!(
            deviations(&config),
            ["rounds = 1 (300)", "split.seed = 7 (follows seed)", "local.lr = 0.5 (0.01)"]
        );
    }
}
