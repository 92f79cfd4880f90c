//! Pareto fronts: models that no other is at least as good as in error and in size.

/// What is weighed: held-out error, flash, multiply-accumulates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Size {
    pub error: f64,
    pub flash: usize,
    pub macs: usize,
}

/// The numbers of a model file have 24 bits: errors below this do not differ on a device.
const FLOOR: f64 = 1e-6;
/// A recommended model may have this much more error than the best.
pub(super) const SLACK: f64 = 0.05;

/// Which size counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Axis {
    Flash,
    Macs,
    Both,
}

impl Size {
    /// The error as far as it matters; what is not a number is worst.
    fn error(&self) -> f64 {
        if self.error.is_nan() { f64::INFINITY } else { self.error.max(FLOOR) }
    }

    fn no_larger(&self, other: &Self, axis: Axis) -> bool {
        (axis == Axis::Macs || self.flash <= other.flash) && (axis == Axis::Flash || self.macs <= other.macs)
    }
}

/// True where model `a` makes `b` superfluous: no larger, and no worse by more than `slack`. Of two that do so to each
/// other the better one stays, of equals the first.
fn beats(sizes: &[Size], a: usize, b: usize, axis: Axis, slack: f64) -> bool {
    let covers = |a: usize, b: usize| {
        sizes[a].no_larger(&sizes[b], axis) && sizes[a].error() <= (1.0 + slack) * sizes[b].error()
    };
    let order = sizes[a].error().total_cmp(&sizes[b].error()).then(a.cmp(&b));
    a != b && covers(a, b) && (!covers(b, a) || order.is_lt())
}

/// The models that none beats, in the order given.
pub(super) fn front(sizes: &[Size], axis: Axis, slack: f64) -> Vec<usize> {
    let kept = |&b: &usize| {
        sizes[b].error().is_finite() && !(0..sizes.len()).any(|a| beats(sizes, a, b, axis, slack))
    };
    (0..sizes.len()).filter(kept).collect()
}

/// The smallest model whose error is at most [`SLACK`] above the least.
pub(super) fn recommended(sizes: &[Size]) -> Option<usize> {
    let least = sizes.iter().map(Size::error).min_by(f64::total_cmp)?;
    (0..sizes.len()).filter(|&k| sizes[k].error() <= (1.0 + SLACK) * least).min_by(|&a, &b| {
        sizes[a].flash.cmp(&sizes[b].flash).then(sizes[a].error().total_cmp(&sizes[b].error()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(list: &[(f64, usize, usize)]) -> Vec<Size> {
        list.iter().map(|&(error, flash, macs)| Size { error, flash, macs }).collect()
    }

    #[test]
    fn fronts_by_hand() {
        let models = sizes(&[(0.5, 100, 10), (0.2, 300, 50), (0.3, 200, 60), (0.2, 400, 40), (0.6, 100, 20)]);
        assert_eq!(front(&models, Axis::Flash, 0.0), [0, 1, 2]);
        assert_eq!(front(&models, Axis::Macs, 0.0), [0, 3]);
        assert_eq!(front(&models, Axis::Both, 0.0), [0, 1, 2, 3]);
        let ties = sizes(&[(0.2, 100, 10), (0.2, 100, 10), (f64::NAN, 1, 1)]);
        assert_eq!(front(&ties, Axis::Both, 0.0), [0], "of equals the first; what is not a number never");
        let close = sizes(&[(0.200, 100, 10), (0.199, 200, 20), (1e-9, 300, 30), (1e-12, 400, 40)]);
        assert_eq!(front(&close, Axis::Both, 0.01), [0, 2], "one percent is not worth twice the size");
    }

    #[test]
    fn the_recommended_model_is_small_and_nearly_the_best() {
        let models = sizes(&[(0.5, 100, 10), (0.104, 300, 50), (0.1, 900, 90), (0.103, 300, 60)]);
        assert_eq!(recommended(&models), Some(3));
        assert_eq!(recommended(&[]), None);
    }
}
