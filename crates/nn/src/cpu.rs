//! A trainer on one core: reads rows into lanes, runs the layers, and takes core's step.

use crate::bind::{self, Bound};
use crate::flow::Flow;
use crate::kernels::isa::{InstructionsError, Isa, Work};
use crate::kernels::vector::Vector;
use crate::layers::Mode;
use crate::loss::{Terms, cross_entropy, prediction, sample_logits};
use fedtvd_core::model::{Layout, Network, NetworkError, Params, Shape};
use fedtvd_core::stream::{Purpose, Stream};
use fedtvd_core::train::{
    Evaluation, Frozen, Optimizer, OptimizerState, Pass, PassReport, Samples, TrainFailure, Trainer, step,
};
use std::sync::Arc;
use thiserror::Error;

/// Samples per batch of an evaluation.
const EVALUATION_BATCH: usize = 32;

/// A network, its buffers and its data set, on one core. Models may have other widths than the network that it was made for: it
/// follows the layout of the parameters.
pub struct Cpu {
    network: Network,
    flow: Flow,
    layout: Layout,
    samples: Arc<Samples>,
    classes: usize,
    isa: Isa,
    bound: Bound,
    gradient: Vec<f32>,
    state: OptimizerState,
    order: Vec<u32>,
    row: Vec<f32>,
    labels: Vec<u32>,
}

/// Why a network cannot be trained on a data set.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum CpuError {
    /// The layers do not fit together.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The environment asks for instructions that this machine does not have.
    #[error(transparent)]
    Instructions(#[from] InstructionsError),
    /// The network takes samples of another shape.
    #[error("the network takes {}, but the data set's samples are {}", size(*.network), size(*.samples))]
    Shape {
        /// What the network takes.
        network: Shape,
        /// What the data set has.
        samples: Shape,
    },
    /// The data set has labels that the network cannot give.
    #[error("the network gives {network} classes, but the data set has {samples}")]
    Classes {
        /// Classes of the network.
        network: usize,
        /// Classes of the data set.
        samples: usize,
    },
    /// A feature map or the model has more numbers than can be addressed.
    #[error("a feature map or the model has {numbers} numbers; {} are possible", u32::MAX)]
    TooLarge {
        /// Numbers of the larger one.
        numbers: u128,
    },
}

fn size(shape: Shape) -> String {
    format!("{}x{}x{}", shape[0], shape[1], shape[2])
}

impl Cpu {
    /// A trainer of `network` on `samples`, with the [`instructions`](crate::instructions) of this machine.
    pub fn new(network: &Network, samples: Arc<Samples>) -> Result<Self, CpuError> {
        Self::with(network, samples, Isa::chosen()?)
    }

    /// Bytes that training this network in batches of up to `batch` samples takes, besides the samples: feature maps,
    /// gradients, the layers' tables, the optimiser's vectors and three copies of the model. Allocates none of them.
    pub fn training_memory(
        network: &Network,
        batch: usize,
        optimizer: &Optimizer,
    ) -> Result<u128, NetworkError> {
        // Instructions that do not exist are an error of the trainer itself.
        let isa = Isa::chosen().unwrap_or_else(|_| Isa::best());
        let (flow, layout) = (Flow::of(network)?, Layout::of(network)?);
        let model = 4 * (3 * layout.len() + (1 + optimizer.vectors()) * layout.trainable()) as u128;
        Ok(model + bind::bytes(&flow, isa, batch.max(EVALUATION_BATCH)))
    }

