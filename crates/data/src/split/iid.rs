//! IID: all rows in random order, cut into equal parts.

use super::partition::{cut, even_ends};
use super::{Deck, Partition, SplitError};
use fedtvd_core::stream::{Purpose, Stream};

/// Equal parts of the shuffled rows; the first n mod N clients have one more.
pub(crate) fn split(deck: &Deck, clients: usize, seed: u64) -> Result<Partition, SplitError> {
    deck.check(clients, 1)?;
    let mut rows = deck.rows();
    Stream::at(seed, Purpose::Split, 0, 0).shuffle(&mut rows);
    Ok(Partition::new(cut(&rows, &even_ends(rows.len(), clients))))
}
