//! The whole `fedtvd` command with one more strategy, `root`, which weights clients by the square root of their size:
//!
//! ```text
//! cargo run --example own_strategy -- compare --strategies fedavg,root,root+balanced
//! ```
//!
//! A run directory made with it can be resumed and verified by this program, as long as the source of the strategy is the
//! same, and reported by any.

use fedtvd_core::labels::{Ask, Reference};
use fedtvd_core::memory::Memory;
use fedtvd_core::round::Profile;
use fedtvd_core::rules::{Origin, Recipe, Shares, Spec, Weighting};
use fedtvd_core::strategy::register;
use fedtvd_run::directory::sha256;
use std::process::ExitCode;
use std::sync::Arc;

/// s_k = sqrt(n_k) / Σ sqrt(n_j).
#[derive(Debug)]
struct Root;

impl Weighting for Root {
    fn asks(&self) -> Ask {
        Ask::Nothing
    }

    fn shares(&self, profiles: &[&Profile], _: &Reference, _: &mut Memory) -> Shares {
        let part = |values: Vec<f64>| -> Vec<f64> {
            let sum: f64 = values.iter().sum();
            values.iter().map(|value| value / sum).collect()
        };
        let sizes = || profiles.iter().map(|profile| profile.size as f64);
        Shares {
            quality: None,
            size: part(sizes().collect()),
            weight: part(sizes().map(f64::sqrt).collect()),
        }
    }
}

/// The method with the rule.
pub(crate) fn root() -> Spec {
    let origin = Origin {
        source: sha256(include_bytes!("own_strategy.rs")),
        build: Box::new(|_, _| Recipe { weighting: Some(Arc::new(Root)), ..Recipe::default() }),
    };
    let about = "clients are weighted by the square root of their size";
    Spec::outside("root", about, "no paper: an example of a method outside the program", origin)
}

fn main() -> ExitCode {
    if let Err(why) = register(root()) {
        eprintln!("{why}");
        return ExitCode::from(2);
    }
    ExitCode::from(fedtvd_cli::main(std::env::args_os()))
}
