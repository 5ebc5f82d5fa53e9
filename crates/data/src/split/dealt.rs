//! A split as a run uses it: which client has which rows, with notes for the user.

use super::correlated::tolerance;
use super::{
    Deck, Partition, PartitionFile, Planted, Shift, ShiftError, SplitError, SplitKind, SplitOptions,
};
use crate::holdout::{self, ClientRows, keep_back};
use crate::statistics::{Statistics, counts};
use fedtvd_core::labels::Reference;
use fedtvd_core::train::Samples;

/// What a split is made for.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// The data set's name.
    pub set: &'a str,
    /// The run's seed, for splits without one of their own.
    pub seed: u64,
    /// Fraction of its rows that each client holds out from training, from 0 to below 1.
    pub holdout: f64,
    /// The label distribution, over the data's classes, that the total variation distance is measured against; `None`
    /// for that of all clients together.
    pub reference: Option<&'a Reference>,
}

impl Terms<'_> {
    /// The rows that each client of a partition trains on.
    pub(crate) fn training(&self, partition: &Partition) -> Partition {
        train(&keep_back(partition, self.holdout, self.seed))
    }
}

/// Rows that have been dealt.
#[derive(Clone, Debug, PartialEq)]
pub struct Dealt {
    /// Who has which training rows.
    pub partition: Partition,
    /// Which of them each client trains on and which it holds out.
    pub clients: Vec<ClientRows>,
    /// The clients' names, if they have any.
    pub names: Option<Vec<String>>,
    /// Notes about the split for the user.
    pub notes: Vec<String>,
    /// How the clients' images differ.
    pub shift: Shift,
    /// Groups of clients whose labels contradict each other.
    pub groups: Planted,
    /// Seed of the split.
    pub seed: u64,
}

impl From<Partition> for Dealt {
    fn from(partition: Partition) -> Self {
        let clients = keep_back(&partition, 0.0, 0);
        Self {
            clients,
            partition,
            names: None,
            notes: Vec::new(),
            shift: Shift::default(),
            groups: Planted::default(),
            seed: 0,
        }
    }
}

impl Dealt {
    /// The hash that identifies this split in results: who has which rows, holds out which of them and sees them how.
    pub fn hash(&self) -> String {
        self.groups.hash(self.shift.hash(holdout::hash(&self.partition, &self.clients), self.seed))
    }

    /// The samples as clients see them; `None` if they see them as they are. `set` is the data set's name.
    pub fn shifted(&self, set: &str, samples: &Samples) -> Result<Option<Samples>, ShiftError> {
        let grouped = self.groups.samples(samples, &self.clients)?;
        let shifted =
            self.shift.samples(set, grouped.as_ref().unwrap_or(samples), &self.clients, self.seed)?;
        Ok(shifted.or(grouped))
    }

    /// The split in numbers: of the rows that clients train on.
    pub fn statistics(&self, deck: &Deck, terms: &Terms) -> Statistics {
        Statistics { hash: self.hash(), ..statistics(&train(&self.clients), deck, terms) }
    }
}

fn train(clients: &[ClientRows]) -> Partition {
    Partition { clients: clients.iter().map(|rows| rows.train.clone()).collect() }
}

/// The statistics of rows that are trained on.
pub(crate) fn statistics(training: &Partition, deck: &Deck, terms: &Terms) -> Statistics {
    match terms.reference {
        Some(reference) => Statistics::of(training, deck.labels, reference),
        None => {
            let counts: Vec<Vec<u64>> =
                training.clients.iter().map(|rows| counts(rows, deck.labels, deck.classes)).collect();
            // A single class has no distribution, and every distance to it is 0.
            let reference = Reference::aggregated(counts.iter().map(Vec::as_slice))
                .unwrap_or_else(|_| Reference::uniform(deck.classes));
            Statistics::of(training, deck.labels, &reference)
        }
    }
}

impl SplitOptions {
    /// The training rows dealt to the clients; each has `min_size` left to train on.
    pub fn deal(&self, deck: &Deck, terms: &Terms) -> Result<Dealt, SplitError> {
        let terms = &Terms { seed: self.seed.unwrap_or(terms.seed), ..*terms };
        let dealt = match self.kind {
            SplitKind::Natural => {
                let names = deck.groups.map(|groups| groups.names.clone());
                Dealt { names, ..Dealt::from(deck.natural()?) }
            }
            SplitKind::File => {
                let path = self.file.as_ref().ok_or(SplitError::NoFile)?;
                PartitionFile::load(path, terms.set, deck)?
            }
            _ => self.with_enough(deck, terms).map_err(|error| error.beside_owners(deck))?,
        };
        let clients = keep_back(&dealt.partition, terms.holdout, terms.seed);
        let (shift, groups) = (self.shift, self.groups);
        let mut dealt = Dealt { clients, shift, groups, seed: terms.seed, ..dealt };
        dealt.notes.extend(self.groups.description());
        dealt.notes.extend(self.shift.description());
        dealt.notes.extend(self.without_effect(&dealt));
        dealt.notes.extend(self.reached(&dealt, deck, terms));
        Ok(dealt)
    }

