//! The minimum of a weighted sum of clients' objectives, and federated gradient descent towards it.

use super::logistic::Problem;

/// Clients' objectives with weights: Σ q_k F_k.
pub struct Objective<'a> {
    /// The problem.
    pub problem: &'a Problem,
    /// Each client's rows.
    pub clients: &'a [Vec<u32>],
    /// q, which sums to 1.
    pub weights: &'a [f64],
}

impl Objective<'_> {
    /// Its value and its gradient.
    pub fn gradient(&self, w: &[f64]) -> (f64, Vec<f64>) {
        let (mut value, mut sum) = (0.0, vec![0.0; w.len()]);
        for (rows, q) in self.clients.iter().zip(self.weights) {
            let (own, gradient) = self.problem.gradient(rows, w);
            value += q * own;
            sum.iter_mut().zip(gradient).for_each(|(sum, g)| *sum += q * g);
        }
        (value, sum)
    }

    /// The minimiser and the minimum, by Nesterov's method with the problem's constants, until the gradient norm
    /// guarantees a value within 1e-12 of the minimum.
    pub fn minimum(&self) -> (Vec<f64>, f64) {
        let (smooth, convex) = (self.problem.smoothness(), self.problem.convexity());
        let ratio = (convex / smooth).sqrt();
        let momentum = (1.0 - ratio) / (1.0 + ratio);
        let mut w = vec![0.0; self.problem.len()];
        let mut ahead = w.clone();
        loop {
            let (_, gradient) = self.gradient(&ahead);
            // F − F* ≤ ‖∇F‖² / (2 convex).
            if gradient.iter().map(|g| g * g).sum::<f64>() < 2e-12 * convex {
                let (value, _) = self.gradient(&ahead);
                return (ahead, value);
            }
            let next: Vec<f64> = ahead.iter().zip(&gradient).map(|(w, g)| w - g / smooth).collect();
            ahead = next.iter().zip(&w).map(|(next, w)| next + momentum * (next - w)).collect();
            w = next;
        }
    }

    /// One round: every client takes `steps` full gradient steps from w, and the models are averaged. Returns the new
    /// model and every client's gradient at w.
    pub fn round(&self, w: &[f64], steps: u32, lr: f64) -> (Vec<f64>, Vec<Vec<f64>>) {
        let mut next = vec![0.0; w.len()];
        let mut firsts = Vec::with_capacity(self.clients.len());
        for (rows, q) in self.clients.iter().zip(self.weights) {
            let mut own = w.to_vec();
            for step in 0..steps {
                let (_, gradient) = self.problem.gradient(rows, &own);
                own.iter_mut().zip(&gradient).for_each(|(w, g)| *w -= lr * g);
                if step == 0 {
                    firsts.push(gradient);
                }
            }
            next.iter_mut().zip(own).for_each(|(next, w)| *next += q * w);
        }
        (next, firsts)
    }
}

#[cfg(test)]
mod tests {
    use super::super::logistic::tests::small;
    use super::*;

    #[test]
    fn no_point_near_the_minimum_is_lower() {
        let problem = small();
        let clients = [vec![0, 1, 2, 3], vec![4, 5, 6, 7, 8, 9, 10, 11]];
        let objective = Objective { problem: &problem, clients: &clients, weights: &[0.25, 0.75] };
        let (w, least) = objective.minimum();
        for place in 0..w.len() {
            for step in [-1e-3, 1e-3] {
                let mut moved = w.clone();
                moved[place] += step;
                assert!(objective.gradient(&moved).0 > least);
            }
        }
    }

    #[test]
    fn one_local_step_is_gradient_descent_on_the_weighted_sum() {
        let problem = small();
        let clients = [vec![0, 1, 2, 3], vec![4, 5, 6, 7, 8, 9, 10, 11]];
        let objective = Objective { problem: &problem, clients: &clients, weights: &[0.25, 0.75] };
        let w = vec![0.1; problem.len()];
        let (next, _) = objective.round(&w, 1, 0.5);
        let (_, gradient) = objective.gradient(&w);
        for ((next, w), g) in next.iter().zip(&w).zip(gradient) {
            assert!((next - (w - 0.5 * g)).abs() < 1e-15);
        }
    }
}
