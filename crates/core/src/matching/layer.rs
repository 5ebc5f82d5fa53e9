//! Matching the units of one layer: maximum a posteriori inference in a Beta-Bernoulli process (BBP-MAP).
//!
//! Client k's rows w are noisy copies of atoms, which have a Gaussian prior; how many atoms there are is inferred. With
//! precision p_k = K s_k / σ² of client k, where s_k is its weight among K clients, and prior precision p_0 = 1 / σ0²:
//!
//! ```text
//! atom i: G_i = p_0 m_0 + Σ p_k w,  Γ_i = p_0 + Σ p_k  over the rows assigned to it;  c_i of them
//! score of assigning row w of client k
//!   to atom i:            Σ_d [(p_k w + G_i)² / (p_k + Γ_i) - G_i² / Γ_i] + f ln(c_i / (K - c_i))
//!   to the q-th new atom: Σ_d [(p_k w + p_0 m_0)² / (p_k + p_0) - (p_0 m_0)² / p_0] - 2 ln q + 2 ln(γ0 / K)
//! ```
//!
//! The client with the most rows begins, and each of its rows is an atom. Then each client's rows are assigned so that the sum
//! of their scores is the greatest, to no atom twice. Sweeps in random order take one client at a time out and assign it
//! anew.
//!
//! Wang et al., "Federated Learning with Matched Averaging", ICLR 2020. Yurochkin et al., "Bayesian Nonparametric
//! Federated Learning of Neural Networks", ICML 2019: f = 2. The code published with the first: f = 1, c_i of at most 10.

use crate::matching::{Rows, best_columns};
use crate::stream::Stream;

/// How units are matched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// σ²: variance of the clients' rows around their atom.
    pub row_variance: f64,
    /// σ0²: variance of the atoms around their prior mean.
    pub atom_variance: f64,
    /// γ0: the greater, the more atoms.
    pub mass: f64,
    /// f: how much a row prefers atoms that many clients share.
    pub popularity: f64,
    /// Sweeps after the first assignment.
    pub sweeps: usize,
    /// From this number of atoms on, a client brings at most one new one, or as many as it must.
    pub most_atoms: usize,
    /// The values of an atom.
    pub value: AtomValue,
}

impl Default for Options {
    /// Those of the published code.
    fn default() -> Self {
        Self {
            row_variance: 1.0,
            atom_variance: 1.0,
            mass: 7.0,
            popularity: 1.0,
            sweeps: 5,
            most_atoms: 700,
            value: AtomValue::PosteriorMean,
        }
    }
}

/// The values of an atom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomValue {
    /// G_i / Γ_i, between the rows assigned to it and the prior mean.
    PosteriorMean,
    /// The mean of the rows assigned to it, weighted by precision.
    Mean,
}

/// The same layer at every client.
#[derive(Clone, Copy, Debug)]
pub struct LayerRows<'a> {
    /// Each client's rows, all of the same length.
    pub clients: &'a [Rows],
    /// The clients' weights; they sum to 1.
    pub weights: &'a [f64],
    /// m_0: the prior mean of each column.
    pub prior_mean: &'a [f64],
}

/// The atoms of a layer, and which rows they were made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Matched {
    /// One row per atom.
    pub atoms: Rows,
    /// The atom of each row of each client; no atom twice at one client.
    pub assigned: Vec<Vec<usize>>,
    /// Number of clients that each atom was made of.
    pub counts: Vec<usize>,
}

/// More clients than this make an atom no more popular.
const POPULAR: usize = 10;

/// Matches the clients' rows.
///
/// # Panics
/// Panics without clients, and if their rows differ in length.
pub fn matched(layer: &LayerRows<'_>, options: &Options, order: &mut Stream) -> Matched {
    let clients = layer.clients.len();
    let mut matching = Matching::begin(layer, options);
    let first = (0..clients).rev().max_by_key(|&k| layer.clients[k].len()).expect("there are clients");
    matching.add(first, (0..layer.clients[first].len()).collect());
    for k in (0..clients).filter(|&k| k != first) {
        matching.assign(k);
    }
    let mut shuffled: Vec<usize> = (0..clients).collect();
    // A single client has nobody to be matched with.
    for _ in 0..if clients > 1 { options.sweeps } else { 0 } {
        order.shuffle(&mut shuffled);
        for &k in &shuffled {
            matching.remove(k);
            matching.assign(k);
        }
    }
    matching.finish()
}

