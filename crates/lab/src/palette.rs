//! Colours and dashes of strategies; they differ also for people who do not see red and green, and in print.

/// Colours on white (Okabe and Ito's, without their yellow, which white swallows).
pub const LIGHT: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#6e6e6e", "#000000"];

/// The same colours on black.
pub const DARK: [&str; 8] =
    ["#4aa8e8", "#ff8a3d", "#2fc79c", "#e8a3c9", "#9bd6fa", "#f5be3d", "#a9a9a9", "#f2f2f2"];

/// Dashes of the first eight strategies, of the next eight, and so on.
const DASHES: [&str; 3] = ["", "7 4", "2 3"];

/// The colour of a strategy by its place in the tables.
pub fn colour(place: usize) -> &'static str {
    LIGHT[place % LIGHT.len()]
}

/// The dashes of its curve; empty for none.
pub fn dashes(place: usize) -> &'static str {
    DASHES[place / LIGHT.len() % DASHES.len()]
}
