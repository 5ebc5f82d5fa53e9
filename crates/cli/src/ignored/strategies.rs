//! Strategies and parameters that a subcommand with several strategies does not use.

use crate::request::{Failure, refuse_each};
use anyhow::anyhow;
use fedtvd_lab::runs::setting::shown;
use fedtvd_run::configuration::{Config, keys};

/// Refuses `--set` of a strategy or of parameters that the strategies of a subcommand do not have; notes on those of the file.
pub(crate) fn strategies(
    set: &[String],
    config: &Config,
    strategies: &[String],
    subcommand: &str,
) -> Result<Vec<String>, Failure> {
    refuse_each(set, |path| (path == "strategy.name").then(|| format!(": {subcommand} uses --strategies")))?;
    let params = parameters(set, config, strategies)?;
    let named = config.paths().iter().any(|path| path == "strategy.name");
    let name = shown(&config.get("strategy.name"));
    let other = (named && !strategies.contains(&name)).then(|| {
        format!(
            "{subcommand} ignores strategy.name = {name} of the configuration and uses {}",
            strategies.join(", ")
        )
    });
    Ok(other.into_iter().chain(params).collect())
}

/// Refuses `--set` of parameters that none of these strategies takes; notes on those of the file.
pub(crate) fn parameters(
    set: &[String],
    config: &Config,
    strategies: &[String],
) -> Result<Vec<String>, Failure> {
    let (untaken, all) = (untaken(config, strategies), strategies.join(", "));
    refuse_each(set, |path| {
        untaken.iter().any(|own| own == path).then(|| format!(": none of {all} takes {path}"))
    })?;
    Ok(untaken.iter().map(|path| format!("{path} is ignored: none of {all} takes it")).collect())
}

/// The paths of parameters that none of these strategies takes.
fn untaken(config: &Config, strategies: &[String]) -> Vec<String> {
    let taken: Vec<(String, String)> =
        strategies.iter().flat_map(|name| config.with_strategy_beside(name).params()).collect();
    let params = config.params().into_iter().filter(|param| !taken.contains(param));
    params.map(|(name, _)| format!("strategy.{name}")).collect()
}

/// Fails if a list of a sweep has a parameter that none of these strategies takes.
pub(crate) fn refuse_untaken(swept: &[String], strategies: &[String]) -> Result<(), Failure> {
    for path in swept.iter().filter(|path| path.starts_with("strategy.") && keys::find(path).is_none()) {
        let mut config = Config::default();
        config.set(&format!("{path}=1")).map_err(Failure::request)?;
        if !untaken(&config, strategies).is_empty() {
            let all = strategies.join(", ");
            return Err(Failure::Request(anyhow!(
                "{path} of the [sweep] table has no effect: none of {all} takes it"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const USED: [&str; 2] = ["fedavg", "fedtvd"];

    fn given(set: &[&str], in_file: &[&str]) -> Result<Vec<String>, String> {
        let mut config = Config::default();
        [in_file, set].concat().iter().for_each(|setting| config.set(setting).unwrap());
        let set: Vec<String> = set.iter().map(|setting| (*setting).to_owned()).collect();
        match strategies(&set, &config, &USED.map(str::to_owned), "compare") {
            Ok(notes) => Ok(notes),
            Err(Failure::Request(error) | Failure::Work(error)) => Err(error.to_string()),
        }
    }

    #[test]
    fn a_strategy_that_is_not_used_is_noted_in_a_file_and_refused_on_the_command_line() {
        assert_eq!(given(&[], &[]), Ok(Vec::new()));
        assert_eq!(given(&[], &["strategy.name=fedtvd"]), Ok(Vec::new()));
        let note = "compare ignores strategy.name = fedprox of the configuration and uses fedavg, fedtvd";
        assert_eq!(given(&[], &["strategy.name=fedprox"]), Ok(vec![note.to_owned()]));
        let error = "--set strategy.name=fedtvd has no effect: compare uses --strategies";
        assert_eq!(given(&["strategy.name=fedtvd"], &[]), Err(error.to_owned()));
    }

    #[test]
    fn a_parameter_that_no_strategy_takes_is_noted_in_a_file_and_refused_elsewhere() {
        assert_eq!(given(&["lambda=0.3"], &[]), Ok(Vec::new()));
        let note = "strategy.mu is ignored: none of fedavg, fedtvd takes it";
        assert_eq!(given(&[], &["mu=0.3"]), Ok(vec![note.to_owned()]));
        let error = "--set mu=0.3 has no effect: none of fedavg, fedtvd takes strategy.mu";
        assert_eq!(given(&["mu=0.3"], &[]), Err(error.to_owned()));
        let swept = |path: &str| refuse_untaken(&[path.to_owned()], &USED.map(str::to_owned));
        assert!(swept("strategy.lambda").is_ok() && swept("strategy.mode").is_ok() && swept("seed").is_ok());
        let Err(Failure::Request(error)) = swept("strategy.mu") else { panic!("nobody takes it") };
        let sentence = "strategy.mu of the [sweep] table has no effect: none of fedavg, fedtvd takes it";
        assert_eq!(error.to_string(), sentence);
    }
}
