//! What liars that collude know: the updates of a round's honest clients, as mean and standard deviation of each trainable
//! value. They are known in a simulation only.

use fedtvd_core::round::UpdatePart;
use fedtvd_core::round::{BLOCK, ReadFailure, Updates};

/// The honest updates of a round.
#[derive(Clone, Debug, PartialEq)]
pub struct Honest {
    /// Mean of each trainable value over the honest clients, each counted once.
    pub mean: Vec<f64>,
    /// Standard deviation of each trainable value over them.
    pub deviation: Vec<f64>,
    /// Number of honest clients.
    pub clients: usize,
    /// Number of liars in the round.
    pub liars: usize,
}

impl Honest {
    /// Reads the first `trainable` values of the updates at these places, block by block; `None` without honest clients.
    pub(crate) fn of(
        updates: &dyn Updates,
        places: &[usize],
        liars: usize,
        trainable: usize,
    ) -> Result<Option<Self>, ReadFailure> {
        let (mut mean, mut deviation) = (Vec::with_capacity(trainable), Vec::with_capacity(trainable));
        let mut blocks = vec![vec![0.0f32; BLOCK.min(trainable)]; places.len()];
        let clients = places.len() as f64;
        for start in (0..trainable).step_by(BLOCK) {
            let range = start..trainable.min(start + BLOCK);
            for (block, &place) in blocks.iter_mut().zip(places) {
                block.truncate(range.len());
                updates.read(place, UpdatePart::Model, range.clone(), block)?;
            }
            for value in 0..range.len() {
                let column = || blocks.iter().map(|block| f64::from(block[value]));
                let middle = column().sum::<f64>() / clients;
                mean.push(middle);
                deviation.push((column().map(|x| (x - middle).powi(2)).sum::<f64>() / clients).sqrt());
            }
        }
        Ok((!places.is_empty()).then_some(Self { mean, deviation, clients: places.len(), liars }))
    }
}
