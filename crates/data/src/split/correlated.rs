//! Size and skew drawn separately, with a chosen rank correlation between them.
//!
//! Sizes are log-normal with the given spread. Label distributions are Dir(a_k, ..., a_k), the a_k spaced
//! evenly in logarithm from `alpha` to `alpha_even`, and ranked by their TVD against the data's own label
//! distribution. A Gaussian copula decides which size goes with which distribution: two normal numbers per client
//! with Pearson correlation 2 sin(pi rho / 6) have rank correlation rho. The table of sizes and
//! distributions is then fitted to what there is (its rows to the sizes, its columns to the classes), so that
//! every row of data is dealt; this moves the realised correlation, which the statistics report.

use super::gamma::{log_gamma, weights};
use super::partition::{cut, first_that_fits};
use super::quantity::ends;
use super::{Deck, Partition, SplitError};
use fedtvd_core::stream::{Purpose, Stream};

/// The parameters of a split with correlated size and skew.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Correlated {
    /// How many clients.
    pub clients: usize,
    /// Concentration of the most skewed client.
    pub alpha: f64,
    /// Concentration of the most even client.
    pub alpha_even: f64,
    /// Standard deviation of the logarithm of sizes.
    pub spread: f64,
    /// Rank correlation of size and TVD: 1 makes the large clients the skewed ones.
    pub correlation: f64,
    /// The least rows of a client.
    pub min_size: usize,
    /// How often to draw before giving up.
    pub tries: u32,
}

impl Correlated {
    /// The training rows dealt to the clients.
    pub fn split(&self, deck: &Deck, seed: u64) -> Result<Partition, SplitError> {
        deck.check(self.clients, self.min_size)?;
        SplitError::unless_positive("alpha", self.alpha)?;
        SplitError::unless_positive("alpha_even", self.alpha_even)?;
        if !(0.0..=5.0).contains(&self.spread) {
            return Err(SplitError::range("spread", self.spread, "0 to 5"));
        }
        if !(-1.0..=1.0).contains(&self.correlation) {
            return Err(SplitError::range("correlation", self.correlation, "-1 to 1"));
        }
        let classes = deck.by_class();
        first_that_fits(self.tries, self.min_size, |attempt| Some(self.attempt(&classes, seed, attempt)))
    }

    fn attempt(&self, classes: &[Vec<u32>], seed: u64, attempt: u32) -> Vec<Vec<u32>> {
        let mut stream = Stream::at(seed, Purpose::Split, attempt, 0);
        let supply: Vec<f64> = classes.iter().map(|rows| rows.len() as f64).collect();
        let (by_size, by_skew) = self.ranks(&mut stream);
        let sizes = self.sizes(&mut stream);
        let mixes = self.mixes(&supply, &mut stream);
        let row = |(size, skew): (&usize, &usize)| (sizes[*size], mixes[*skew].clone());
        let mut table: Vec<(f64, Vec<f64>)> = by_size.iter().zip(&by_skew).map(row).collect();
        fit(&mut table, &supply);
        let mut clients = vec![Vec::new(); self.clients];
        for (class, rows) in classes.iter().enumerate() {
            let mut rows = rows.clone();
            stream.shuffle(&mut rows);
            let shares: Vec<f64> = table.iter().map(|(_, row)| row[class]).collect();
            for (client, part) in clients.iter_mut().zip(cut(&rows, &ends(&shares, rows.len()))) {
                client.extend(part);
            }
        }
        clients
    }

    /// For each client its rank by size and by skew.
    fn ranks(&self, stream: &mut Stream) -> (Vec<usize>, Vec<usize>) {
        let pearson = 2.0 * (std::f64::consts::PI * self.correlation / 6.0).sin();
        let own = (1.0 - pearson * pearson).max(0.0).sqrt();
        let pair = |_| {
            let x = stream.normal();
            (x, pearson * x + own * stream.normal())
        };
        let (x, y): (Vec<f64>, Vec<f64>) = (0..self.clients).map(pair).unzip();
        (ranks(&x), ranks(&y))
    }

