//! Colours and dashes of strategies, distinguishable with colour blindness and in print.

/// Colours on white (Okabe and Ito's, without their yellow, which is too pale on white), as 0xRRGGBB.
pub(crate) const LIGHT: [u32; 8] =
    [0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7, 0x56b4e9, 0xe69f00, 0x6e6e6e, 0x000000];

/// The same colours on black.
pub(crate) const DARK: [u32; 8] =
    [0x4aa8e8, 0xff8a3d, 0x2fc79c, 0xe8a3c9, 0x9bd6fa, 0xf5be3d, 0xa9a9a9, 0xf2f2f2];

/// Dashes of the first eight strategies, of the next eight, and so on.
const DASHES: [&[f32]; 3] = [&[], &[7.0, 4.0], &[2.0, 3.0]];

/// The role of a colour; files have fixed colours, the page has its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    /// Text and axes.
    Ink,
    /// Grid lines.
    Grid,
    /// Bars that do not belong to a strategy.
    Neutral,
    /// A strategy, by its position in the tables.
    Strategy(usize),
}

impl Colour {
    /// On white, as 0xRRGGBB.
    pub(crate) fn on_white(self) -> u32 {
        match self {
            Self::Ink => 0x222222,
            Self::Grid => 0xd9d9d9,
            Self::Neutral => 0x8a8a8a,
            Self::Strategy(place) => LIGHT[place % LIGHT.len()],
        }
    }
}

/// The dashes of a strategy's curve; empty for a solid line.
pub(crate) fn dashes(place: usize) -> &'static [f32] {
    DASHES[place / LIGHT.len() % DASHES.len()]
}
