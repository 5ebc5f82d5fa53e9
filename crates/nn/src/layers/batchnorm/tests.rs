//! Against numbers of PyTorch's.

use super::*;
use crate::kernels::isa::Isa;
use fedtvd_core::stream::{Purpose, Stream};
use serde_json::Value;

#[test]
fn forward_backward_and_running_statistics_are_the_golden_ones() {
    let golden: Value =
        serde_json::from_str(include_str!("../../../tests/golden/batchnorm_layer.json")).unwrap();
    let number = |name: &str| golden[name].as_f64().unwrap();
    let list = |name: &str| -> Vec<f64> {
        golden[name].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
    };
    for isa in Isa::available() {
        let lanes = isa.lanes();
        let map = Map { shape: [1, 1, 1], border: 0, lanes };
        let port = |buffer| Port { value: buffer, gradient: buffer, map, write: Write::Set };
        let padded = |values: Vec<f64>| {
            let mut buffer = Aligned::zeros(lanes);
            buffer.iter_mut().zip(values).for_each(|(place, value)| *place = value as f32);
            buffer
        };
        let mut buffers = Buffers {
            isa,
            samples: 4,
            values: vec![padded(list("x")), Aligned::zeros(lanes)],
            gradients: vec![Aligned::zeros(lanes), padded(list("dy"))],
            scratch: Aligned::default(),
        };
        let mut params = vec![number("gamma") as f32, number("beta") as f32, 0.0, 1.0];
        let tensors = Tensors { scale: 0..1, shift: 1..2, mean: 2..3, variance: 3..4, buffers: 2 };
        let (input, output) = (port(0), port(1));
        let mut norm = BatchNorm::new([input, output], None, false, tensors);
        let mut stream = Stream::at(1, Purpose::Dropout, 0, 0);
        norm.forward(
            &mut buffers,
            &params,
            &mut Mode::Training { dropout: &mut stream, norm: None, frozen: None },
        );
        let mut gradient = [0.0; 2];
        norm.backward(&mut buffers, &params, &mut gradient);
        norm.remember(&mut params);
        let close =
            |found: f32, right: f64| assert!((f64::from(found) - right).abs() < 2e-6, "{found} {right}");
        buffers.values[1].iter().zip(list("y")).for_each(|(y, right)| close(*y, right));
        buffers.gradients[0].iter().zip(list("dx")).for_each(|(dx, right)| close(*dx, right));
        close(gradient[0], number("dgamma"));
        close(gradient[1], number("dbeta"));
        close(params[2], number("running_mean_after(momentum0.1,from0)"));
        close(params[3], number("running_var_after(momentum0.1,from1,UNBIASED)"));
        assert!(buffers.gradients[0][4..].iter().all(|dx| *dx == 0.0), "lanes without a sample");
    }
}
