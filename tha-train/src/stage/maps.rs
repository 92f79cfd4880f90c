//! Maps: a feature beside its linear part gets J pieces between quantiles of the training rows.
//!
//! Fitted as ramps clip((z - k_j) / (k_{j+1} - k_j), 0, 1): the ridge on their coefficients asks for a small change from
//! piece to piece. Delivered as values at the nodes lo, k_0, ..., k_J, hi, between which linear part and ramps are linear (hat
//! functions). Outside of lo..hi a mapped feature stays constant.

use super::mean_and_std;

/// Pieces of a map at most: more than the quantiles of a recording can place well.
pub(super) const MOST: usize = 64;
/// The quantiles between which pieces lie.
const TAIL: f64 = 0.01;
/// Knots that make a map: fewer than two pieces are a straight line.
const KNOTS: usize = 3;
/// A smaller deviation is rounding: the feature does not move.
const CONSTANT: f64 = 1e-9;

/// (value - mean) gain: zero mean and unit variance over the training rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Unit {
    pub(super) mean: f64,
    pub(super) gain: f64,
}

impl Unit {
    pub(super) const IDENTITY: Self = Self { mean: 0.0, gain: 1.0 };

    /// From the training rows.
    pub(super) fn new(values: impl Iterator<Item = f64> + Clone) -> Self {
        let (mean, std) = mean_and_std(values);
        Self { mean, gain: if std < CONSTANT { 1.0 } else { std.recip() } }
    }

    pub(super) fn apply(self, value: f64) -> f64 {
        (value - self.mean) * self.gain
    }
}

/// One piece, as the fit sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ramp {
    from: f64,
    to: f64,
    unit: Unit,
}

impl Ramp {
    /// Standardised.
    pub(super) fn value(&self, z: f64) -> f64 {
        self.unit.apply(self.clipped(z))
    }

    fn clipped(&self, z: f64) -> f64 {
        ((z - self.from) / (self.to - self.from)).clamp(0.0, 1.0)
    }
}

/// Least and greatest value, rounded away from each other to f32: the training rows are inside.
pub(super) fn range(values: impl Iterator<Item = f64>) -> [f32; 2] {
    let (mut lo, mut hi) = (f64::INFINITY, f64::NEG_INFINITY);
    for value in values {
        (lo, hi) = (lo.min(value), hi.max(value));
    }
    let (low, high) = (lo as f32, hi as f32);
    [
        if f64::from(low) > lo { low.next_down() } else { low },
        if f64::from(high) < hi { high.next_up() } else { high },
    ]
}

/// A map of so many pieces: its nodes and its ramps, both empty where the values are too few or too much alike.
pub(super) fn map(mut values: Vec<f64>, range: [f32; 2], pieces: usize) -> (Vec<f32>, Vec<Ramp>) {
    values.sort_by(f64::total_cmp);
    let quantile = |part: f64| {
        let at = part * (values.len() - 1) as f64;
        let (below, above) = (values[at.floor() as usize], values[at.ceil() as usize]);
        below + at.fract() * (above - below)
    };
    let part = |k: usize| TAIL + (1.0 - 2.0 * TAIL) * k as f64 / pieces as f64;
    let mut knots: Vec<f32> = (0..=pieces).map(|k| quantile(part(k)) as f32).collect();
    knots.dedup();
    if knots.len() < KNOTS {
        return (Vec::new(), Vec::new());
    }
    let ramp = |pair: &[f32]| {
        let mut ramp = Ramp { from: pair[0].into(), to: pair[1].into(), unit: Unit::IDENTITY };
        ramp.unit = Unit::new(values.iter().map(|z| ramp.clipped(*z)));
        ramp
    };
    let ramps = knots.windows(2).map(ramp).collect();
    let mut nodes = [&range[..1], &knots, &range[1..]].concat();
    nodes.dedup();
    (nodes, ramps)
}

/// Distinct among the values, as far as `enough`.
pub(super) fn distinct(values: &[f64], enough: usize) -> usize {
    let mut seen: Vec<f64> = Vec::new();
    for value in values {
        if !seen.contains(value) {
            seen.push(*value);
            if seen.len() == enough {
                break;
            }
        }
    }
    seen.len()
}

/// The cell of a value among nodes, and where in it: 0 at its left node, 1 at its right one; constant outside.
pub(crate) fn cell(nodes: &[f32], z: f64) -> (usize, f64) {
    let at = nodes[1..nodes.len() - 1].partition_point(|node| f64::from(*node) <= z);
    let (left, right) = (f64::from(nodes[at]), f64::from(nodes[at + 1]));
    (at, ((z - left) / (right - left)).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knots_are_quantiles_and_nodes_reach_the_range() {
        // 0..=100: the quantile of a part is 100 times the part.
        let values: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        let (nodes, ramps) = map(values.clone(), range(values.iter().copied()), 7);
        assert_eq!(nodes, [0.0, 1.0, 15.0, 29.0, 43.0, 57.0, 71.0, 85.0, 99.0, 100.0]);
        assert_eq!(ramps.len(), 7);
        for ramp in &ramps {
            let (mean, std) = mean_and_std(values.iter().map(|z| ramp.value(*z)));
            assert!(mean.abs() < 1e-12 && (std - 1.0).abs() < 1e-12);
        }
        let rise = |z: f64| ramps[1].clipped(z);
        assert_eq!([rise(0.0), rise(15.0), rise(22.0), rise(29.0), rise(99.0)], [0.0, 0.0, 0.5, 1.0, 1.0]);
        assert_eq!(
            [-5.0, 0.0, 8.0, 100.0, 200.0].map(|z| cell(&nodes, z)),
            [(0, 0.0), (0, 0.0), (1, 0.5), (8, 1.0), (8, 1.0)]
        );
    }

    #[test]
    fn values_that_are_mostly_alike_make_no_map() {
        let mut values = vec![0.0; 1000];
        values[17] = 1.0;
        assert!(map(values.clone(), range(values.iter().copied()), 8).0.is_empty());
        // Three levels: two pieces, and no node twice.
        let values: Vec<f64> = (0..999).map(|t| f64::from(t % 3)).collect();
        let (nodes, ramps) = map(values.clone(), range(values.iter().copied()), 8);
        assert_eq!((nodes, ramps.len()), (vec![0.0, 1.0, 2.0], 2));
        assert_eq!((distinct(&values, 9), distinct(&values, 2)), (3, 2));
    }

    #[test]
    fn the_training_rows_are_inside_the_rounded_range() {
        let values = [0.1, -0.3, 1e-20, 1.0 / 3.0, -2.0 / 3.0];
        let [lo, hi] = range(values.into_iter()).map(f64::from);
        assert!(lo <= -2.0 / 3.0 && hi >= 1.0 / 3.0 && hi - lo < 1.0 + 1e-6);
    }
}
