//! Hardened mode: what one client says about a column without bounds is limited by what the others say.
//!
//! ```text
//! a = median of m_k                                              where the column is
//! u = median of d_k + median of |m_k - a|, d_k = sqrt(q_k / n_k)     how far values and clients are apart
//! m_k <- a ± 6 u at most,   d_k <- 6 u at most
//! ```
//!
//! A cap on weights alone does not help: of a mean of 1e30, a weight of 0.1 leaves 1e29. Of at least three clients, one
//! moves none of the medians out of the range of the others, so with honest means from l to h, honest deviations from s to
//! d and U = d + (h - l), the centre stays between l - 2.4 U and h + 2.4 U (the greatest weight is 0.4), and the scale
//! between 0.77 s and 9 U.
//!
//! The factor is 6, as for the norms of updates: of all numbers of the four heart hospitals the farthest mean is 2.3 u away
//! (cholesterol, which Switzerland recorded as 0) and the greatest deviation is 1.3 u, so they are combined as they are.
//!
//! If most clients have one and the same value, u is 0 and all count as that value, unless bounds limit what others say.

use super::moments::Moments;
use fedtvd_core::median::median;

/// How many units a mean may be away from the median of all, and a deviation be long.
const FACTOR: f64 = 6.0;

/// The moments within the limits, and whether each was beyond them. Those within are the same to the bit.
pub(super) fn clipped(known: &[Moments], bounded: bool) -> (Vec<Moments>, Vec<bool>) {
    let middle = |values: Vec<f64>| median(values).unwrap_or_default();
    let anchor = middle(known.iter().map(|k| k.mean).collect());
    let unit = middle(known.iter().map(Moments::deviation).collect())
        + middle(known.iter().map(|k| (k.mean - anchor).abs()).collect());
    if unit == 0.0 && bounded {
        return (known.to_vec(), vec![false; known.len()]);
    }
    let most = FACTOR * unit;
    let clip = |k: &Moments| {
        let mean = k.mean.clamp(anchor - most, anchor + most);
        let squares = if k.deviation() > most { k.count as f64 * most * most } else { k.squares };
        let within = Moments { mean, squares, ..*k };
        (within, within != *k)
    };
    known.iter().map(clip).unzip()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(mean: f64, deviation: f64) -> Moments {
        Moments { count: 100, mean, squares: 100.0 * deviation * deviation }
    }

    #[test]
    fn a_mean_and_a_deviation_far_from_the_others_are_brought_to_the_limit() {
        // a = 1.5, u = 2 + median of 1.5, 0.5, 0.5, 1e30.
        let clients = [moments(0.0, 2.0), moments(1.0, 2.0), moments(2.0, 2.0), moments(1e30, 0.0)];
        let (within, beyond) = clipped(&clients, false);
        assert_eq!(beyond, [false, false, false, true]);
        assert_eq!(within[..3], clients[..3]);
        assert_eq!(within[3], moments(1.5 + 6.0 * 3.0, 0.0));
        let wide = [moments(0.0, 1.0), moments(0.0, 1.0), moments(0.0, 100.0)];
        let (within, beyond) = clipped(&wide, false);
        assert_eq!((within[2], beyond), (moments(0.0, 6.0), vec![false, false, true]));
    }

    #[test]
    fn the_cholesterol_of_the_four_heart_hospitals_is_combined_as_it_is() {
        // Means and deviations of all numbers in the files of UCI heart disease; Switzerland's are all 0.
        let hospitals =
            [moments(246.7, 51.7), moments(250.8, 67.5), moments(0.0, 0.0), moments(178.7, 113.7)];
        assert_eq!(clipped(&hospitals, false), (hospitals.to_vec(), vec![false; 4]));
    }

    #[test]
    fn where_most_have_one_value_only_bounds_let_others_have_more() {
        let clients = [moments(0.0, 0.0), moments(0.0, 0.0), moments(0.0, 0.0), moments(0.5, 0.5)];
        assert_eq!(clipped(&clients, false).0[3], moments(0.0, 0.0));
        assert_eq!(clipped(&clients, true), (clients.to_vec(), vec![false; 4]));
    }
}
