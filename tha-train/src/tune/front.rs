//! Pareto fronts: models that no other is at least as good as in error and in size.

/// The numbers of a model file have 24 bits: errors below this do not differ on a device.
const FLOOR: f64 = 1e-6;
/// A recommended model may have this much more error than the best.
const SLACK: f64 = 0.05;

/// The error as far as it matters; what is not a number is worst.
fn relevant(error: f64) -> f64 {
    if error.is_nan() { f64::INFINITY } else { error.max(FLOOR) }
}

/// Whether each model, an error and a size, is on the front: none has less error for its size. Of equals the first is.
pub(super) fn front(models: &[(f64, usize)]) -> Vec<bool> {
    let beats = |a: usize, b: usize| {
        let ((error, size), (other, other_size)) = (models[a], models[b]);
        let (error, other) = (relevant(error), relevant(other));
        error <= other && size <= other_size && (error < other || size < other_size || a < b)
    };
    let kept = |b: usize| relevant(models[b].0).is_finite() && !(0..models.len()).any(|a| beats(a, b));
    (0..models.len()).map(kept).collect()
}

/// The smallest model whose error is at most [`SLACK`] above the least; of equally small ones the best.
pub(super) fn recommended(models: &[(f64, usize)]) -> Option<usize> {
    let least = models.iter().map(|model| relevant(model.0)).min_by(f64::total_cmp)?;
    let (error, size) = (|k: usize| relevant(models[k].0), |k: usize| models[k].1);
    (0..models.len())
        .filter(|&k| error(k) <= (1.0 + SLACK) * least)
        .min_by(|&a, &b| size(a).cmp(&size(b)).then(error(a).total_cmp(&error(b))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fronts_by_hand() {
        let models = [(0.5, 100), (0.2, 300), (0.3, 200), (0.2, 400), (0.6, 100)];
        assert_eq!(front(&models), [true, true, true, false, false]);
        let ties = [(0.2, 100), (0.2, 100), (f64::NAN, 1)];
        assert_eq!(front(&ties), [true, false, false], "of equals the first; what is not a number never");
        assert_eq!(
            front(&[(1e-9, 300), (1e-12, 400)]),
            [true, false],
            "a device does not see the difference"
        );
    }

    #[test]
    fn the_recommended_model_is_small_and_nearly_the_best() {
        assert_eq!(recommended(&[(0.5, 100), (0.104, 300), (0.1, 900), (0.103, 300)]), Some(3));
        assert_eq!(recommended(&[]), None);
    }
}
