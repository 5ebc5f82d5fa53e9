//! Who has which rows.

use super::SplitError;
use crate::hex;
use sha2::{Digest, Sha256};

/// For each client its training rows, ascending; no row is in two clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// One list per client.
    pub clients: Vec<Vec<u32>>,
}

impl Partition {
    /// The partition with each client's rows in ascending order.
    pub(crate) fn new(mut clients: Vec<Vec<u32>>) -> Self {
        clients.iter_mut().for_each(|rows| rows.sort_unstable());
        Self { clients }
    }

    /// SHA-256 of the lists and their lengths, which identifies the split in results.
    pub fn hash(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(b"fedtvd partition 1\n");
        hash.update((self.clients.len() as u64).to_le_bytes());
        for rows in &self.clients {
            hash.update((rows.len() as u64).to_le_bytes());
            rows.iter().for_each(|row| hash.update(row.to_le_bytes()));
        }
        hex(&hash.finalize())
    }
}

/// The first of `tries` draws in which every client has `min_size` rows; a draw may fail by itself.
pub(crate) fn first_that_fits(
    tries: u32,
    min_size: usize,
    draw: impl Fn(u32) -> Option<Vec<Vec<u32>>>,
) -> Result<Partition, SplitError> {
    let mut best = 0;
    for attempt in 0..tries {
        let Some(clients) = draw(attempt) else { continue };
        let smallest = clients.iter().map(Vec::len).min().unwrap_or(0);
        if smallest >= min_size {
            return Ok(Partition::new(clients));
        }
        best = best.max(smallest);
    }
    Err(SplitError::Tries { tries, best, min_size })
}

/// Cuts a list at the given places.
pub(crate) fn cut(rows: &[u32], ends: &[usize]) -> Vec<Vec<u32>> {
    let mut start = 0;
    let part = |end: &usize| {
        let part = rows[start..*end].to_vec();
        start = *end;
        part
    };
    ends.iter().map(part).collect()
}

/// Where `parts` parts of a list of `n` end, as equal as can be, the longer ones first.
pub(crate) fn even_ends(n: usize, parts: usize) -> Vec<usize> {
    let (each, more) = (n / parts, n % parts);
    (1..=parts).map(|part| part * each + part.min(more)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_differ_by_at_most_one_and_the_longer_come_first() {
        assert_eq!(even_ends(11, 4), [3, 6, 9, 11]);
        assert_eq!(cut(&[5, 6, 7], &[0, 2, 3]), [vec![], vec![5, 6], vec![7]]);
        // "iid_equal" of the golden file.
        let rows: Vec<u32> = (0..10).collect();
        assert_eq!(cut(&rows, &even_ends(10, 3)).iter().map(Vec::len).collect::<Vec<_>>(), [4, 3, 3]);
    }

    #[test]
    fn the_hash_depends_on_who_has_a_row_but_not_on_the_order_of_dealing() {
        let hash = |clients: &[&[u32]]| Partition::new(clients.iter().map(|c| c.to_vec()).collect()).hash();
        assert_eq!(hash(&[&[1, 2], &[3]]), hash(&[&[2, 1], &[3]]));
        assert_ne!(hash(&[&[1, 2], &[3]]), hash(&[&[1], &[2, 3]]));
        assert_ne!(hash(&[&[1, 2], &[3]]), hash(&[&[3], &[1, 2]]));
        // printf 'fedtvd partition 1\n\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\7\0\0\0' | sha256sum
        assert_eq!(hash(&[&[7]]), "66856acd09c2ef9e65812c4ab498c2c8c74611edb07059849934acf7ee7bc2dc");
    }
}