/// An assignment under way.
struct Matching<'a> {
    layer: &'a LayerRows<'a>,
    options: &'a Options,
    /// p_k of each client.
    precisions: Vec<f64>,
    /// p_0.
    prior_precision: f64,
    /// ‖w‖² and w · p_0 m_0 of each row of each client.
    products: Vec<Vec<[f64; 2]>>,
    atoms: Vec<Atom>,
    assigned: Vec<Vec<usize>>,
}

struct Atom {
    /// G.
    sum: Vec<f64>,
    /// Γ.
    precision: f64,
    /// c.
    count: usize,
}

impl<'a> Matching<'a> {
    fn begin(layer: &'a LayerRows<'a>, options: &'a Options) -> Self {
        let clients = layer.clients;
        let prior_precision = 1.0 / options.atom_variance;
        let prior: Vec<f64> = layer.prior_mean.iter().map(|m| prior_precision * m).collect();
        let products = |row: &[f32]| {
            let square = row.iter().map(|&w| f64::from(w) * f64::from(w)).sum();
            [square, dot(row, &prior)]
        };
        Self {
            layer,
            options,
            precisions: layer
                .weights
                .iter()
                .map(|s| clients.len() as f64 * s / options.row_variance)
                .collect(),
            prior_precision,
            products: clients.iter().map(|rows| rows.iter().map(products).collect()).collect(),
            atoms: Vec::new(),
            assigned: vec![Vec::new(); clients.len()],
        }
    }

    /// Assigns a client's rows where their scores are the greatest.
    fn assign(&mut self, k: usize) {
        let columns = self.atoms.len() + self.new_atoms(self.layer.clients[k].len());
        let chosen = best_columns(&self.scores(k, columns), columns);
        // New atoms come behind the others, in the order of the client's rows.
        let mut next = self.atoms.len();
        let renumbered = chosen.into_iter().map(|column| {
            if column < self.atoms.len() {
                return column;
            }
            next += 1;
            next - 1
        });
        let assigned = renumbered.collect();
        self.add(k, assigned);
    }

    /// How many new atoms a client with this many rows may bring.
    fn new_atoms(&self, rows: usize) -> usize {
        let room = self.options.most_atoms.saturating_sub(self.atoms.len()).max(1);
        rows.min(room).max(rows.saturating_sub(self.atoms.len()))
    }

    /// The score of each row of a client with each atom, new ones behind the others.
    fn scores(&self, k: usize, columns: usize) -> Vec<f64> {
        let (clients, p) = (self.layer.clients.len() as f64, self.precisions[k]);
        let squares: Vec<f64> = self.atoms.iter().map(|atom| atom.sum.iter().map(|g| g * g).sum()).collect();
        let p_0 = self.prior_precision;
        let prior: f64 = self.layer.prior_mean.iter().map(|m| (p_0 * m).powi(2)).sum();
        let mut scores = Vec::with_capacity(self.layer.clients[k].len() * columns);
        for (row, &[square, row_prior]) in self.layer.clients[k].iter().zip(&self.products[k]) {
            // Precisions are the same in all columns, so that a score needs one product of the row and the atom.
            let gain = |product: f64, atom_square: f64, precision: f64| {
                (p * p * square + 2.0 * p * product + atom_square) / (p + precision) - atom_square / precision
            };
            scores.extend(self.atoms.iter().zip(&squares).map(|(atom, &atom_square)| {
                let count = atom.count.min(POPULAR) as f64;
                gain(dot(row, &atom.sum), atom_square, atom.precision)
                    + self.options.popularity * (count / (clients - count)).ln()
            }));
            let new = gain(row_prior, prior, p_0) + 2.0 * (self.options.mass / clients).ln();
            scores.extend((1..=columns - self.atoms.len()).map(|q| new - 2.0 * (q as f64).ln()));
        }
        scores
    }