    /// A note on a requested number of clients if the data determines the number.
    fn without_effect(&self, dealt: &Dealt) -> Option<String> {
        let (asked, there) = (self.clients, dealt.partition.clients.len());
        let idle = asked != there && asked != Self::default().clients;
        let why = match self.kind {
            SplitKind::Natural => "owners",
            SplitKind::File => "clients in the file",
            _ => return None,
        };
        idle.then(|| {
            let kind = self.kind.word();
            format!("split.clients = {asked} has no effect with split.kind = {kind}: there are {there} {why}")
        })
    }

    /// A note on a requested rank correlation and the one achieved.
    fn reached(&self, dealt: &Dealt, deck: &Deck, terms: &Terms) -> Option<String> {
        let asked = self.asked_correlation()?;
        let Statistics { size_tvd_correlation: pearson, size_tvd_rank_correlation: rank, .. } =
            dealt.statistics(deck, terms);
        let shown = |r: Option<f64>| r.map_or("undefined".to_owned(), |r| format!("{r:.3}"));
        Some(format!(
            "rank correlation of size and TVD: requested {asked}, achieved {} (tolerance {}); Pearson's correlation is {}",
            shown(rank),
            tolerance(self.clients),
            shown(pearson)
        ))
    }

    /// A drawn split whose clients have `min_size` rows besides those that they hold out.
    fn with_enough(&self, deck: &Deck, terms: &Terms) -> Result<Dealt, SplitError> {
        let rows = holdout::rows_for(self.min_size, terms.holdout);
        let enough = Self { min_size: rows, ..self.clone() };
        match enough.drawn(deck, terms) {
            Ok(partition) => Ok(Dealt::from(partition)),
            Err(SplitError::Tries { tries, .. }) if self.kind == SplitKind::Quantity => {
                let note = format!(
                    "none of {tries} draws gave every client {rows} rows: each client got {rows} rows first, and the rest was \
                     divided in Dirichlet({}) proportions",
                    self.beta
                );
                let partition = enough.quantity().after_the_least(deck, terms.seed);
                Ok(Dealt { notes: vec![note], ..Dealt::from(partition) })
            }
            Err(error) => Err(error.beside_holdout(self.min_size, rows, terms.holdout)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_has_its_minimum_of_rows_to_train_on_besides_its_hold_out() {
        let labels: Vec<u32> = (0..2000).map(|row| row % 10).collect();
        let deck = Deck { labels: &labels, classes: 10, groups: None };
        let options = SplitOptions { clients: 20, alpha: 0.3, min_size: 20, ..SplitOptions::default() };
        let terms = |holdout| Terms { set: "x", seed: 3, holdout, reference: None };
        let deal = |holdout| options.deal(&deck, &terms(holdout));
        for holdout in [0.0, 0.5] {
            let dealt = deal(holdout).unwrap();
            assert!(dealt.clients.iter().all(|rows| rows.train.len() >= 20), "{holdout}");
        }
        // Without hold-out the split is the one that it always was.
        assert_eq!(deal(0.0).unwrap().partition, options.drawn(&deck, &terms(0.0)).unwrap());
        assert_eq!(
            deal(0.9).unwrap_err().to_string(),
            "with split.holdout = 0.9 a client needs 191 rows to have 20 to train on: 20 clients with at least 191 \
             rows each need 3820 rows, but there are 2000"
        );
    }

    const UNSEEDED: Terms = Terms { set: "x", seed: 1, holdout: 0.0, reference: None };

    #[test]
    fn sizes_too_unequal_for_the_minimum_are_dealt_after_it_with_a_note() {
        let labels: Vec<u32> = (0..12_000).map(|row| row % 10).collect();
        let deck = Deck { labels: &labels, classes: 10, groups: None };
        let options = SplitOptions { kind: SplitKind::Quantity, tries: 20, ..SplitOptions::default() };
        let dealt = options.deal(&deck, &UNSEEDED).unwrap();
        let sizes: Vec<usize> = dealt.partition.clients.iter().map(Vec::len).collect();
        assert_eq!((sizes.iter().min(), sizes.iter().sum::<usize>()), (Some(&2), 12_000));
        assert!(dealt.notes[0].starts_with("none of 20 draws gave every client 2 rows"), "{:?}", dealt.notes);
        let even = SplitOptions { beta: 10.0, ..options };
        assert!(even.deal(&deck, &UNSEEDED).unwrap().notes.is_empty());
    }

    #[test]
    fn data_with_owners_suggests_them_and_notes_that_split_clients_has_no_effect() {
        let labels = [0, 1, 0, 1];
        let names = ["Cleveland", "Hungary"].map(str::to_owned).to_vec();
        let groups = crate::split::Groups { names, of: vec![0, 1, 1, 1] };
        let deck = Deck { labels: &labels, classes: 2, groups: Some(&groups) };
        let error = SplitOptions::default().deal(&deck, &UNSEEDED).unwrap_err().to_string();
        assert_eq!(
            error,
            "100 clients with at least 2 rows each need 200 rows, but there are 4; the data has 2 natural owners \
             (Cleveland, Hungary): split.kind = natural makes each a client"
        );
        let natural = |clients| {
            let options = SplitOptions { kind: SplitKind::Natural, clients, ..SplitOptions::default() };
            options.deal(&deck, &UNSEEDED).unwrap().notes
        };
        let said = ["split.clients = 7 has no effect with split.kind = natural: there are 2 owners"];
        assert_eq!(
            (natural(7), natural(2), natural(100)),
            (said.map(str::to_owned).to_vec(), vec![], vec![])
        );
    }
}
