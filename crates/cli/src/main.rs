//! The fedtvd binary.
fn main() {}
