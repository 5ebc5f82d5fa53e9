//! Successive halving: all candidates train for a few rounds, the best of them continue for more (Jamieson and Talwalkar 2016,
//! "Non-stochastic best arm identification and hyperparameter optimization").

/// One step, a rung: how long candidates train, and how many of them continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rung {
    /// Rounds that each candidate has trained for at its end.
    pub rounds: u32,
    /// Number of candidates that are kept.
    pub kept: usize,
}

/// The steps for this number of candidates: without a factor, one of all rounds that keeps the best. With one, each step keeps a
/// candidate of `factor` and trains it `factor` times as long, so that every step costs about the same; none is shorter than
/// `least` rounds.
pub fn ladder(candidates: usize, rounds: u32, factor: Option<u32>, least: u32) -> Vec<Rung> {
    let Some(factor) = factor.filter(|factor| *factor > 1) else { return vec![Rung { rounds, kept: 1 }] };
    let mut rungs = vec![rounds];
    let mut left = candidates;
    while left > factor as usize && rungs[0] / factor >= least.max(1) {
        rungs.insert(0, rungs[0] / factor);
        left = left.div_ceil(factor as usize);
    }
    let mut left = candidates;
    let last = rungs.len() - 1;
    let rung = |(place, rounds): (usize, u32)| {
        left = if place == last { 1 } else { left.div_ceil(factor as usize) };
        Rung { rounds, kept: left }
    };
    rungs.into_iter().enumerate().map(rung).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(candidates: usize, rounds: u32, factor: Option<u32>) -> Vec<(u32, usize)> {
        ladder(candidates, rounds, factor, 5).iter().map(|rung| (rung.rounds, rung.kept)).collect()
    }

    #[test]
    fn without_halving_all_candidates_train_to_the_end() {
        assert_eq!(steps(27, 100, None), [(100, 1)]);
    }

    #[test]
    fn each_step_keeps_a_third_and_trains_three_times_as_long() {
        assert_eq!(steps(27, 90, Some(3)), [(10, 9), (30, 3), (90, 1)]);
        assert_eq!(steps(10, 90, Some(3)), [(10, 4), (30, 2), (90, 1)]);
    }

    #[test]
    fn few_candidates_and_short_runs_have_fewer_steps() {
        assert_eq!(steps(3, 90, Some(3)), [(90, 1)]);
        assert_eq!(steps(1000, 12, Some(2)), [(6, 500), (12, 1)]);
        assert_eq!(steps(1, 90, Some(3)), [(90, 1)]);
    }
}
