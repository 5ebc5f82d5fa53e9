//! The memory that a job takes from its arrival to its update, besides what training takes.

use fedtvd_core::model::Layout;
use fedtvd_core::rules::Needs;

/// Vectors as long as the model that a strategy with control variates holds at its end: what the client remembered,
/// what it will remember, what it sends, the correction of the gradient, and zeros in place of a missing vector.
const STRATEGY_VECTORS: u128 = 5;

/// Bytes of a job that arrived in `bytes` bytes: these, the vectors decoded from them, and those of its strategy. The
/// models, one of which is the update's bytes, are part of the memory of training.
pub(crate) fn job_memory(layout: &Layout, needs: &Needs, bytes: usize) -> u128 {
    let (bytes, model) = (bytes as u128, 4 * layout.len() as u128);
    let carried = bytes.saturating_sub(model);
    let own = if needs.remembers || !needs.carries.is_empty() { STRATEGY_VECTORS * model } else { 0 };
    bytes + carried + own
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedtvd_core::rules::notation;

    #[test]
    fn a_strategy_that_sends_vectors_takes_more_memory_than_one_that_sends_the_model_alone() {
        let network = fedtvd_nn::models::named("logistic", [999, 1, 1], 2).unwrap();
        let layout = Layout::of(&network).unwrap();
        let memory = |strategy: &str, bytes| {
            job_memory(&layout, &notation::strategy(strategy, []).unwrap().needs(), bytes)
        };
        // 2,000 numbers of four bytes and a head of 500 bytes, which counts twice; one more vector.
        assert_eq!(memory("fedavg", 8_500), 8_500 + 500);
        assert_eq!(memory("scaffold", 16_500), 16_500 + 8_500 + 5 * 8_000);
    }
}
