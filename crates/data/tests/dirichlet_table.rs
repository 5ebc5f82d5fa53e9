//! How skewed per-class Dirichlet splits are: a table that was computed independently, over 20 seeds.

use fedtvd_core::labels::Reference;
use fedtvd_data::split::{Deck, Dirichlet};
use fedtvd_data::statistics::Statistics;

// Mean TVD and size variation for alpha = 0.1, 0.5 and 1 with 100 clients: without
// balancing the closed form, with it the mean of 20 splits by the reference implementation.
struct Case {
    self_balancing: bool,
    classes: u32,
    per_class: u32,
    tvd: [f64; 3],
    variation: [f64; 3],
}

const CASES: [Case; 4] = [
    Case {
        self_balancing: true,
        classes: 10,
        per_class: 6_000,
        tvd: [0.743, 0.506, 0.392],
        variation: [0.84, 0.32, 0.21],
    },
    Case {
        self_balancing: true,
        classes: 100,
        per_class: 500,
        tvd: [0.773, 0.504, 0.387],
        variation: [0.162, 0.062, 0.043],
    },
    Case {
        self_balancing: false,
        classes: 10,
        per_class: 6_000,
        tvd: [0.711, 0.458, 0.349],
        variation: [0.949, 0.441, 0.313],
    },
    Case {
        self_balancing: false,
        classes: 100,
        per_class: 500,
        tvd: [0.752, 0.482, 0.366],
        variation: [0.300, 0.139, 0.099],
    },
];

#[test]
fn skew_and_sizes_are_those_of_the_table() {
    for Case { self_balancing, classes, per_class, tvd, variation } in CASES {
        let labels: Vec<u32> = (0..classes * per_class).map(|row| row % classes).collect();
        let deck = Deck { labels: &labels, classes: classes as usize, groups: None };
        let reference = Reference::uniform(classes as usize);
        for (place, alpha) in [0.1, 0.5, 1.0].into_iter().enumerate() {
            let split = Dirichlet { alpha, self_balancing, ..Dirichlet::default() };
            let all: Vec<Statistics> = (0..20)
                .map(|seed| Statistics::of(&split.split(&deck, seed).unwrap(), &labels, &reference))
                .collect();
            let mean_tvd = all.iter().map(|s| s.mean_tvd).sum::<f64>() / 20.0;
            let mean_variation = all.iter().map(|s| s.size_cv).sum::<f64>() / 20.0;
            println!(
                "balancing {self_balancing:5} · {classes:3} x {per_class:4} · alpha {alpha}: \
                 TVD {mean_tvd:.4} ({}) · variation {mean_variation:.4} ({})",
                tvd[place], variation[place]
            );
            assert!((mean_tvd - tvd[place]).abs() < 0.02);
            assert!((mean_variation - variation[place]).abs() < 0.06);
        }
    }
}
