//! Mapped features as straight lines in the cells of their maps ([`Hats`]).

use super::maps::cell;
use super::rows::Subset;
use crate::network::{Hats, Line};
use std::sync::Arc;

/// Rows of a part of mapped features: enough that what is made for all of them costs little.
const PART: usize = 2048;

impl Subset<'_> {
    /// The columns of the features of an input.
    pub(crate) fn columns_of(&self, input: usize) -> Vec<usize> {
        let features: Vec<usize> = self.samples.stage().features_of(self.inputs).collect();
        let mut columns = Vec::new();
        let mut next = 1 + features.len();
        for (k, &feature) in features.iter().enumerate() {
            let after = next + self.more(feature);
            if self.samples.stage().bank.features[feature].input == input {
                columns.push(1 + k);
                columns.extend(next..after);
            }
            next = after;
        }
        columns
    }

    /// The columns of each feature as straight lines in the cells of its map; one cell for a feature that has none.
    fn lines(&self, features: &[usize]) -> Vec<Vec<Line>> {
        let mut lines = Vec::new();
        let mut next = 1 + features.len();
        for (k, &feature) in features.iter().enumerate() {
            let known = &self.samples.stage().known[feature];
            if known.nodes.is_empty() {
                lines.push(vec![Line { column: 1 + k, at: 0.0, slope: 1.0 }]);
            }
            for pair in known.nodes.windows(2) {
                let [left, right] = [pair[0], pair[1]].map(f64::from);
                let line = |column: usize, value: &dyn Fn(f64) -> f64| {
                    let at = value(left);
                    Line { column, at, slope: value(right) - at }
                };
                let own = line(1 + k, &|z| known.unit.apply(z));
                let ramps = known.ramps.iter().enumerate();
                let ramps = ramps.map(|(j, ramp)| line(next + j, &|z| ramp.value(z)));
                lines.push(std::iter::once(own).chain(ramps).collect());
            }
            next += known.ramps.len();
        }
        lines
    }

    /// All rows in parts; nothing where no feature has a map.
    pub(super) fn parts(&self) -> Vec<Hats> {
        let stage = self.samples.stage();
        let features: Vec<usize> = stage.features_of(self.inputs).collect();
        let mapped = features.iter().any(|&feature| !stage.known[feature].nodes.is_empty());
        if !mapped {
            return Vec::new();
        }
        let lines = Arc::new(self.lines(&features));
        let of_part = |rows: &[usize]| {
            let mut places = vec![(0, 0.0); rows.len() * features.len()];
            let mut z = vec![0.0; rows.len()];
            let mut first = 0;
            for (k, &feature) in features.iter().enumerate() {
                let (known, seen) = (&stage.known[feature], stage.seen(feature));
                self.samples.read(feature, rows, &mut z);
                for (place, z) in places.iter_mut().skip(k).step_by(features.len()).zip(&z) {
                    let (cell, part) = match &known.nodes[..] {
                        [] => (0, known.unit.apply(seen(*z))),
                        nodes => cell(nodes, seen(*z)),
                    };
                    *place = (first + cell as u32, part);
                }
                first += known.nodes.len().saturating_sub(1).max(1) as u32;
            }
            Hats { lines: lines.clone(), places, features: features.len() }
        };
        self.samples.rows.chunks(PART).map(of_part).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::tests::noise;
    use super::super::{Scaling, Stage};
    use super::*;
    use crate::network::{Design, Features, Normal};
    use nalgebra::DMatrix;
    use tha_core::RangePolicy;

    #[test]
    fn hats_multiply_as_the_rows_do() {
        let (mut data, _) = noise("levels:4", Some(5), RangePolicy::Clamp);
        // One input has too few values for a map.
        data.u[1].iter_mut().for_each(|u| *u = f64::from(*u > 10.0));
        let rows = data.scored_rows(5);
        let scaling = Scaling::from_rows(&data, &rows).unwrap();
        let basis = "lags:2".parse().unwrap();
        let stage = Stage::fit(&data, &rows[..150], &scaling, &basis, Some(5), RangePolicy::Clamp).unwrap();
        let samples = stage.rows(&data, rows);
        let x = samples.of_inputs(&[0, 1]);
        let (whole, hats) = (x.rows(0, x.nrows()), x.hats());
        let mut normal = Normal::new(3);
        let v = DMatrix::from_fn(x.ncols(), 6, |_, _| normal.draw());
        let factor = |column: usize| 1.0 / (1.0 + column as f64);
        let scaled = DMatrix::from_fn(whole.nrows(), whole.ncols(), |t, i| factor(i) * whole[(t, i)]);
        let hats = Hats::scaled(hats, factor);
        assert_eq!(hats.len(), 1);
        let values = DMatrix::from_vec(x.nrows(), 6, hats[0].times(&v));
        assert!((&values - &scaled * &v).amax() < 1e-12);
        let mut back = DMatrix::zeros(x.ncols(), 6);
        hats[0].add_transposed_times(values.as_slice(), &mut back);
        assert!((&back - scaled.tr_mul(&values)).amax() < 1e-9);
    }
}
