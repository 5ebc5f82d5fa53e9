//! Softmax regression with a ridge penalty, in f64: smooth and strongly convex, as the paper's bound assumes.
//!
//! ```text
//! F_k(w) = 1/n_k Σ_i −ln softmax(W x_i)[y_i] + ridge/2 ‖w‖²
//! ```
//!
//! The Hessian of a sample's loss is (diag(p) − p pᵀ) ⊗ x xᵀ with p = softmax(W x). The eigenvalues of diag(p) − p pᵀ are at
//! most 1/2, and x, including its constant feature, has length 1: every F_k is ridge-strongly convex and
//! (1/2 + ridge)-smooth.

use fedtvd_core::train::Samples;

/// Features and labels of all samples.
pub struct Problem {
    features: Vec<f64>,
    labels: Vec<usize>,
    width: usize,
    classes: usize,
    ridge: f64,
}

/// Side length of the average pooling.
const POOL: usize = 4;

impl Problem {
    /// The problem of a data set's training rows: images are average-pooled over 4 × 4 pixels, a constant feature is
    /// added, and every sample is scaled to length 1.
    pub fn new(samples: &Samples, ridge: f64) -> Self {
        let [channels, high, wide] = samples.shape();
        let (rows, columns) = (high.div_ceil(POOL), wide.div_ceil(POOL));
        let width = channels * rows * columns + 1;
        let mut pixels = vec![0.0f32; channels * high * wide];
        let count = samples.train_rows();
        let mut features = vec![0.0; count * width];
        for (row, feature) in features.chunks_mut(width).enumerate() {
            samples.read(row as u32, &mut pixels);
            for (place, &pixel) in pixels.iter().enumerate() {
                let (channel, rest) = (place / (high * wide), place % (high * wide));
                let (y, x) = (rest / wide / POOL, rest % wide / POOL);
                feature[(channel * rows + y) * columns + x] += f64::from(pixel) / (POOL * POOL) as f64;
            }
            feature[width - 1] = 1.0;
            let length = feature.iter().map(|x| x * x).sum::<f64>().sqrt();
            feature.iter_mut().for_each(|x| *x /= length);
        }
        let labels = samples.labels()[..count].iter().map(|&label| label as usize).collect();
        Self { features, labels, width, classes: samples.classes(), ridge }
    }

    /// The dimension of w.
    pub fn len(&self) -> usize {
        self.width * self.classes
    }

    /// Whether the dimension is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The smoothness constant: the best Lipschitz bound of the gradient for all w and labels.
    pub fn smoothness(&self) -> f64 {
        0.5 + self.ridge
    }

    /// The strong convexity constant of every F_k.
    pub fn convexity(&self) -> f64 {
        self.ridge
    }

    /// F_k(w) and its gradient over these rows.
    pub fn gradient(&self, rows: &[u32], w: &[f64]) -> (f64, Vec<f64>) {
        let mut gradient: Vec<f64> = vec![0.0; w.len()];
        let mut loss = 0.0;
        let mut scores = vec![0.0; self.classes];
        for &row in rows {
            let x = &self.features[row as usize * self.width..][..self.width];
            for (score, w) in scores.iter_mut().zip(w.chunks(self.width)) {
                *score = w.iter().zip(x).map(|(w, x)| w * x).sum();
            }
            let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let total: f64 = scores.iter().map(|score| (score - most).exp()).sum();
            let label = self.labels[row as usize];
            loss += most + total.ln() - scores[label];
            for (class, (score, gradient)) in scores.iter().zip(gradient.chunks_mut(self.width)).enumerate() {
                let slope = (score - most).exp() / total - f64::from(u8::from(class == label));
                gradient.iter_mut().zip(x).for_each(|(g, x)| *g += slope * x);
            }
        }
        let count = rows.len() as f64;
        gradient.iter_mut().zip(w).for_each(|(g, w)| *g = *g / count + self.ridge * w);
        let square: f64 = w.iter().map(|w| w * w).sum();
        (loss / count + 0.5 * self.ridge * square, gradient)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use fedtvd_core::train::Values;

    /// Twelve small images of three classes.
    pub(crate) fn small() -> Problem {
        let values: Vec<f32> = (0..12 * 16).map(|i| ((i * 37 % 101) as f32) / 101.0).collect();
        let labels = (0..12).map(|i| i % 3).collect();
        let samples = Samples::new([1, 4, 4], 3, Values::Floats(values), labels, 12).unwrap();
        Problem::new(&samples, 0.1)
    }

    /// dᵀ ∇²F(w) d over all rows, by central differences, which are accurate to about 1e-9 here.
    fn curvature(problem: &Problem, rows: &[u32], w: &[f64], d: &[f64]) -> f64 {
        let at = |step: f64| {
            let moved: Vec<f64> = w.iter().zip(d).map(|(w, d)| w + step * d).collect();
            problem.gradient(rows, &moved).1
        };
        let (before, after) = (at(-1e-4), at(1e-4));
        d.iter().zip(after.iter().zip(before)).map(|(d, (after, before))| d * (after - before) / 2e-4).sum()
    }

    #[test]
    fn no_curvature_is_above_the_smoothness_and_two_even_classes_reach_it() {
        let problem = small();
        let x = &problem.features[..problem.width];
        assert!(
            (x.iter().map(|x| x * x).sum::<f64>() - 1.0).abs() < 1e-12,
            "the length includes the constant feature"
        );
        // The third class has probability 0, the other two are equally likely: p = (1/2, 1/2, 0).
        let row = |factor: f64| x.iter().map(move |x| factor * x);
        let w: Vec<f64> = row(30.0).chain(row(30.0)).chain(row(-30.0)).collect();
        let half = 0.5f64.sqrt();
        let d: Vec<f64> = row(half).chain(row(-half)).chain(row(0.0)).collect();
        let most = curvature(&problem, &[0], &w, &d);
        assert!((most - problem.smoothness()).abs() < 1e-7, "{most} {}", problem.smoothness());
        for place in 0..40 {
            let wave = |factor: f64| move |i: usize| (factor * (i + 1) as f64 * f64::from(place + 1)).sin();
            let w: Vec<f64> = (0..problem.len()).map(wave(0.7)).collect();
            let d: Vec<f64> = (0..problem.len()).map(wave(1.3)).collect();
            let length: f64 = d.iter().map(|d| d * d).sum();
            let here = curvature(&problem, &[0, 1, 2, 3, 4], &w, &d) / length;
            assert!((problem.convexity() - 1e-7..problem.smoothness() + 1e-7).contains(&here), "{here}");
        }
    }

    #[test]
    fn the_gradient_is_the_slope_of_the_loss() {
        let problem = small();
        let w: Vec<f64> = (0..problem.len()).map(|i| (i as f64 * 0.7).sin()).collect();
        let rows: Vec<u32> = (0..7).collect();
        let (_, gradient) = problem.gradient(&rows, &w);
        for place in 0..w.len() {
            let at = |step: f64| {
                let mut moved = w.clone();
                moved[place] += step;
                problem.gradient(&rows, &moved).0
            };
            // Central differences are accurate to about 1e-10 here.
            let slope = (at(1e-5) - at(-1e-5)) / 2e-5;
            assert!((slope - gradient[place]).abs() < 1e-8, "{place}: {slope} {}", gradient[place]);
        }
    }
}
