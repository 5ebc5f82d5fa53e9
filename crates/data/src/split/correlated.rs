//! Size and skew drawn separately, with a chosen rank correlation between them.
//!
//! Sizes are log-normal with the given spread. Label distributions are Dir(a_k C p) around the data's own p, the
//! a_k spaced evenly in logarithm from `alpha` to `alpha_even`, and ranked by their TVD to the reference. A Gaussian
//! copula decides which size goes with which distribution: two normal numbers per client with Pearson
//! correlation 2 sin(pi rho / 6) have rank correlation rho. The table of sizes and distributions is then fitted to
//! the data (its rows to the sizes, its columns to the classes), so that every row of data is dealt.
//!
//! The fit, and whole rows at small clients, move the rank correlation of what is dealt. So the copula's own correlation
//! is moved by bisection until that of the dealt rows is within [`tolerance`] of the requested one; a draw that
//! cannot reach it is drawn again.

use super::dealt::{Terms, statistics};
use super::gamma::{log_gamma, weights};
use super::partition::cut;
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
    /// The minimum number of rows of a client.
    pub min_size: usize,
    /// How often to draw before giving up.
    pub tries: u32,
}

/// How far the rank correlation of a split may be from the requested one: 0.02 or, with few clients, half the distance
/// between two possible values; never more than a quarter.
pub fn tolerance(clients: usize) -> f64 {
    let n = clients as f64;
    (6.0 / (n * (n * n - 1.0))).clamp(0.02, 0.25)
}

/// Bisections of the copula's correlation before a draw is given up.
const STEPS: u32 = 24;

impl Correlated {
    /// The training rows dealt to the clients; distances are to the reference of the terms, and of the rows that
    /// clients train on.
    pub fn split(&self, deck: &Deck, terms: &Terms) -> Result<Partition, SplitError> {
        deck.check(self.clients, self.min_size)?;
        SplitError::unless_positive("alpha", self.alpha)?;
        SplitError::unless_positive("alpha_even", self.alpha_even)?;
        if !(0.0..=5.0).contains(&self.spread) {
            return Err(SplitError::range("spread", self.spread, "0 to 5"));
        }
        if !(-1.0..=1.0).contains(&self.correlation) {
            return Err(SplitError::range("correlation", self.correlation, "-1 to 1"));
        }
        let mut search = Search { options: self, deck, terms, smallest: 0, nearest: None };
        for attempt in 0..self.tries {
            if let Some(partition) = search.reached(&Draw::new(self, deck, terms, attempt)) {
                return Ok(partition);
            }
        }
        let Self { tries, min_size, correlation: asked, .. } = *self;
        match search {
            Search { smallest: best, .. } if best < min_size => {
                Err(SplitError::Tries { tries, best, min_size })
            }
            Search { nearest: None, .. } => Err(SplitError::NoCorrelation),
            Search { nearest: Some(nearest), .. } => {
                Err(SplitError::Correlation { asked, nearest, tolerance: tolerance(self.clients), tries })
            }
        }
    }
}

/// The best results of the search for a split.
struct Search<'a> {
    options: &'a Correlated,
    deck: &'a Deck<'a>,
    terms: &'a Terms<'a>,
    /// The smallest client of the best draw.
    smallest: usize,
    /// The rank correlation nearest to the requested one.
    nearest: Option<f64>,
}

impl Search<'_> {
    /// The split of a draw with the requested rank correlation, if it can reach it.
    fn reached(&mut self, draw: &Draw) -> Option<Partition> {
        let asked = self.options.correlation;
        let (mut low, mut high, mut first_below) = (-1.0, 1.0, false);
        let mut pearson = 2.0 * (std::f64::consts::PI * asked / 6.0).sin();
        for step in 0..STEPS {
            let partition = Partition::new(draw.dealt(pearson));
            let smallest = partition.clients.iter().map(Vec::len).min().unwrap_or(0);
            self.smallest = self.smallest.max(smallest);
            if smallest < self.options.min_size {
                return None;
            }
            let training = self.terms.training(&partition);
            let realised = statistics(&training, self.deck, self.terms).size_tvd_rank_correlation;
            let Some(realised) = realised else { return Some(partition).filter(|_| asked == 0.0) };
            let gap = |realised: f64| (realised - asked).abs();
            if self.nearest.is_none_or(|nearest| gap(realised) < gap(nearest)) {
                self.nearest = Some(realised);
            }
            if gap(realised) <= tolerance(self.options.clients) {
                return Some(partition);
            }
            let below = realised < asked;
            if step == 1 && below == first_below {
                // Not even the strongest coupling reaches it.
                return None;
            }
            if below {
                low = pearson
            } else {
                high = pearson
            }
            pearson = match (step, below) {
                (0, true) => high,
                (0, false) => low,
                _ => (low + high) / 2.0,
            };
            first_below = if step == 0 { below } else { first_below };
        }
        None
    }
}

