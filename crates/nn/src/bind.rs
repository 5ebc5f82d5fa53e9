//! Gives every feature map its border and buffers, and makes the layers.

use crate::cpu::CpuError;
use crate::flow::{Flow, Node};
use crate::kernels::aligned::Aligned;
use crate::kernels::isa::Isa;
use crate::layers::algorithm::Algorithms;
use crate::layers::avgpool::AveragePool;
use crate::layers::batchnorm::{BatchNorm, Tensors};
use crate::layers::conv::{Conv, Window};
use crate::layers::dropout::Dropout;
use crate::layers::flatten::Flatten;
use crate::layers::globalpool::GlobalPool;
use crate::layers::groupnorm::GroupNorm;
use crate::layers::linear::Linear;
use crate::layers::maxpool::MaxPool;
use crate::layers::relu::Relu;
use crate::layers::sum::Sum;
use crate::layers::windows::Windows;
use crate::layers::{Buffers, Layer};
use crate::map::{Map, Port, Write};
use fedtvd_core::model::{Layer as Kind, Layout};
use fedtvd_core::train::Frozen;
use std::ops::Range;

/// A network ready to run batches of up to `capacity` samples.
pub(crate) struct Bound {
    pub(crate) layers: Vec<Box<dyn Layer>>,
    /// The trainable tensors of each layer.
    tensors: Vec<Vec<Range<usize>>>,
    pub(crate) buffers: Buffers,
    pub(crate) input: Port,
    pub(crate) output: Port,
    pub(crate) capacity: usize,
}

impl Bound {
    /// Binds the operations for batches of up to `capacity` samples.
    pub(crate) fn new(flow: &Flow, layout: &Layout, isa: Isa, capacity: usize) -> Self {
        let groups = capacity.div_ceil(isa.lanes());
        let maps = maps(flow, isa);
        let (slots, sizes) = gradient_slots(flow, &maps);
        let port =
            |map: usize, write: Write| Port { value: map, gradient: slots[map], map: maps[map], write };
        let writes = writes(flow);
        let layers = flow.nodes.iter().zip(&writes).map(|(node, &(input, added))| {
            let ends = Ends {
                input: port(node.input, input),
                output: port(node.output, Write::Set),
                added: node.added.map(|map| port(map, added)),
            };
            layer(node, ends, layout, groups)
        });
        let layers = layers.collect();
        Self {
            layers,
            tensors: flow.nodes.iter().map(|node| trainable(&node.kind, layout)).collect(),
            buffers: Buffers {
                isa,
                samples: 0,
                values: maps.iter().map(|map| Aligned::zeros(groups * map.group())).collect(),
                gradients: sizes.iter().map(|size| Aligned::zeros(groups * size)).collect(),
                scratch: Aligned::zeros(scratch(flow, &maps, groups)),
            },
            input: port(0, Write::Skip),
            output: port(flow.end, Write::Set),
            capacity: groups * isa.lanes(),
        }
    }

    /// The first layer with a tensor that moves: no layer before it needs a backward pass.
    pub(crate) fn first_moving(&self, frozen: Option<&Frozen>) -> usize {
        let Some(frozen) = frozen else { return 0 };
        let moves = |tensors: &Vec<Range<usize>>| tensors.iter().any(|tensor| !frozen.covers(tensor));
        self.tensors.iter().position(moves).unwrap_or(self.tensors.len())
    }

    /// Frees the buffers and the layers, so that others can be made without holding both.
    pub(crate) fn free(&mut self) {
        self.layers = Vec::new();
        (self.buffers.values, self.buffers.gradients, self.capacity) = (Vec::new(), Vec::new(), 0);
        self.buffers.scratch = Aligned::default();
    }
}

/// Fails if a batch of up to `capacity` samples has a feature map, or the model, more numbers than the layers' tables can
/// address.
pub(crate) fn check(flow: &Flow, layout: &Layout, isa: Isa, capacity: usize) -> Result<(), CpuError> {
    let groups = capacity.div_ceil(isa.lanes()) as u128;
    let largest = maps(flow, isa).iter().map(|map| groups * map.group() as u128).max().unwrap_or(0);
    let numbers = largest.max(layout.len() as u128);
    if numbers <= u128::from(u32::MAX) { Ok(()) } else { Err(CpuError::TooLarge { numbers }) }
}

