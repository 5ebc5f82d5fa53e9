//! The optimality gaps F(w_T) − F(w*) and F_s(w_T) − F_s(w_s*) and the gradient dissimilarity δ² over rounds, for FedAvg
//! and FedTVD.

use super::descent::Objective;
use super::dissimilarity::Dissimilarity;
use super::logistic::Problem;
use super::reduction::Reduction;
use fedtvd_core::labels::{Reference, size};
use fedtvd_core::memory::Memory;
use fedtvd_core::round::Profile;
use fedtvd_core::rules::{NotationError, notation};
use fedtvd_core::stream::{Purpose, Stream};
use fedtvd_run::setup::Setup;
use serde::Serialize;

/// Parameters of the experiment.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Protocol {
    /// Rounds.
    pub rounds: u32,
    /// Full gradient steps of every client per round.
    pub steps: u32,
    /// Learning rate.
    pub lr: f64,
    /// Strength of the ridge (L2) penalty, which makes the problem strongly convex.
    pub ridge: f64,
    /// Clients in a random cohort, for δ² under partial participation.
    pub cohort: usize,
    /// Random cohorts per measured round.
    pub cohorts: u32,
}

impl Protocol {
    /// The default: four steps per round, like the paper's four epochs.
    pub const USUAL: Self = Self { rounds: 300, steps: 4, lr: 0.5, ridge: 0.01, cohort: 10, cohorts: 100 };
}

/// The rounds that are measured, in addition to the last.
pub const MEASURED_ROUNDS: [u32; 6] = [1, 3, 10, 30, 100, 300];

/// A strategy's optimality gaps after some rounds.
#[derive(Clone, Debug, Serialize)]
pub struct Gap {
    /// The strategy's label.
    pub strategy: String,
    /// Rounds done.
    pub round: u32,
    /// F(w) − F(w*), with clients weighted by size in F.
    pub whole: f64,
    /// F_s(w) − F_s(w_s*), with the strategy's weights in F_s.
    pub own: f64,
    /// δ² at w as the paper defines it: with equal weights for FedAvg, with its weights for FedTVD.
    pub delta: f64,
}

impl Gap {
    /// The smallest constant C for which F(w) − F(w*) ≤ C (1/T + δ²) holds here.
    pub fn constant(&self) -> f64 {
        self.whole / (1.0 / f64::from(self.round) + self.delta)
    }
}

/// The results of one split.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// Gaps of both strategies.
    pub gaps: Vec<Gap>,
    /// F(w_s*) − F(w*): the gap that remains when FedTVD's objective is minimised.
    pub bias: f64,
    /// δ² with all clients, and with random cohorts if these are smaller.
    pub reductions: Vec<Reduction>,
}

