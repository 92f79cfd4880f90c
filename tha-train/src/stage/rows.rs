//! Rows x_t of a data set behind a stage, made when they are read: only the outputs of the filters are kept, maps are expanded
//! some rows at a time.

use super::bank::Outputs;
use super::{Basis, Scaling, Stage, StageError};
use crate::data::Dataset;
use crate::network::{Features, Hats};
use nalgebra::DMatrix;
use std::sync::Arc;
use tha_core::RangePolicy;

/// Features and standardised outputs of some rows of a data set. The columns of x are the constant 1, the features in the
/// order of the bank and the ramps of each, all of them standardised.
#[derive(Clone, Debug)]
pub struct Staged<'a> {
    /// N x l, standardised.
    pub y: DMatrix<f64>,
    /// The row of the data set behind each row of x and y.
    pub rows: Vec<usize>,
    data: &'a Dataset,
    stage: Arc<Stage>,
    outputs: Arc<Outputs>,
    inputs: Vec<usize>,
}

/// The same for the features of some inputs only.
#[derive(Clone, Copy, Debug)]
pub struct Subset<'a> {
    pub(super) samples: &'a Staged<'a>,
    pub(super) inputs: &'a [usize],
}

impl Dataset {
    /// The lag windows x_t = [1, u(t), u(t-1), ..., u(t-M+1)] that end at the given rows, each of which must have M-1 rows of
    /// its record before it ([`Dataset::scored_rows`] gives them all).
    pub fn lagged(&self, memory: usize, scaling: &Scaling, rows: Vec<usize>) -> Staged<'_> {
        Stage::lags(memory, scaling).rows(self, rows)
    }

    /// The outputs at the given rows in physical units, N x l.
    pub fn outputs_at(&self, rows: &[usize]) -> DMatrix<f64> {
        DMatrix::from_fn(rows.len(), self.y.len(), |i, j| self.y[j][rows[i]])
    }
}

impl Stage {
    /// Runs the filters over a data set; x and y at the given rows, each of which must have the history that the filters need.
    pub fn rows(self, data: &Dataset, rows: Vec<usize>) -> Staged<'_> {
        let outputs = self.bank.run(data, &self.scaling.inputs);
        self.staged(data, rows, Arc::new(outputs))
    }

    /// A stage fitted to rows ([`Stage::fit`]), and x and y at these rows; the filters run once, or are known already.
    pub(crate) fn fit_rows<'a>(
        data: &'a Dataset,
        rows: Vec<usize>,
        scaling: &Scaling,
        basis: &Basis,
        pieces: Option<usize>,
        policy: RangePolicy,
        filters: Option<Arc<Outputs>>,
    ) -> Result<Staged<'a>, StageError> {
        let (stage, outputs) = Self::filtered(data, &rows, scaling, basis, pieces, policy, filters)?;
        Ok(stage.staged(data, rows, outputs))
    }

    fn staged(self, data: &Dataset, rows: Vec<usize>, outputs: Arc<Outputs>) -> Staged<'_> {
        let inputs = (0..self.bank.inputs).collect();
        let empty = DMatrix::zeros(0, data.y.len());
        Staged { y: empty, rows: Vec::new(), data, stage: Arc::new(self), outputs, inputs }.at(rows)
    }
}

impl<'a> Staged<'a> {
    /// Other rows of the same data set behind the same stage.
    pub fn at(&self, rows: Vec<usize>) -> Self {
        let mut y = DMatrix::zeros(rows.len(), self.data.y.len());
        for (channel, (column, map)) in self.data.y.iter().zip(&self.stage.scaling.outputs).enumerate() {
            for (value, &row) in y.column_mut(channel).iter_mut().zip(&rows) {
                *value = map.standardise(column[row]);
            }
        }
        let (stage, outputs, inputs) = (self.stage.clone(), self.outputs.clone(), self.inputs.clone());
        Self { y, rows, data: self.data, stage, outputs, inputs }
    }

    /// The stage.
    pub fn stage(&self) -> &Stage {
        &self.stage
    }