/// Bytes of the buffers and tables that a network needs for batches of up to `capacity` samples, without making them.
pub(crate) fn bytes(flow: &Flow, isa: Isa, capacity: usize) -> u128 {
    let groups = capacity.div_ceil(isa.lanes());
    let maps = maps(flow, isa);
    let (_, gradients) = gradient_slots(flow, &maps);
    let numbers: u128 = maps.iter().map(Map::group).chain(gradients).map(|group| group as u128).sum();
    let layers: u128 = flow
        .nodes
        .iter()
        .map(|node| {
            LAYER + layer_bytes(&node.kind, &maps[node.input], &maps[node.output], written(node), groups)
        })
        .sum();
    4 * (numbers * groups as u128 + scratch(flow, &maps, groups) as u128) + layers
}

/// Whether a node writes the gradient of its input: all but those that read the data.
fn written(node: &Node) -> Write {
    if node.input == 0 { Write::Skip } else { Write::Set }
}

/// Numbers of the working memory that all layers share.
fn scratch(flow: &Flow, maps: &[Map], groups: usize) -> usize {
    let of = |node: &Node| {
        let (input, output) = (&maps[node.input], &maps[node.output]);
        let algorithms =
            window(&node.kind).map(|window| Algorithms::of(input, output, window, written(node)));
        algorithms.map_or(0, |algorithms| algorithms.scratch(input, output, groups * input.lanes))
    };
    flow.nodes.iter().map(of).max().unwrap_or(0)
}

/// Bytes of a layer besides its buffers and tables, and of three allocations around it, at most.
const LAYER: u128 = 512;

/// Bytes of the buffers and tables that a layer itself holds. `write` says how the gradient of its input is written.
fn layer_bytes(kind: &Kind, input: &Map, output: &Map, write: Write, groups: usize) -> u128 {
    match kind {
        Kind::Conv { .. } => {
            let window = window(kind).expect("a convolution has a window");
            Conv::bytes(input, output, window, write, groups)
        }
        Kind::Linear { .. } => Linear::bytes(input, output, groups),
        Kind::Dropout { .. } => 4 * groups as u128 * output.group() as u128,
        Kind::BatchNorm { .. } => BatchNorm::bytes(input),
        Kind::GroupNorm { groups: parts, .. } => {
            4 * groups as u128 * *parts as u128 * 2 * input.lanes as u128
        }
        Kind::Relu
        | Kind::MaxPool { .. }
        | Kind::AveragePool { .. }
        | Kind::GlobalPool
        | Kind::Flatten
        | Kind::Residual { .. } => 0,
    }
}

struct Ends {
    input: Port,
    output: Port,
    added: Option<Port>,
}

fn window(kind: &Kind) -> Option<Window> {
    match kind {
        Kind::Conv { kernel, stride, pad, .. } => {
            Some(Window { kernel: *kernel, stride: *stride, pad: *pad })
        }
        _ => None,
    }
}

/// Every map with the border that the convolutions at its two ends need.
fn maps(flow: &Flow, isa: Isa) -> Vec<Map> {
    let map = |&shape| Map { shape, border: 0, lanes: isa.lanes() };
    let mut maps: Vec<Map> = flow.shapes.iter().map(map).collect();
    for node in &flow.nodes {
        if let Some(window) = window(&node.kind) {
            let sides = |map: usize| [flow.shapes[map][1], flow.shapes[map][2]];
            let input = &mut maps[node.input];
            input.border = input.border.max(window.pad);
            if node.input != 0 {
                let border = window.gradient_border(sides(node.input), sides(node.output));
                maps[node.output].border = maps[node.output].border.max(border);
            }
        }
    }
    maps
}

/// How each node writes the gradients of its input and of what it adds: the last reader goes back first.
fn writes(flow: &Flow) -> Vec<(Write, Write)> {
    let mut written = vec![false; flow.shapes.len()];
    let mut write = |map: usize| match (map, std::mem::replace(&mut written[map], true)) {
        (0, _) => Write::Skip,
        (_, false) => Write::Set,
        (_, true) => Write::Add,
    };
    let mut writes: Vec<(Write, Write)> = flow
        .nodes
        .iter()
        .rev()
        .map(|node| {
            let added = node.added.map_or(Write::Skip, &mut write);
            (write(node.input), added)
        })
        .collect();
    writes.reverse();
    writes
}

