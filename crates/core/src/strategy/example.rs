//! The example of a new strategy in CONTRIBUTING.md compiles as it stands there, and does what it says.

mod root;

use crate::labels::{Reference, Statistic};
use crate::memory::Memory;
use crate::round::Profile;
use crate::rules::Settings;

#[test]
fn the_guide_for_contributors_shows_this_code() {
    let guide = include_str!("../../../../CONTRIBUTING.md");
    assert!(guide.contains(&format!("```rust\n{}```\n", include_str!("example/root.rs"))));
}

#[test]
fn it_weights_clients_by_the_square_root_of_their_size() {
    let recipe = (root::SPEC.build)(&Settings::defaults(&root::SPEC));
    let weighting = recipe.weighting.expect("the example brings weights");
    let profiles = [Profile::new(0, 1, Statistic::Nothing), Profile::new(1, 9, Statistic::Nothing)];
    let profiles: Vec<&Profile> = profiles.iter().collect();
    let shares = weighting.shares(&profiles, &Reference::uniform(2), &mut Memory::default());
    assert_eq!(shares.weight, [0.25, 0.75]);
    assert_eq!(shares.size, [0.1, 0.9]);
}