    /// The same rows with the features of some inputs only.
    pub fn of_inputs<'s>(&'s self, inputs: &'s [usize]) -> Subset<'s> {
        Subset { samples: self, inputs }
    }

    /// A feature at rows of the data set, as the filters give it.
    pub(super) fn read(&self, feature: usize, rows: &[usize], to: &mut [f64]) {
        let Stage { scaling, bank, .. } = &*self.stage;
        self.outputs.read(&bank.features[feature], self.data, &scaling.inputs, rows, to);
    }

    fn all(&self) -> Subset<'_> {
        self.of_inputs(&self.inputs)
    }
}

impl Subset<'_> {
    /// Columns that a feature has beside its own.
    pub(super) fn more(&self, feature: usize) -> usize {
        self.samples.stage.known[feature].ramps.len()
    }

    /// The rows of x that end at rows of the data set.
    fn expand(&self, rows: &[usize]) -> DMatrix<f64> {
        let (stage, count) = (&self.samples.stage, rows.len());
        let mut x = DMatrix::zeros(count, self.ncols());
        x.column_mut(0).fill(1.0);
        let features: Vec<usize> = stage.features_of(self.inputs).collect();
        let mut z = vec![0.0; count];
        // Ramps stand behind all features.
        let mut next = 1 + features.len();
        for (k, feature) in features.into_iter().enumerate() {
            let (known, seen) = (&stage.known[feature], stage.seen(feature));
            self.samples.read(feature, rows, &mut z);
            z.iter_mut().for_each(|z| *z = seen(*z));
            // Slices, because loops over columns of matrices do not become vector instructions.
            let mut own = x.column_mut(1 + k);
            own.as_mut_slice().iter_mut().zip(&z).for_each(|(x, z)| *x = known.unit.apply(*z));
            for ramp in &known.ramps {
                let mut own = x.column_mut(next);
                own.as_mut_slice().iter_mut().zip(&z).for_each(|(x, z)| *x = ramp.value(*z));
                next += 1;
            }
        }
        x
    }
}

impl Features for Staged<'_> {
    fn nrows(&self) -> usize {
        self.rows.len()
    }

    fn ncols(&self) -> usize {
        self.all().ncols()
    }

    fn select_rows(&self, rows: &[usize]) -> DMatrix<f64> {
        self.all().select_rows(rows)
    }

    fn rows(&self, start: usize, count: usize) -> DMatrix<f64> {
        self.all().expand(&self.rows[start..start + count])
    }
}

