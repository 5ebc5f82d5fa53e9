//! Convolutions of stride 1 with fewer multiplications (Winograd; Lavin & Gray, "Fast Algorithms for Convolutional Neural
//! Networks", CVPR 2016): F(m x m, r x r) computes a tile of m x m outputs of an r x r kernel with (m + r - 1)² products
//! per channel in place of (m r)².
//!
//! ```text
//! y = Aᵀ [ Σ_c U_c ⊙ V_c ] A      U = G g Gᵀ of the kernel g,  V = Bᵀ d B of the tile's input d
//! dg = Gᵀ [ Σ (A dy Aᵀ) ⊙ V ] G   over tiles and samples: the transpose of the same map
//! dx = B [ Σ_o U_o ⊙ (A dy Aᵀ)_o ] Bᵀ   likewise; tiles overlap and are added
//! ```
//!
//! A, B and G follow from interpolation points p_i (rows i; the last row is the point at infinity):
//!
//! ```text
//! Aᵀ[j, i] = p_i^j        G[i, j] = p_i^j / N_i,   N_i = Π_{k≠i} (p_i - p_k)        Bᵀ[i] = coefficients of Π_{k≠i} (x - p_k)
//!
//! F(2x2, 3x3), points 0, 1, -1, ∞:
//!   Bᵀ = -1  0  1  0     G =  -1    0    0      Aᵀ = 1 1  1 0
//!         0  1  1  0         1/2  1/2  1/2           0 1 -1 1
//!         0 -1  1  0         1/2 -1/2  1/2
//!         0 -1  0  1           0    0    1
//! F(4x4, 3x3) and F(2x2, 5x5), points 0, a, -a, b, -b, ∞ with a = √2 and b = 1/√2, so that a² b² = 1:
//!   Bᵀ = 1    0 -5/2    0  1  0        Aᵀ = 1  1   1   1   1  0      the first two rows, the last one + (0 0 0 0 0 1),
//!        0 -a/2 -1/2    a  1  0             0  a  -a   b  -b  0      for F(2x2, 5x5)
//!        0  a/2 -1/2   -a  1  0             0 a²  a²  b²  b²  0
//!        0  -2b   -2    b  1  0             0 a³ -a³  b³ -b³  1
//!        0   2b   -2   -b  1  0
//!        0    1    0 -5/2  0  1        N = 1, 6, 6, -3/2, -3/2, 1
//! ```
//!
//! With these points the rounding error is half of that with 0, ±1, ±2 or ±1/2: over 64 channels 2.3 times that of the direct
//! sum for F(4x4, 3x3), 1.5 times for F(2x2, 5x5), 0.75 times for F(2x2, 3x3) (root mean square).
//!
//! A register is one pixel of all samples of a group, so the transforms are plain arithmetic on registers. Tiles of all
//! groups are columns. A block of columns is transformed, multiplied point by point, and transformed back, within the cache.

mod columns;
pub(crate) mod convolution;
pub(crate) mod gradient;
pub(crate) mod input_gradient;
mod kernels;
mod matrices;
mod panels;
mod tiles;
mod transforms;

#[cfg(test)]
mod tests;

/// Which algorithm: F(out x out, kernel x kernel).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    /// F(2x2, 3x3)
    Two3,
    /// F(4x4, 3x3)
    Four3,
    /// F(2x2, 5x5)
    Two5,
}

impl Scheme {
    /// Rows and columns of a tile's outputs.
    pub(crate) fn out(self) -> usize {
        match self {
            Self::Two3 | Self::Two5 => 2,
            Self::Four3 => 4,
        }
    }

    /// Rows and columns of the kernel.
    pub(crate) fn kernel(self) -> usize {
        match self {
            Self::Two3 | Self::Four3 => 3,
            Self::Two5 => 5,
        }
    }

    /// Products per channel of a tile.
    pub(crate) fn points(self) -> usize {
        (self.out() + self.kernel() - 1).pow(2)
    }
}

/// Numbers in one row of a block of columns, which is as many columns as that is registers.
const BLOCK: usize = 64;

/// Numbers from one point's matrix to the next: with powers of two between them, all points would compete for the same
/// places in the cache.
fn apart(numbers: usize) -> usize {
    numbers.next_multiple_of(16) + 16
}
