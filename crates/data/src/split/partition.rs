//! Who has which rows.

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
}

/// The rows of each class, ascending.
pub(crate) fn rows_by_class(labels: &[u32], classes: usize) -> Vec<Vec<u32>> {
    let mut rows = vec![Vec::new(); classes];
    for (row, &label) in labels.iter().enumerate() {
        rows[label as usize].push(row as u32);
    }
    rows
}
