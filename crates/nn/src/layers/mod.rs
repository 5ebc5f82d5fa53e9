//! The layers, one file each: forward, backward, shapes.

pub(crate) mod algorithm;
pub(crate) mod avgpool;
pub(crate) mod batchnorm;
pub(crate) mod conv;
pub(crate) mod dropout;
pub(crate) mod flatten;
pub(crate) mod globalpool;
pub(crate) mod groupnorm;
pub(crate) mod linear;
pub(crate) mod maxpool;
pub(crate) mod normaliser;
pub(crate) mod relu;
pub(crate) mod sum;
pub(crate) mod windows;

use crate::kernels::aligned::Aligned;
use crate::kernels::isa::Isa;
use fedtvd_core::stream::Stream;
use fedtvd_core::train::{Frozen, NormShift};

/// A layer bound to its buffers.
pub(crate) trait Layer: Send {
    /// Values of the output from values of the input.
    fn forward(&mut self, buffers: &mut Buffers, params: &[f32], mode: &mut Mode<'_>);

    /// Gradients of the input and of the parameters from gradients of the output; those of the parameters are
    /// set, not added to. Frozen parameters have one too, which is not used.
    fn backward(&mut self, buffers: &mut Buffers, params: &[f32], gradient: &mut [f32]);

    /// Updates running statistics after a forward pass in training; most layers have none.
    fn remember(&self, _params: &mut [f32]) {}

    /// Adds the statistics of the last training batch to sums, one per buffer; most layers have none.
    fn add_statistics(&self, _sums: &mut [f64]) {}
}

/// Whether a forward pass is for training and, if so, what it depends on besides the model.
pub(crate) enum Mode<'a> {
    /// Batch statistics.
    Training {
        /// Source of dropout.
        dropout: &'a mut Stream,
        /// Constants added to the batch statistics.
        norm: Option<NormShift<'a>>,
        /// Tensors that do not move; a batch norm whose statistics are among them uses its running statistics.
        frozen: Option<&'a Frozen>,
    },
    /// Running statistics; no dropout.
    Evaluation,
}

/// All feature maps of a network for one batch.
pub(crate) struct Buffers {
    pub(crate) isa: Isa,
    /// Samples in the batch.
    pub(crate) samples: usize,
    pub(crate) values: Vec<Aligned>,
    pub(crate) gradients: Vec<Aligned>,
    /// Working memory that one layer after the other uses.
    pub(crate) scratch: Aligned,
}

impl Buffers {
    /// Groups of samples in use.
    pub(crate) fn groups(&self) -> usize {
        self.samples.div_ceil(self.isa.lanes())
    }
}

/// Distinct buffers, to read some and write others.
pub(crate) fn disjoint<const N: usize>(buffers: &mut [Aligned], which: [usize; N]) -> [&mut Aligned; N] {
    buffers.get_disjoint_mut(which).expect("a layer's buffers are distinct")
}