impl Features for Subset<'_> {
    fn nrows(&self) -> usize {
        self.samples.rows.len()
    }

    fn ncols(&self) -> usize {
        1 + self.samples.stage.features_of(self.inputs).map(|feature| 1 + self.more(feature)).sum::<usize>()
    }

    fn select_rows(&self, rows: &[usize]) -> DMatrix<f64> {
        self.expand(&rows.iter().map(|&row| self.samples.rows[row]).collect::<Vec<_>>())
    }

    fn rows(&self, start: usize, count: usize) -> DMatrix<f64> {
        self.expand(&self.samples.rows[start..start + count])
    }

    fn hats(&self) -> Vec<Hats> {
        self.parts()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::{InputMap, OutputMap, mean_and_std};
    use super::*;
    use crate::data::tests::counting;
    use crate::network::Normal;

    #[test]
    fn lag_major_windows_inside_records() {
        let data = counting(&[3, 3]);
        let scaling = Scaling {
            inputs: vec![InputMap { offset: 0.0, gain: 1.0 }, InputMap { offset: 100.0, gain: 0.5 }],
            outputs: vec![OutputMap { offset: 0.0, scale: 1.0 }],
        };
        let lagged = data.lagged(2, &scaling, data.scored_rows(2));
        assert_eq!(lagged.rows, [1, 2, 4, 5]);
        let row = |x: DMatrix<f64>| x.iter().copied().collect::<Vec<_>>();
        assert_eq!((lagged.nrows(), lagged.ncols()), (4, 5));
        assert_eq!(row(lagged.rows(0, 1)), [1.0, 1.0, 0.5, 0.0, 0.0]);
        assert_eq!(row(lagged.select_rows(&[2])), [1.0, 4.0, 2.0, 3.0, 1.5]);
        let second = lagged.of_inputs(&[1]);
        assert_eq!((second.nrows(), second.ncols()), (4, 3));
        assert_eq!(second.rows(1, 2), lagged.rows(1, 2).select_columns(&[0, 2, 4]));
        assert_eq!(second.select_rows(&[2, 0]).as_slice(), [1.0, 1.0, 2.0, 0.5, 1.5, 0.0]);
        assert_eq!(lagged.y.column(0).as_slice(), [1001.0, 1002.0, 1004.0, 1005.0]);
        assert_eq!(lagged.at(vec![5, 1]).y.column(0).as_slice(), [1005.0, 1001.0]);
        assert_eq!(data.outputs_at(&[0, 5]).as_slice(), [1000.0, 1005.0]);
    }

    /// Noise in two inputs over two records, and the stage of some rows.
    pub(in super::super) fn noise(
        basis: &str,
        pieces: Option<usize>,
        beyond: RangePolicy,
    ) -> (Dataset, Stage) {
        let mut data = counting(&[200, 150]);
        let mut normal = Normal::new(2);
        data.u.iter_mut().flatten().for_each(|u| *u = 10.0 + 3.0 * normal.draw());
        data.y[0].iter_mut().for_each(|y| *y = normal.draw());
        let basis: Basis = basis.parse().unwrap();
        let rows = data.scored_rows(basis.bank(2).unwrap().history() + 1);
        let scaling = Scaling::from_rows(&data, &rows).unwrap();
        let stage = Stage::fit(&data, &rows, &scaling, &basis, pieces, beyond).unwrap();
        (data, stage)
    }

    #[test]
    fn lags_without_maps_are_the_standardised_windows_bit_by_bit() {
        for beyond in [RangePolicy::Pass, RangePolicy::Clamp, RangePolicy::Extend] {
            let (data, stage) = noise("lags:4", None, beyond);
            let maps = stage.scaling.inputs.clone();
            let samples = stage.rows(&data, data.scored_rows(4));
            let x = samples.rows(0, samples.nrows());
            for (t, &row) in samples.rows.iter().enumerate() {
                for (lag, input) in (0..4).flat_map(|lag| [(lag, 0), (lag, 1)]) {
                    let expected = maps[input].standardise(data.u[input][row - lag]);
                    assert_eq!(x[(t, 1 + 2 * lag + input)].to_bits(), expected.to_bits());
                }
            }
        }
    }

    #[test]
    fn features_and_ramps_are_standardised_and_belong_to_their_input() {
        for basis in ["lags:3", "levels:4", "differences:4", "kautz:0.6,0.5,2"] {
            let (data, stage) = noise(basis, Some(5), RangePolicy::Clamp);
            let rows = data.scored_rows(stage.bank.history() + 1);
            let samples = stage.rows(&data, rows);
            let (each, x) = (samples.stage.bank.features.len() / 2, samples.rows(0, samples.nrows()));
            assert_eq!(x.ncols(), 1 + 2 * each * 6, "{basis}");
            for (j, column) in x.column_iter().enumerate().skip(1) {
                let (mean, std) = mean_and_std(column.iter().copied());
                // Inputs are standardised over other rows, and with f32 numbers.
                let near = if basis == "lags:3" && j <= 2 * each { 0.2 } else { 1e-6 };
                assert!(mean.abs() < near && (std - 1.0).abs() < near, "{basis} {j}: {mean} {std}");
            }
            let second = samples.of_inputs(&[1]);
            let own: Vec<usize> = (0..2 * each).filter(|k| k % 2 == 1).collect();
            let ramps = own.iter().flat_map(|k| (0..5).map(move |j| 1 + 2 * each + 5 * k + j));
            let columns: Vec<usize> =
                std::iter::once(0).chain(own.iter().map(|k| 1 + k)).chain(ramps).collect();
            assert_eq!(second.rows(3, 20), x.rows(3, 20).select_columns(&columns));
            assert_eq!(samples.select_rows(&[9, 2]), x.select_rows(&[9, 2]));
        }
    }
}