/// All random draws of a split, except how sizes and skews are coupled.
struct Draw {
    /// Two independent normal numbers per client.
    normal: Vec<(f64, f64)>,
    /// Relative sizes, ascending.
    sizes: Vec<f64>,
    /// Label distributions, the most even first.
    mixes: Vec<Vec<f64>>,
    /// The rows of each class, shuffled.
    classes: Vec<Vec<u32>>,
}

impl Draw {
    fn new(options: &Correlated, deck: &Deck, terms: &Terms, attempt: u32) -> Self {
        let mut stream = Stream::at(terms.seed, Purpose::Split, attempt, 0);
        let normal = (0..options.clients).map(|_| (stream.normal(), stream.normal())).collect();
        let size = |_| (options.spread * stream.normal()).exp();
        let mut sizes: Vec<f64> = (0..options.clients).map(size).collect();
        sizes.sort_by(f64::total_cmp);
        let mut classes = deck.by_class();
        let mixes = mixes(options, &supply(&classes), terms, &mut stream);
        classes.iter_mut().for_each(|rows| stream.shuffle(rows));
        Self { normal, sizes, mixes, classes }
    }

    /// Each client's rows, with this correlation of the copula.
    fn dealt(&self, pearson: f64) -> Vec<Vec<u32>> {
        let own = (1.0 - pearson * pearson).max(0.0).sqrt();
        let by_size = ranks(&self.normal.iter().map(|(x, _)| *x).collect::<Vec<_>>());
        let by_skew = ranks(&self.normal.iter().map(|(x, y)| pearson * x + own * y).collect::<Vec<_>>());
        let row = |(size, skew): (&usize, &usize)| (self.sizes[*size], self.mixes[*skew].clone());
        let mut table: Vec<(f64, Vec<f64>)> = by_size.iter().zip(&by_skew).map(row).collect();
        fit(&mut table, &supply(&self.classes));
        let mut clients = vec![Vec::new(); table.len()];
        for (class, rows) in self.classes.iter().enumerate() {
            let shares: Vec<f64> = table.iter().map(|(_, row)| row[class]).collect();
            for (client, part) in clients.iter_mut().zip(cut(rows, &ends(&shares, rows.len()))) {
                client.extend(part);
            }
        }
        clients
    }
}

fn supply(classes: &[Vec<u32>]) -> Vec<f64> {
    classes.iter().map(|rows| rows.len() as f64).collect()
}

/// Label distributions, the most even first.
fn mixes(options: &Correlated, supply: &[f64], terms: &Terms, stream: &mut Stream) -> Vec<Vec<f64>> {
    let total: f64 = supply.iter().sum();
    let p: Vec<f64> = supply.iter().map(|n| n / total).collect();
    let reference = terms.reference.map_or(p.as_slice(), |reference| reference.shares());
    let open: Vec<bool> = supply.iter().map(|n| *n > 0.0).collect();
    let (low, high) = (options.alpha.ln(), options.alpha_even.ln());
    let mix = |k: usize| {
        let a = (low + (high - low) * (k as f64 + 0.5) / options.clients as f64).exp();
        // A class without rows has no gamma number.
        let log = |p: &f64| if *p > 0.0 { log_gamma(stream, a * p * supply.len() as f64) } else { 0.0 };
        let logs: Vec<f64> = p.iter().map(log).collect();
        // Fitting needs positive entries; a billionth is negligible.
        let some = |(w, open): (&f64, &bool)| if *open { w + 1e-9 } else { 0.0 };
        let weights: Vec<f64> = weights(&logs, &open).iter().zip(&open).map(some).collect();
        let sum: f64 = weights.iter().sum();
        let q: Vec<f64> = weights.iter().map(|weight| weight / sum).collect();
        let tvd = q.iter().zip(reference).map(|(q, r)| (q - r).abs()).sum::<f64>() / 2.0;
        (tvd, q)
    };
    let mut mixes: Vec<(f64, Vec<f64>)> = (0..options.clients).map(mix).collect();
    mixes.sort_by(|a, b| a.0.total_cmp(&b.0));
    mixes.into_iter().map(|(_, q)| q).collect()
}

