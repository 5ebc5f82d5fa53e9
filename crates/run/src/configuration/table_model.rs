//! The model of a table for which no model is named: a perceptron with sizes from the data.

use crate::configuration::{Config, Value};
use fedtvd_core::model::Shape;

/// The layers for a table with this many inputs: two hidden layers, the first about twice as wide as the input.
pub(crate) fn table_layers(inputs: usize) -> Vec<String> {
    let wide = (2 * inputs).next_power_of_two().clamp(16, 256);
    let hidden = |size: usize| [format!("linear {size}"), "relu".to_owned()];
    let layers = ["flatten".to_owned()].into_iter().chain(hidden(wide)).chain(hidden(wide / 2));
    layers.chain(["linear".to_owned()]).collect()
}

/// Whether samples of this shape are rows of a table.
pub(crate) fn is_table(shape: Shape) -> bool {
    shape[1..] == [1, 1]
}

const KEYS: [&str; 2] = ["model.name", "model.layers"];

impl Config {
    /// Whether a model is named or defined.
    pub(crate) fn chooses_model(&self) -> bool {
        KEYS.iter().any(|key| self.set.contains_key(key))
    }

    /// The same configuration, with the layers of a table's model written out if none is chosen.
    pub fn with_model_for(&self, shape: Shape) -> Self {
        let mut config = self.clone();
        if !self.chooses_model() && is_table(shape) {
            let layers = table_layers(shape[0]).into_iter().map(Value::Text).collect();
            config.set.insert("model.name", Value::Text("mlp".to_owned()));
            config.set.insert("model.layers", Value::List(layers));
        }
        config
    }

    /// The same configuration with the model of another one, if this one chooses none.
    pub fn with_model_of(&self, other: &Self) -> Self {
        let mut config = self.clone();
        if !self.chooses_model() {
            config.set.extend(KEYS.iter().filter_map(|key| Some((*key, other.set.get(key)?.clone()))));
        }
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::Experiment;
    use crate::setup::definition;

    #[test]
    fn a_table_gets_a_perceptron_of_its_size_unless_a_model_is_chosen() {
        let config = Config::default();
        let network = |config: &Config, shape| definition(&Experiment::of(config).unwrap(), shape, 2);
        let made = network(&config, [30, 1, 1]).unwrap();
        // 30 * 64 + 64, 64 * 32 + 32, 32 * 2 + 2.
        assert_eq!(made.layout().unwrap().len(), 1984 + 2080 + 66);
        // The resolved configuration says so, and gives the same layers when it is read again.
        let stored = Config::parse(&config.with_model_for([30, 1, 1]).resolved()).unwrap();
        assert_eq!(network(&stored, [30, 1, 1]).unwrap(), made);
        assert!(stored.resolved().contains("\"linear 64\""), "{}", stored.resolved());
        assert_eq!(config.with_model_of(&stored).resolved(), stored.resolved());
        assert_eq!(config.with_model_for([1, 28, 28]), config);
        let mut lenet = Config::default();
        lenet.set("model.name=lenet").unwrap();
        assert!(network(&lenet, [30, 1, 1]).is_err());
    }
}