    fn add(&mut self, k: usize, assigned: Vec<usize>) {
        for (row, &atom) in self.layer.clients[k].iter().zip(&assigned) {
            if atom == self.atoms.len() {
                let sum = self.layer.prior_mean.iter().map(|m| self.prior_precision * m).collect();
                self.atoms.push(Atom { sum, precision: self.prior_precision, count: 0 });
            }
            self.atoms[atom].change(row, self.precisions[k], true);
        }
        self.assigned[k] = assigned;
    }

    /// Takes a client out; atoms that no other client has vanish.
    fn remove(&mut self, k: usize) {
        let assigned = std::mem::take(&mut self.assigned[k]);
        for (row, &atom) in self.layer.clients[k].iter().zip(&assigned) {
            self.atoms[atom].change(row, self.precisions[k], false);
        }
        let mut kept = 0;
        let places: Vec<usize> = self
            .atoms
            .iter()
            .map(|atom| {
                kept += usize::from(atom.count > 0);
                kept.saturating_sub(1)
            })
            .collect();
        self.atoms.retain(|atom| atom.count > 0);
        self.assigned.iter_mut().flatten().for_each(|atom| *atom = places[*atom]);
    }

    /// The result, with sums taken anew in client order: rows that were taken out leave no rounding errors behind.
    fn finish(self) -> Matched {
        let columns = self.layer.prior_mean.len();
        let p_0 = match self.options.value {
            AtomValue::PosteriorMean => self.prior_precision,
            AtomValue::Mean => 0.0,
        };
        let mut totals = vec![p_0; self.atoms.len()];
        for (assigned, p) in self.assigned.iter().zip(&self.precisions) {
            assigned.iter().for_each(|&atom| totals[atom] += p);
        }
        // Clients without a weight are averaged alike where no other client has the atom.
        let weightless: Vec<bool> = totals.iter().map(|total| *total == 0.0).collect();
        let mut totals = vec![p_0; self.atoms.len()];
        let mut sums: Vec<f64> =
            self.layer.prior_mean.iter().map(|m| p_0 * m).cycle().take(columns * totals.len()).collect();
        for ((rows, assigned), &p) in self.layer.clients.iter().zip(&self.assigned).zip(&self.precisions) {
            for (row, &atom) in rows.iter().zip(assigned) {
                let p = if weightless[atom] { 1.0 } else { p };
                totals[atom] += p;
                let sums = &mut sums[atom * columns..][..columns];
                sums.iter_mut().zip(row).for_each(|(sum, &w)| *sum += p * f64::from(w));
            }
        }
        let means = sums.chunks_exact(columns).zip(&totals);
        let means = means.flat_map(|(sums, total)| sums.iter().map(move |sum| (sum / total) as f32));
        Matched {
            atoms: Rows::new(columns, means.collect()),
            assigned: self.assigned,
            counts: self.atoms.iter().map(|atom| atom.count).collect(),
        }
    }
}

impl Atom {
    /// Adds a row with this precision, or takes it out.
    fn change(&mut self, row: &[f32], p: f64, add: bool) {
        let sign = if add { 1.0 } else { -1.0 };
        self.sum.iter_mut().zip(row).for_each(|(g, &w)| *g += sign * p * f64::from(w));
        self.precision += sign * p;
        self.count = if add { self.count + 1 } else { self.count - 1 };
    }
}

