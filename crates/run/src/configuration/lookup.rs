//! Finds the key that a user means, written with or without its table.

use crate::configuration::ConfigError;
use crate::configuration::keys;
use crate::configuration::keys::Since;
use fedtvd_core::settings::nearest;
use fedtvd_core::strategy;

/// The path of a key that may have been written without its table.
pub(crate) fn full_path(name: &str) -> Result<String, ConfigError> {
    if name.contains('.') || keys::find(name).is_some() {
        return Ok(name.to_owned());
    }
    let mut named: Vec<String> = paths().into_iter().filter(|path| own_name(path) == name).collect();
    named.dedup();
    // A key that was added later must not make a name ambiguous that was not.
    let older = |path: &String| keys::find(path).is_none_or(|key| key.since == Since::First);
    if named.iter().any(older) {
        named.retain(older);
    }
    match named.as_slice() {
        [only] => Ok(only.clone()),
        [first, second, ..] => Err(ConfigError::Ambiguous {
            name: name.to_owned(),
            first: first.clone(),
            second: second.clone(),
        }),
        [] => Err(unknown("", name)),
    }
}

/// The error for a key that does not exist. A table's name alone most likely means the table's first key.
pub(crate) fn unknown(place: &str, typed: &str) -> ConfigError {
    let paths = paths();
    let compared = |path| if typed.contains('.') { path } else { own_name(path) };
    let inside = paths.iter().find(|path| path.split_once('.').is_some_and(|(table, _)| table == typed));
    let nearest = inside.or_else(|| {
        let close = nearest(typed, paths.iter().map(|path| compared(path)))?;
        paths.iter().find(|path| compared(path) == close)
    });
    ConfigError::Unknown {
        place: place.to_owned(),
        path: typed.to_owned(),
        nearest: nearest.cloned().unwrap_or_default(),
    }
}

/// The paths of all keys and of all strategies' parameters.
fn paths() -> Vec<String> {
    let all = strategy::all();
    let params = all.iter().flat_map(|spec| spec.params);
    let keys = keys::ALL.iter().map(|key| key.path().to_owned());
    keys.chain(params.map(|param| format!("strategy.{}", param.name))).collect()
}

fn own_name(path: &str) -> &str {
    path.rsplit_once('.').map_or(path, |(_, own)| own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_table_suggests_its_first_key_and_a_mistyped_name_the_nearest_one() {
        for (typed, meant) in [
            ("strategy", "strategy.name"),
            ("model", "model.name"),
            ("data", "data.set"),
            ("split", "split.kind"),
            ("splt.alpha", "split.alpha"),
            ("alhpa", "split.alpha"),
            ("lamda", "strategy.lambda"),
        ] {
            let message = format!("there is no key {typed}; did you mean {meant}?");
            assert_eq!(unknown("", typed).to_string(), message);
        }
    }

    #[test]
    fn a_bare_name_means_the_key_that_had_it_before_later_keys() {
        assert_eq!(full_path("clients").unwrap(), "split.clients", "not attack.clients");
        assert_eq!(full_path("kind").unwrap(), "split.kind", "not attack.kind");
        assert_eq!(full_path("liars").unwrap(), "cohort.liars");
    }
}