    /// The instruction set in use: part of what a machine's results depend on.
    pub fn instructions(&self) -> &'static str {
        self.isa.name()
    }

    /// The same with a given instruction set.
    pub(crate) fn with(network: &Network, samples: Arc<Samples>, isa: Isa) -> Result<Self, CpuError> {
        let flow = Flow::of(network)?;
        let layout = Layout::of(network)?;
        if network.input != samples.shape() {
            return Err(CpuError::Shape { network: network.input, samples: samples.shape() });
        }
        if network.classes < samples.classes() {
            return Err(CpuError::Classes { network: network.classes, samples: samples.classes() });
        }
        bind::check(&flow, &layout, isa, EVALUATION_BATCH)?;
        Ok(Self {
            bound: Bound::new(&flow, &layout, isa, EVALUATION_BATCH),
            gradient: vec![0.0; layout.trainable()],
            state: OptimizerState::default(),
            order: Vec::new(),
            row: vec![0.0; network.input.iter().product()],
            labels: Vec::new(),
            classes: network.classes,
            network: network.clone(),
            flow,
            layout,
            samples,
            isa,
        })
    }

    /// Takes the widths of this layout, if they are not those of the last one.
    fn follow(&mut self, layout: &Layout) -> Result<(), TrainFailure> {
        if layout.widths() == self.layout.widths() {
            return Ok(());
        }
        let network = match layout.widths() {
            [] => self.network.clone(),
            widths => self.network.with_widths(widths),
        };
        let failed = |why: String| TrainFailure::Device(why);
        let own = Layout::of(&network).map_err(|error| failed(error.to_string()))?;
        if own.tensors() != layout.tensors() {
            return Err(failed(format!("the network cannot have the widths {:?}", layout.widths())));
        }
        let flow = Flow::of(&network).map_err(|error| failed(error.to_string()))?;
        bind::check(&flow, layout, self.isa, EVALUATION_BATCH).map_err(|error| failed(error.to_string()))?;
        self.bound.free();
        self.bound = Bound::new(&flow, layout, self.isa, EVALUATION_BATCH);
        self.gradient = vec![0.0; layout.trainable()];
        (self.flow, self.layout) = (flow, layout.clone());
        Ok(())
    }

    /// Makes the buffers large enough for this batch; never holds the old ones and the new ones at the same time.
    fn reserve(&mut self, batch: usize) -> Result<(), CpuError> {
        if batch > self.bound.capacity {
            bind::check(&self.flow, &self.layout, self.isa, batch)?;
            self.bound.free();
            self.bound = Bound::new(&self.flow, &self.layout, self.isa, batch);
        }
        Ok(())
    }

    fn check(
        &self,
        params: &Params,
        rows: &[u32],
        parts: &[(&str, Option<usize>, usize)],
    ) -> Result<(), TrainFailure> {
        if rows.is_empty() {
            return Err(TrainFailure::NoSamples);
        }
        let count = self.samples.rows();
        if let Some(&row) = rows.iter().find(|row| **row as usize >= count) {
            return Err(TrainFailure::NoSuchRow { row, rows: count });
        }
        let all = [("parameters", Some(params.values.len()), self.layout.len())];
        for (what, given, right) in all.iter().chain(parts) {
            if let Some(given) = given.filter(|given| given != right) {
                let why = format!("{given} {what} were given where the network has {right}");
                return Err(TrainFailure::Device(why));
            }
        }
        Ok(())
    }

    /// Reads rows into the lanes of the input map.
    fn load(&mut self, rows: &[u32], mut augment: Option<&mut Stream>) {
        let Bound { buffers, input, .. } = &mut self.bound;
        let map = input.map;
        let [channels, height, width] = map.shape;
        buffers.samples = rows.len();
        self.labels.clear();
        let values = &mut buffers.values[input.value];
        for (n, &row) in rows.iter().enumerate() {
            self.labels.push(self.samples.labels()[row as usize]);
            match augment.as_deref_mut() {
                Some(stream) => self.samples.read_training(row, stream, &mut self.row),
                None => self.samples.read(row, &mut self.row),
            }
            for (line, pixels) in self.row.chunks_exact(width).enumerate() {
                debug_assert!(line < channels * height);
                let start = map.at(n / map.lanes, line / height, (line % height) as isize, 0) + n % map.lanes;
                for (x, &pixel) in pixels.iter().enumerate() {
                    values[start + x * map.lanes] = pixel;
                }
            }
        }
    }

    fn forward(&mut self, params: &[f32], mode: &mut Mode<'_>) {
        for layer in &mut self.bound.layers {
            layer.forward(&mut self.bound.buffers, params, mode);
        }
    }

    /// Computes the gradient of a batch's loss; returns the sum of its samples' losses, each times its weight. If that is
    /// not finite, there is no gradient.
    fn slope(
        &mut self,
        params: &Params,
        rows: &[u32],
        pass: &Pass<'_>,
        mode: &mut Mode<'_>,
        augment: Option<&mut Stream>,
    ) -> f64 {
        self.load(rows, augment);
        self.forward(&params.values, mode);
        let first = self.bound.first_moving(pass.frozen);
        let Bound { buffers, output, layers, .. } = &mut self.bound;
        let loss = cross_entropy(
            &buffers.values[output.value],
            &output.map,
            &self.labels,
            Terms { offsets: pass.offsets, weights: pass.class_weights, smoothing: pass.smoothing },
            Some(&mut buffers.gradients[output.gradient]),
        );
        if !loss.is_finite() {
            return loss;
        }
        for layer in layers[first..].iter_mut().rev() {
            layer.backward(buffers, &params.values, &mut self.gradient);
        }
        loss
    }

    /// Updates running statistics and takes one optimiser step along the gradient of the last batch.
    fn step(&mut self, params: &mut Params, pass: &Pass<'_>) {
        for layer in &self.bound.layers {
            layer.remember(&mut params.values);
        }
        let (gradient, state) = (&self.gradient, &mut self.state);
        self.isa.run(Step { pass, params, state, gradient });
    }

    /// Checks the model, the rows and all vectors of a pass, and makes the buffers large enough for its batches.
    fn prepare(&mut self, params: &Params, rows: &[u32], pass: &Pass<'_>) -> Result<(), TrainFailure> {
        if pass.batch == 0 {
            return Err(TrainFailure::EmptyBatch);
        }
        self.follow(&params.layout)?;
        let trainable = self.layout.trainable();
        let buffers = self.layout.len() - trainable;
        self.check(
            params,
            rows,
            &[
                ("numbers to pull to", pass.pull.map(|pull| pull.anchor.len()), trainable),
                ("numbers to push", pass.push.map(<[f32]>::len), trainable),
                ("offsets to the logits", pass.offsets.map(<[f32]>::len), self.classes),
                ("class weights", pass.class_weights.map(<[f32]>::len), self.classes),
                ("constants of batch statistics", pass.norm.map(|norm| norm.shift.len()), buffers),
                (
                    "parameters of which some are frozen",
                    pass.frozen.map(Frozen::model_len),
                    self.layout.len(),
                ),
                ("least variances of batches", pass.norm.map(|norm| norm.floor.len()), buffers),
            ],
        )?;
        let reserved = self.reserve(pass.batch.min(rows.len()));
        reserved.map_err(|error| TrainFailure::Device(error.to_string()))
    }

    /// The weight of these rows in the loss.
    fn weight(&self, rows: &[u32], pass: &Pass<'_>) -> f64 {
        rows.iter().map(|row| pass.weight(self.samples.labels()[*row as usize])).sum()
    }
}