/// Runs both strategies on a split.
pub fn finding(setup: &Setup, protocol: &Protocol, seed: u64) -> Result<Finding, NotationError> {
    let problem = Problem::new(&setup.samples, protocol.ridge);
    let clients: Vec<Vec<u32>> = setup.clients.iter().map(|client| client.rows.clone()).collect();
    let sizes: Vec<u64> = setup.clients.iter().map(|client| size(&client.counts)).collect();
    let everyone: Vec<usize> = (0..clients.len()).collect();
    let weigh = Weigh { setup };
    let sized = weigh.shares("fedavg", &everyone)?;
    fn objective<'a>(problem: &'a Problem, clients: &'a [Vec<u32>], weights: &'a [f64]) -> Objective<'a> {
        Objective { problem, clients, weights }
    }
    let (_, least) = objective(&problem, &clients, &sized).minimum();
    let (mut gaps, mut whole, mut parts, mut bias) = (Vec::new(), Vec::new(), Vec::new(), 0.0);
    for strategy in ["fedavg", "fedtvd"] {
        let weights = weigh.shares(strategy, &everyone)?;
        let (best, own_least) = objective(&problem, &clients, &weights).minimum();
        bias = objective(&problem, &clients, &sized).gradient(&best).0 - least;
        let mut w = vec![0.0; problem.len()];
        for round in 1..=protocol.rounds {
            let (next, gradients) =
                objective(&problem, &clients, &weights).round(&w, protocol.steps, protocol.lr);
            let measured = MEASURED_ROUNDS.contains(&round) || round == protocol.rounds;
            if measured {
                let gradients: Vec<&[f64]> = gradients.iter().map(Vec::as_slice).collect();
                whole.push(Dissimilarity::of(&gradients, &sizes, &weigh.shares("fedtvd", &everyone)?));
                let mut stream = Stream::at(seed, Purpose::Cohort, round, 0);
                // A cohort of all clients would not be a sample.
                let cohorts = if protocol.cohort < everyone.len() { protocol.cohorts } else { 0 };
                for _ in 0..cohorts {
                    let mut cohort = everyone.clone();
                    stream.shuffle(&mut cohort);
                    cohort.truncate(protocol.cohort);
                    cohort.sort_unstable();
                    let own: Vec<&[f64]> = cohort.iter().map(|&k| gradients[k]).collect();
                    let n: Vec<u64> = cohort.iter().map(|&k| sizes[k]).collect();
                    parts.push(Dissimilarity::of(&own, &n, &weigh.shares("fedtvd", &cohort)?));
                }
            }
            w = next;
            if measured {
                let gap = |weights: &[f64], least: f64| {
                    objective(&problem, &clients, weights).gradient(&w).0 - least
                };
                let (whole, own) = (gap(&sized, least), gap(&weights, own_least));
                let gradients: Vec<Vec<f64>> =
                    clients.iter().map(|rows| problem.gradient(rows, &w).1).collect();
                let gradients: Vec<&[f64]> = gradients.iter().map(Vec::as_slice).collect();
                let dissimilarity = Dissimilarity::of(&gradients, &sizes, &weights);
                let delta = if strategy == "fedavg" { dissimilarity.even } else { dissimilarity.weighted };
                gaps.push(Gap { strategy: strategy.to_owned(), round, whole, own, delta });
            }
        }
    }
    let mut reductions = vec![Reduction::of("all clients", &whole)];
    if !parts.is_empty() {
        reductions.push(Reduction::of("cohorts", &parts));
    }
    Ok(Finding { gaps, bias, reductions })
}

/// Weights of clients under a named strategy.
struct Weigh<'a> {
    setup: &'a Setup,
}

impl Weigh<'_> {
    fn shares(&self, strategy: &str, clients: &[usize]) -> Result<Vec<f64>, NotationError> {
        let weighting = notation::strategy(strategy, [])?.weighting;
        let reference = Reference::uniform(self.setup.samples.classes());
        let profile = |&k: &usize| {
            let counts = &self.setup.clients[k].counts;
            let statistic = weighting.asks().answer(counts, &reference);
            Profile::new(k as u32, size(counts), statistic)
        };
        let profiles: Vec<Profile> = clients.iter().map(profile).collect();
        let profiles: Vec<&Profile> = profiles.iter().collect();
        Ok(weighting.shares(&profiles, &reference, &mut Memory::default()).weight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedtvd_data::set::Places;
    use fedtvd_run::configuration::{Config, Experiment};
    use fedtvd_run::setup::Data;

    #[test]
    fn gaps_are_never_negative_and_a_strategy_comes_closer_to_its_own_minimum() {
        let mut config = Config::default();
        config.set("clients=10").unwrap();
        let experiment = Experiment::of(&config).unwrap();
        let data = Data::load(&experiment.data, &Places::new(None)).unwrap();
        let setup = Setup::new(&experiment, &data).unwrap();
        let protocol = Protocol { rounds: 2, cohorts: 3, cohort: 4, ridge: 0.1, ..Protocol::USUAL };
        let finding = finding(&setup, &protocol, 1).unwrap();
        assert!(finding.gaps.iter().all(|gap| gap.whole >= 0.0 && gap.own >= 0.0), "{:?}", finding.gaps);
        assert!(finding.bias > 0.0, "FedTVD minimises another objective");
        let last = |name: &str| finding.gaps.iter().rfind(|gap| gap.strategy == name).unwrap();
        assert_eq!(last("fedavg").whole, last("fedavg").own);
        let [all, cohorts] = &finding.reductions[..] else { panic!("two kinds") };
        // Two strategies, the first and the last of two rounds, three cohorts each.
        assert_eq!((all.count, cohorts.count), (4, 12));
        assert!(finding.gaps.iter().all(|gap| gap.delta > 0.0));
        let gap = Gap { strategy: String::new(), round: 4, whole: 1.5, own: 0.0, delta: 0.5 };
        assert_eq!(gap.constant(), 2.0, "1.5 / (1/4 + 1/2)");
    }
}