/// The inner product, in four sums that a processor takes side by side.
fn dot(row: &[f32], sum: &[f64]) -> f64 {
    let mut sums = [0.0; 4];
    let (rows, columns) = (row.chunks_exact(4), sum.chunks_exact(4));
    let rest: f64 = rows.remainder().iter().zip(columns.remainder()).map(|(&w, g)| f64::from(w) * g).sum();
    for (w, g) in rows.zip(columns) {
        for i in 0..4 {
            sums[i] += f64::from(w[i]) * g[i];
        }
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3]) + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Purpose;

    /// What gen_golden_3.py (numpy, f64, all assignments tried) wrote into fedma_matching.json: σ² = 1, σ0² = 10, m0 = 0,
    /// γ0 = 1, no sweeps.
    const GOLDEN: Options = Options {
        row_variance: 1.0,
        atom_variance: 10.0,
        mass: 1.0,
        popularity: 2.0,
        sweeps: 0,
        most_atoms: 700,
        value: AtomValue::PosteriorMean,
    };

    fn clients() -> Vec<Rows> {
        let client = |values: [f32; 6]| Rows::new(3, values.to_vec());
        vec![
            client([3.0, 0.0, 1.0, 0.0, -3.0, 0.5]),
            client([0.1, -2.9, 0.6, 2.8, 0.2, 0.9]),
            client([2.9, -0.1, 1.1, -2.0, 3.0, -1.0]),
        ]
    }

    fn stream() -> Stream {
        Stream::at(1, Purpose::Matching, 0, 0)
    }

    fn result(clients: &[Rows], options: &Options) -> Matched {
        let weights = vec![1.0 / clients.len() as f64; clients.len()];
        let prior_mean = vec![0.0; clients[0].columns()];
        matched(&LayerRows { clients, weights: &weights, prior_mean: &prior_mean }, options, &mut stream())
    }

    /// Parameters are f32: the golden files' tolerance for them.
    fn assert_near(got: impl IntoIterator<Item = f64>, want: &[f64]) {
        let got: Vec<f64> = got.into_iter().collect();
        let near = |(x, y): (&f64, &f64)| (x - y).abs() <= 2e-6 * y.abs().max(1.0);
        assert!(got.len() == want.len() && got.iter().zip(want).all(near), "{got:?} is not {want:?}");
    }

    fn values(rows: &Rows) -> Vec<f64> {
        rows.iter().flatten().map(|&x| f64::from(x)).collect()
    }

    #[test]
    fn two_clients_are_matched_as_in_the_golden_file() {
        let clients = &clients()[..2];
        let golden = result(clients, &GOLDEN);
        assert_eq!((golden.assigned, golden.counts), (vec![vec![0, 1], vec![1, 0]], vec![2, 2]));
        let posterior = [
            2.761904761904762,
            0.09523809523809523,
            0.9047619047619047,
            0.047619047619047616,
            -2.8095238095238098,
            0.5238095238095238,
        ];
        assert_near(values(&golden.atoms), &posterior);
        let mean = result(clients, &Options { value: AtomValue::Mean, ..GOLDEN });
        assert_near(values(&mean.atoms), &[2.9, 0.1, 0.95, 0.05, -2.95, 0.55]);
    }

    #[test]
    fn a_third_client_brings_a_new_unit_as_in_the_golden_file() {
        for popularity in [1.0, 2.0] {
            let golden = result(&clients(), &Options { popularity, ..GOLDEN });
            assert_eq!(golden.assigned, [[0, 1], [1, 0], [0, 2]]);
            assert_eq!(golden.counts, [3, 2, 1]);
            let posterior = [
                2.8064516129032255,
                0.03225806451612903,
                0.9677419354838709,
                0.047619047619047616,
                -2.8095238095238098,
                0.5238095238095238,
                -1.8181818181818181,
                2.727272727272727,
                -0.9090909090909091,
            ];
            assert_near(values(&golden.atoms), &posterior);
        }
    }

    #[test]
    fn scores_are_those_of_the_golden_file_under_both_factors() {
        let clients = clients();
        let layer = LayerRows { clients: &clients, weights: &[1.0 / 3.0; 3], prior_mean: &[0.0; 3] };
        let [second, third] = [
            [
                -0.6772034520289798,
                7.361757586932059,
                5.784593604481961,
                4.39829924336207,
                7.2799394051138755,
                -1.3953852702108003,
                5.702775422663779,
                4.316481061543888,
            ],
            [
                10.258584968578374,
                -0.38657632174420276,
                6.557320877209234,
                5.171026516089343,
                -8.84141503142162,
                -12.58335051529259,
                10.530048149936507,
                9.143753788816616,
            ],
        ];
        let mut matching = Matching::begin(&layer, &GOLDEN);
        matching.add(0, vec![0, 1]);
        assert_near(matching.scores(1, 4), &second);
        let published = Options { popularity: 1.0, ..GOLDEN };
        let mut matching = Matching::begin(&layer, &published);
        matching.add(0, vec![0, 1]);
        matching.add(1, vec![1, 0]);
        assert_near(matching.scores(2, 4), &third);
    }

    /// `units` random rows of 10 columns.
    fn random(units: usize, client: u32) -> Rows {
        let mut stream = Stream::at(9, Purpose::Matching, 1, client);
        Rows::new(10, (0..10 * units).map(|_| stream.normal() as f32).collect())
    }

    #[test]
    fn a_permuted_copy_gives_the_permutation_back_and_the_same_units() {
        let rows = random(40, 0);
        let mut permutation: Vec<usize> = (0..40).collect();
        Stream::at(2, Purpose::Matching, 0, 0).shuffle(&mut permutation);
        let permuted: Vec<f32> = permutation.iter().flat_map(|&unit| rows.row(unit)).copied().collect();
        let clients = [rows.clone(), Rows::new(10, permuted)];
        for sweeps in [0, 3] {
            let options = Options { sweeps, value: AtomValue::Mean, ..GOLDEN };
            let Matched { atoms, assigned, counts } = result(&clients, &options);
            assert_eq!(assigned, [(0..40).collect(), permutation.clone()]);
            assert_eq!((atoms, counts), (rows.clone(), vec![2; 40]));
        }
    }

    #[test]
    fn sweeps_never_lose_a_row_and_no_atom_stays_without_one() {
        let clients: Vec<Rows> = (0..5).map(|k| random(6 + k as usize, k)).collect();
        for most_atoms in [700, 12, 1] {
            let options = Options { sweeps: 4, mass: 7.0, most_atoms, ..GOLDEN };
            let Matched { atoms, assigned, counts } = result(&clients, &options);
            let mut found = vec![0; atoms.len()];
            for (rows, assigned) in clients.iter().zip(&assigned) {
                assert_eq!(assigned.len(), rows.len());
                let mut atoms = assigned.clone();
                atoms.sort_unstable();
                atoms.dedup();
                assert_eq!(atoms.len(), rows.len(), "an atom twice at one client");
                atoms.into_iter().for_each(|atom| found[atom] += 1);
            }
            assert_eq!(found, counts);
            assert!(counts.iter().all(|&count| count > 0), "{counts:?}");
        }
    }

    #[test]
    fn a_client_counts_for_an_atom_by_its_weight() {
        let clients = [Rows::new(1, vec![1.0]), Rows::new(1, vec![3.0])];
        let atoms = |weights: [f64; 2], value| {
            let layer = LayerRows { clients: &clients, weights: &weights, prior_mean: &[1.0] };
            matched(&layer, &Options { value, ..GOLDEN }, &mut stream()).atoms
        };
        assert_eq!(atoms([0.75, 0.25], AtomValue::Mean), Rows::new(1, vec![1.5]));
        // Precisions 1.5 and 0.5, and the prior's 0.1 at 1: (0.1 + 1.5 + 1.5) / 2.1.
        assert_eq!(atoms([0.75, 0.25], AtomValue::PosteriorMean), Rows::new(1, vec![(3.1 / 2.1) as f32]));
        assert_eq!(atoms([1.0, 0.0], AtomValue::Mean), Rows::new(1, vec![1.0]));
    }

    #[test]
    fn clients_that_have_no_unit_in_common_keep_all_of_theirs() {
        let far = |offset: f32| Rows::new(2, vec![offset, 0.0, 0.0, offset]);
        let Matched { atoms, assigned, .. } = result(&[far(9.0), far(-9.0)], &GOLDEN);
        assert_eq!((atoms.len(), assigned), (4, vec![vec![0, 1], vec![2, 3]]));
    }

    #[test]
    fn a_single_client_keeps_its_units() {
        let rows = random(3, 0);
        let options = Options { value: AtomValue::Mean, ..Options::default() };
        assert_eq!(result(std::slice::from_ref(&rows), &options).atoms, rows);
    }
}
