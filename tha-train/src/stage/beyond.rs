//! Beyond the training range: what the network sees there, and the linear part that goes on.
//!
//! | | plain features | mapped features | added to the outputs |
//! |---|---|---|---|
//! | pass | as they are: polynomials go on | constant | |
//! | clamp | constant | constant | |
//! | extend | constant | constant | W e, e = z - clamp z |
//!
//! W is the linear ridge regression on the features, fitted to the training rows beside the network. e ends where a feature is as far outside
//! of its range as that is wide: a rare event many times as large as all that were seen, or an outlier, must not decide over the output.

use super::rows::Staged;
use crate::linalg::{add_gram_lower, add_product, cholesky_in_place, cholesky_solve, view, view_mut};
use nalgebra::DMatrix;

/// The ridge of the linear part, in observations: what is added far outside must not hang on a few rows.
const RIDGE: f64 = 10.0;
/// Rows that are read together.
const BLOCK: usize = 1024;

impl Staged<'_> {
    /// The linear part W of `extend`, fitted to these rows: one row for each feature of the bank, one column for each output,
    /// in the units of the features and of standardised outputs.
    pub fn linear_part(&self, inputs: &[usize]) -> DMatrix<f64> {
        let known = &self.stage().known;
        let used: Vec<usize> = self.stage().features_of(inputs).collect();
        let (features, outputs) = (used.len(), self.y.ncols());
        let mut gram = DMatrix::zeros(features + 1, features + 1);
        let mut truth = DMatrix::zeros(features + 1, outputs);
        for (block, rows) in self.rows.chunks(BLOCK).enumerate() {
            let mut z = DMatrix::from_element(rows.len(), features + 1, 1.0);
            for (k, &feature) in used.iter().enumerate() {
                let mut column = z.column_mut(k + 1);
                self.read(feature, rows, column.as_mut_slice());
                column.apply(|z| *z = known[feature].unit.apply(*z));
            }
            let y = self.y.rows(block * BLOCK, rows.len()).into_owned();
            add_gram_lower(view_mut(&mut gram), view(&z));
            add_product(view_mut(&mut truth), view(&z).transpose(), view(&y));
        }
        (1..=features).for_each(|k| gram[(k, k)] += RIDGE);
        cholesky_in_place(&mut gram);
        cholesky_solve(&gram, &mut truth);
        let mut part = DMatrix::zeros(known.len(), outputs);
        for (k, &feature) in used.iter().enumerate() {
            part.set_row(feature, &(truth.row(k + 1) * known[feature].unit.gain));
        }
        part
    }

    /// What the linear part adds to the standardised outputs: W e, N x l.
    pub fn extension(&self, part: &DMatrix<f64>) -> DMatrix<f64> {
        let mut sum = DMatrix::zeros(self.rows.len(), part.ncols());
        let mut z = vec![0.0; self.rows.len()];
        for (k, coefficients) in part.row_iter().enumerate() {
            self.read(k, &self.rows, &mut z);
            let [lo, hi] = self.stage().range(k).map(f64::from);
            for (t, z) in z.iter().enumerate().filter(|(_, z)| !(lo..=hi).contains(*z)) {
                let beyond = (z - z.clamp(lo, hi)).clamp(lo - hi, hi - lo);
                sum.row_mut(t).iter_mut().zip(coefficients.iter()).for_each(|(sum, w)| *sum += w * beyond);
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::tests::noise;
    use crate::network::Features;
    use tha_core::RangePolicy;

    #[test]
    fn plain_features_pass_or_are_clamped_and_mapped_ones_are_constant() {
        for (pieces, beyond) in [
            (None, RangePolicy::Pass),
            (None, RangePolicy::Clamp),
            (None, RangePolicy::Extend),
            (Some(4), RangePolicy::Pass),
            (Some(4), RangePolicy::Extend),
        ] {
            let (mut data, stage) = noise("levels:2", pieces, beyond);
            let map = stage.scaling.inputs[0];
            let (most, unit) = (f64::from(stage.range(0)[1]), stage.known[0].unit);
            let row = data.len() - 1;
            data.u[0][row] = 1000.0;
            let x = stage.rows(&data, vec![row]).rows(0, 1);
            let free = pieces.is_none() && beyond == RangePolicy::Pass;
            let expected = if free { map.standardise(1000.0) } else { most };
            assert_eq!(x[(0, 1)], unit.apply(expected));
        }
    }

    #[test]
    fn a_linear_system_goes_on_beyond_its_range() {
        let (mut data, stage) = noise("differences:4", None, RangePolicy::Extend);
        let truth = |data: &crate::data::Dataset, row: usize| 0.7 * data.u[0][row] - 0.2 * data.u[1][row];
        for row in 0..data.len() {
            data.y[0][row] = truth(&data, row);
        }
        let rows = data.scored_rows(stage.bank.history() + 1);
        let part = stage.clone().rows(&data, rows.clone()).linear_part(&[0, 1]);
        let scale = f64::from(stage.scaling.outputs[0].scale);
        let inside = stage.clone().rows(&data, rows).extension(&part);
        assert!(inside.iter().all(|v| *v == 0.0));
        // A step of input 0 in the last row, out of its range.
        let row = data.len() - 1;
        let most = data.u[0].iter().copied().fold(f64::MIN, f64::max);
        let width = most - data.u[0].iter().copied().fold(f64::MAX, f64::min);
        let mut added = |excess: f64| {
            data.u[0][row] = most + excess;
            stage.clone().rows(&data, vec![row]).extension(&part)[0] * scale
        };
        // All features of the input have about its range, and some of them are not out of theirs at once.
        let gain = (added(0.6 * width) - added(0.5 * width)) / (0.1 * width);
        assert!((gain - 0.7).abs() < 0.07, "{gain}");
        let far = added(100.0 * width);
        assert!(far == added(200.0 * width) && far.abs() < 4.0 * width, "{far}");
    }
}