    /// Relative sizes, ascending.
    fn sizes(&self, stream: &mut Stream) -> Vec<f64> {
        let mut sizes: Vec<f64> = (0..self.clients).map(|_| (self.spread * stream.normal()).exp()).collect();
        sizes.sort_by(f64::total_cmp);
        sizes
    }

    /// Label distributions, the most even first.
    fn mixes(&self, supply: &[f64], stream: &mut Stream) -> Vec<Vec<f64>> {
        let total: f64 = supply.iter().sum();
        let (low, high) = (self.alpha.ln(), self.alpha_even.ln());
        let mix = |k: usize| {
            let a = (low + (high - low) * (k as f64 + 0.5) / self.clients as f64).exp();
            let logs: Vec<f64> = supply.iter().map(|_| log_gamma(stream, a)).collect();
            let open: Vec<bool> = supply.iter().map(|n| *n > 0.0).collect();
            // Fitting needs positive entries; a billionth is as good as none.
            let weights: Vec<f64> = weights(&logs, &open)
                .iter()
                .zip(&open)
                .map(|(w, open)| if *open { w + 1e-9 } else { 0.0 })
                .collect();
            let sum: f64 = weights.iter().sum();
            let q: Vec<f64> = weights.iter().map(|weight| weight / sum).collect();
            let tvd = q.iter().zip(supply).map(|(q, n)| (q - n / total).abs()).sum::<f64>() / 2.0;
            (tvd, q)
        };
        let mut mixes: Vec<(f64, Vec<f64>)> = (0..self.clients).map(mix).collect();
        mixes.sort_by(|a, b| a.0.total_cmp(&b.0));
        mixes.into_iter().map(|(_, q)| q).collect()
    }
}

/// Scales rows to the sizes and columns to the supply in turn (iterative proportional fitting), columns last.
fn fit(table: &mut [(f64, Vec<f64>)], supply: &[f64]) {
    let (all, rows): (f64, f64) = (table.iter().map(|(size, _)| size).sum(), supply.iter().sum());
    for _ in 0..200 {
        for (size, row) in table.iter_mut() {
            let scale = *size / all * rows / row.iter().sum::<f64>();
            row.iter_mut().for_each(|entry| *entry *= scale);
        }
        // An empty class has no entries, and 0 / 0 would spread.
        for (class, supply) in supply.iter().enumerate().filter(|(_, supply)| **supply > 0.0) {
            let scale = supply / table.iter().map(|(_, row)| row[class]).sum::<f64>();
            table.iter_mut().for_each(|(_, row)| row[class] *= scale);
        }
    }
}

/// The place of each value among the sorted ones.
fn ranks(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0; values.len()];
    order.into_iter().enumerate().for_each(|(rank, place)| ranks[place] = rank);
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Statistics;
    use fedtvd_core::statistic::Reference;

    #[test]
    fn the_realised_rank_correlation_is_near_the_chosen_one() {
        let labels: Vec<u32> = (0..60_000).map(|row| row % 10).collect();
        let deck = Deck { labels: &labels, classes: 10, groups: None };
        for chosen in [-0.8, -0.4, 0.0, 0.4, 0.8] {
            let split = Correlated {
                clients: 100,
                alpha: 0.1,
                alpha_even: 10.0,
                spread: 1.0,
                correlation: chosen,
                min_size: 2,
                tries: 1000,
            };
            let statistics =
                |seed| Statistics::of(&split.split(&deck, seed).unwrap(), &labels, &Reference::uniform(10));
            let realised =
                (0..10).filter_map(|seed| statistics(seed).size_tvd_rank_correlation).sum::<f64>() / 10.0;
            // 100 clients and 10 seeds leave a standard error of about 0.03; sampling noise in the TVD of
            // small clients and the fit to the supply pull by up to 0.1.
            assert!((realised - chosen).abs() < 0.15, "{chosen}: {realised}");
        }
    }
}