struct Step<'a> {
    pass: &'a Pass<'a>,
    params: &'a mut Params,
    state: &'a mut OptimizerState,
    gradient: &'a [f32],
}

impl Work for Step<'_> {
    #[inline(always)]
    fn run<V: Vector>(self) {
        step(self.pass, self.params.trainable_mut(), self.state, self.gradient);
    }
}

impl Trainer for Cpu {
    fn pass(
        &mut self,
        params: &mut Params,
        rows: &[u32],
        pass: &Pass<'_>,
    ) -> Result<PassReport, TrainFailure> {
        self.prepare(params, rows, pass)?;
        self.state.begin(pass, self.layout.trainable());
        let total = self.weight(rows, pass);
        let mut report = PassReport { steps: 0, losses: [0.0; 2], statistics: None };
        let mut statistics = pass.norm.map(|norm| vec![0.0; norm.shift.len()]);
        let mut order = std::mem::take(&mut self.order);
        for epoch in pass.first_epoch..pass.first_epoch + pass.epochs {
            order.clear();
            order.extend_from_slice(rows);
            pass.stream(Purpose::Order, epoch).shuffle(&mut order);
            let mut dropout = pass.stream(Purpose::Dropout, epoch);
            let mut mode = Mode::Training { dropout: &mut dropout, norm: pass.norm, frozen: pass.frozen };
            let mut augment = self.samples.augments().then(|| pass.stream(Purpose::Augment, epoch));
            let mut sum = 0.0;
            for batch in order.chunks(pass.batch) {
                let loss = self.slope(params, batch, pass, &mut mode, augment.as_mut());
                if !loss.is_finite() {
                    self.order = order;
                    return Err(TrainFailure::Diverged { epoch, loss });
                }
                if let Some(sums) = &mut statistics {
                    self.bound.layers.iter().for_each(|layer| layer.add_statistics(sums));
                }
                self.step(params, pass);
                sum += loss;
                report.steps += 1;
            }
            report.losses[1] = if total == 0.0 { 0.0 } else { sum / total };
            if epoch == pass.first_epoch {
                report.losses[0] = report.losses[1];
            }
        }
        self.order = order;
        let mean = |sums: Vec<f64>| sums.iter().map(|sum| sum / report.steps as f64).collect();
        report.statistics = statistics.map(mean);
        Ok(report)
    }

