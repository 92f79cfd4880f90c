//! Pareto fronts: models that no other is at least as good as in error and in size; and their picture.

use super::{Candidate, Tuning};
use crate::output::MARK;
use crate::report::{BLUE, Cloud, MUTED, ORANGE, Panel, scatter};

/// The numbers of a model file have 24 bits: errors below this do not differ on a device.
const FLOOR: f64 = 1e-6;

/// The error as far as it matters; what is not a number is worst.
fn relevant(error: f64) -> f64 {
    if error.is_nan() { f64::INFINITY } else { error.max(FLOOR) }
}

/// Whether each model, an error and a size, is on the front: none has less error for its size. Of equals the first is.
pub(crate) fn front(models: &[(f64, usize)]) -> Vec<bool> {
    let beats = |a: usize, b: usize| {
        let ((error, size), (other, other_size)) = (models[a], models[b]);
        let (error, other) = (relevant(error), relevant(other));
        error <= other && size <= other_size && (error < other || size < other_size || a < b)
    };
    let kept = |b: usize| relevant(models[b].0).is_finite() && !(0..models.len()).any(|a| beats(a, b));
    (0..models.len()).map(kept).collect()
}

impl Tuning {
    /// The fronts as a picture: the error that models are compared by against flash, and against multiply-accumulates.
    ///
    /// ```
    /// use tha_train::{AutoParams, Silent, SynthKind, SynthParams, generate};
    ///
    /// let data = generate(&SynthParams { samples: 200, ..SynthParams::new(SynthKind::Volterra) })?.train;
    /// let tuning = AutoParams::new().trials(3).search(&data, &Silent)?;
    /// assert!(tuning.svg().starts_with("<svg"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn svg(&self) -> String {
        let flash = |flash: usize, _: usize| flash as f64;
        let macs = |_: usize, macs: usize| macs as f64;
        let picture = scatter(&[
            self.panel("flash, bytes", &flash, &|candidate| candidate.on_flash_front),
            self.panel("multiply-accumulates per sample", &macs, &|candidate| candidate.on_macs_front),
        ]);
        picture.replacen('>', &format!("><!-- {MARK}train tune` -->"), 1)
    }

    fn panel(
        &self,
        x: &'static str,
        size: &dyn Fn(usize, usize) -> f64,
        front: &dyn Fn(&Candidate) -> bool,
    ) -> Panel<'_> {
        let some = |chosen: &dyn Fn(&Candidate) -> bool, named: bool| -> Vec<(f64, f64, String)> {
            let place = |candidate: &Candidate| {
                let note = if named { candidate.to_string() } else { String::new() };
                (size(candidate.flash_bytes, candidate.macs_per_sample), candidate.held_out, note)
            };
            self.candidates.iter().filter(|candidate| chosen(candidate)).map(place).collect()
        };
        let tried = self.tried.iter().filter(|tried| tried.setting.inputs.is_none());
        let tried = tried
            .map(|tried| (size(tried.flash_bytes, tried.macs_per_sample), tried.error, String::new()))
            .collect();
        let clouds = vec![
            Cloud::new("tried alone", MUTED, 3, false, tried),
            Cloud::new("front", BLUE, 4, true, some(front, false)),
            Cloud::new("recommended", ORANGE, 6, false, some(&|candidate| candidate.recommended, true)),
        ];
        Panel { x, y: "held-out NRMSE", clouds }
    }
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
}