/// A gradient buffer for every map and the buffers' sizes: a map's gradient lives from its last reader's
/// backward pass to its maker's, and then gives its buffer to the next one that lies the same way.
fn gradient_slots(flow: &Flow, maps: &[Map]) -> (Vec<usize>, Vec<usize>) {
    let mut slots = vec![usize::MAX; maps.len()];
    let mut kinds: Vec<Map> = Vec::new();
    let mut free: Vec<usize> = Vec::new();
    let mut take = |map: usize, slots: &mut Vec<usize>, free: &mut Vec<usize>| {
        if slots[map] == usize::MAX {
            slots[map] = match free.iter().position(|&slot| kinds[slot] == maps[map]) {
                Some(place) => free.swap_remove(place),
                None => {
                    kinds.push(maps[map]);
                    kinds.len() - 1
                }
            };
        }
    };
    take(flow.end, &mut slots, &mut free);
    for node in flow.nodes.iter().rev() {
        for map in [Some(node.input), node.added].into_iter().flatten().filter(|&map| map != 0) {
            take(map, &mut slots, &mut free);
        }
        free.push(slots[node.output]);
    }
    // The input data has no gradient: its buffer is empty and not shared.
    slots[0] = kinds.len();
    (slots, kinds.iter().map(Map::group).chain([0]).collect())
}

/// The trainable tensors of an operation.
fn trainable(kind: &Kind, layout: &Layout) -> Vec<Range<usize>> {
    match kind {
        Kind::Conv { name, .. }
        | Kind::Linear { name, .. }
        | Kind::BatchNorm { name }
        | Kind::GroupNorm { name, .. } => {
            ["weight", "bias"].iter().filter_map(|part| layout.range(&format!("{name}.{part}"))).collect()
        }
        Kind::Relu
        | Kind::MaxPool { .. }
        | Kind::AveragePool { .. }
        | Kind::GlobalPool
        | Kind::Dropout { .. }
        | Kind::Flatten
        | Kind::Residual { .. } => Vec::new(),
    }
}

fn layer(node: &Node, ends: Ends, layout: &Layout, groups: usize) -> Box<dyn Layer> {
    let Ends { input, output, added } = ends;
    let tensor = |name: &str, part: &str| -> Range<usize> {
        layout.range(&format!("{name}.{part}")).expect("the layout was made from the same network")
    };
    let relu = (node.relu, node.masks);
    match &node.kind {
        Kind::Conv { name, bias, .. } => {
            let window = window(&node.kind).expect("a convolution has a window");
            let bias = bias.then(|| tensor(name, "bias"));
            Box::new(Conv::new(input, output, window, tensor(name, "weight"), bias, relu, groups))
        }
        Kind::Linear { name, .. } => {
            Box::new(Linear::new(input, output, tensor(name, "weight"), tensor(name, "bias"), relu, groups))
        }
        Kind::Relu => Box::new(Relu { input, output }),
        Kind::MaxPool { size, stride } => {
            let windows = Windows { input, output, size: *size, stride: *stride };
            Box::new(MaxPool { windows, masks: node.masks_input })
        }
        Kind::Flatten => Box::new(Flatten { input, output }),
        Kind::AveragePool { size, stride } => {
            Box::new(AveragePool(Windows { input, output, size: *size, stride: *stride }))
        }
        Kind::GlobalPool => Box::new(GlobalPool { input, output }),
        Kind::BatchNorm { name } => {
            let tensors = Tensors {
                scale: tensor(name, "weight"),
                shift: tensor(name, "bias"),
                mean: tensor(name, "running_mean"),
                variance: tensor(name, "running_var"),
                buffers: layout.trainable(),
            };
            Box::new(BatchNorm::new([input, output], added, node.relu, tensors))
        }
        Kind::GroupNorm { name, groups: parts } => Box::new(GroupNorm {
            input,
            output,
            added,
            relu: node.relu,
            scale: tensor(name, "weight"),
            shift: tensor(name, "bias"),
            channels: input.map.shape[0] / parts,
            moments: vec![0.0; groups * parts * 2 * input.map.lanes],
        }),
        Kind::Dropout { rate } => Box::new(Dropout::new(input, output, *rate, groups)),
        Kind::Residual { .. } => {
            let short = added.expect("a sum has two inputs");
            Box::new(Sum { long: input, short, output, relu: node.relu })
        }
    }
}