    fn gradient(&mut self, params: &Params, rows: &[u32], pass: &Pass<'_>) -> Result<Vec<f32>, TrainFailure> {
        self.prepare(params, rows, pass)?;
        let epoch = pass.first_epoch;
        let mut dropout = pass.stream(Purpose::Dropout, epoch);
        let mut mode = Mode::Training { dropout: &mut dropout, norm: pass.norm, frozen: pass.frozen };
        let mut augment = self.samples.augments().then(|| pass.stream(Purpose::Augment, epoch));
        let total = self.weight(rows, pass);
        let mut sum = vec![0.0; self.layout.trainable()];
        for batch in pass.order(epoch, rows).chunks(pass.batch) {
            let loss = self.slope(params, batch, pass, &mut mode, augment.as_mut());
            if !loss.is_finite() {
                return Err(TrainFailure::Diverged { epoch, loss });
            }
            let share = if total == 0.0 { 0.0 } else { self.weight(batch, pass) / total };
            for (sum, &g) in sum.iter_mut().zip(&self.gradient) {
                *sum += share * f64::from(g);
            }
        }
        let mut gradient: Vec<f32> = sum.into_iter().map(|g| g as f32).collect();
        pass.frozen.into_iter().for_each(|frozen| frozen.clear(&mut gradient));
        Ok(gradient)
    }

    fn evaluate(
        &mut self,
        params: &Params,
        rows: &[u32],
        offsets: Option<&[f32]>,
    ) -> Result<Evaluation, TrainFailure> {
        self.follow(&params.layout)?;
        self.check(params, rows, &[("offsets to the logits", offsets.map(<[f32]>::len), self.classes)])?;
        let terms = Terms { offsets, ..Terms::default() };
        let mut evaluation = Evaluation::empty(self.classes);
        for batch in rows.chunks(EVALUATION_BATCH) {
            self.load(batch, None);
            self.forward(&params.values, &mut Mode::Evaluation);
            let Bound { buffers, output, .. } = &self.bound;
            let values = &buffers.values[output.value];
            evaluation.loss += cross_entropy(values, &output.map, &self.labels, terms, None);
            for (n, &label) in self.labels.iter().enumerate() {
                let place = label as usize * self.classes + prediction(values, &output.map, n, offsets);
                evaluation.confusion[place] += 1;
            }
        }
        Ok(evaluation)
    }

    fn logits(&mut self, params: &Params, rows: &[u32]) -> Result<Vec<f32>, TrainFailure> {
        self.follow(&params.layout)?;
        self.check(params, rows, &[])?;
        let mut logits = Vec::with_capacity(rows.len() * self.classes);
        for batch in rows.chunks(EVALUATION_BATCH) {
            self.load(batch, None);
            self.forward(&params.values, &mut Mode::Evaluation);
            let Bound { buffers, output, .. } = &self.bound;
            let values = &buffers.values[output.value];
            (0..batch.len()).for_each(|n| logits.extend(sample_logits(values, &output.map, n)));
        }
        Ok(logits)
    }
}

#[cfg(test)]
mod tests;