/// Scales rows to the sizes and columns to the supply in turn (iterative proportional fitting), columns last.
fn fit(table: &mut [(f64, Vec<f64>)], supply: &[f64]) {
    let (all, rows): (f64, f64) = (table.iter().map(|(size, _)| size).sum(), supply.iter().sum());
    for _ in 0..200 {
        let mut change: f64 = 0.0;
        for (size, row) in table.iter_mut() {
            let scale = *size / all * rows / row.iter().sum::<f64>();
            change = change.max((scale - 1.0).abs());
            row.iter_mut().for_each(|entry| *entry *= scale);
        }
        // An empty class has no entries, and 0 / 0 would spread.
        for (class, supply) in supply.iter().enumerate().filter(|(_, supply)| **supply > 0.0) {
            let scale = supply / table.iter().map(|(_, row)| row[class]).sum::<f64>();
            table.iter_mut().for_each(|(_, row)| row[class] *= scale);
        }
        // Far less than a row.
        if change < 1e-9 {
            return;
        }
    }
}

/// The rank of each value.
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
    use fedtvd_core::labels::Reference;

    const SPLIT: Correlated = Correlated {
        clients: 100,
        alpha: 0.1,
        alpha_even: 10.0,
        spread: 1.0,
        correlation: 0.8,
        min_size: 2,
        tries: 1000,
    };

    /// A split of `rows` rows of each of 10 classes, thinned by a factor from class to class.
    fn realised(
        split: Correlated,
        per_class: f64,
        r: f64,
        seed: u64,
        holdout: f64,
    ) -> Result<f64, SplitError> {
        let rows = |class: i32| (per_class * r.powi(class)).round() as usize;
        let labels: Vec<u32> =
            (0..10).flat_map(|class| std::iter::repeat_n(class as u32, rows(class))).collect();
        let deck = Deck { labels: &labels, classes: 10, groups: None };
        let uniform = Reference::uniform(10);
        let terms = Terms { set: "x", seed, holdout, reference: Some(&uniform) };
        let training = terms.training(&split.split(&deck, &terms)?);
        Ok(statistics(&training, &deck, &terms).size_tvd_rank_correlation.unwrap())
    }

    #[test]
    fn the_rank_correlation_of_what_is_dealt_is_the_one_that_was_asked_for() {
        for (per_class, r, holdout) in
            [(6000.0, 1.0, 0.0), (1200.0, 1.0, 0.0), (1200.0, 0.9, 0.0), (6000.0, 1.0, 0.2)]
        {
            for correlation in [-0.8, 0.0, 0.8] {
                for seed in 0..3 {
                    let got =
                        realised(Correlated { correlation, ..SPLIT }, per_class, r, seed, holdout).unwrap();
                    let near = (got - correlation).abs() <= 0.02;
                    assert!(
                        near,
                        "{per_class} x {r}, hold-out {holdout}, seed {seed}: {correlation} is {got}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_reached_is_said_with_what_comes_nearest() {
        let split = Correlated { correlation: 1.0, tries: 20, ..SPLIT };
        let error = realised(split, 1200.0, 1.0, 1, 0.0).unwrap_err().to_string();
        assert!(
            error.starts_with("in 20 tries the rank correlation of size and TVD was at best 0."),
            "{error}"
        );
        assert!(error.contains("1 (within 0.02) was requested"), "{error}");
        let alone =
            realised(Correlated { clients: 1, ..SPLIT }, 1200.0, 1.0, 1, 0.0).unwrap_err().to_string();
        assert!(
            alone.starts_with("the rank correlation of size and TVD is undefined for one client"),
            "{alone}"
        );
    }

    #[test]
    fn few_clients_have_few_rank_correlations() {
        assert_eq!([2, 4, 100].map(tolerance), [0.25, 0.1, 0.02]);
        // Of two clients the smaller is always the more skewed: what one has too much of, the other lacks.
        for (clients, correlation) in [(2, -1.0), (4, -0.7), (10, 0.33)] {
            let got = realised(Correlated { clients, correlation, ..SPLIT }, 600.0, 1.0, 1, 0.0).unwrap();
            assert!((got - correlation).abs() <= tolerance(clients), "{clients} clients: {got}");
        }
    }
}
