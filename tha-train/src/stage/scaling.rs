//! Standardisation: x = (u - offset) * gain per input and y = offset + scale * (network) per output, with the numbers
//! a model file stores.
//!
//! They are rounded to f32 first and the fit sees the rounded values, so that the device, which has only those,
//! computes with exactly the numbers the model was fitted with.

use crate::data::{DataError, Dataset};
use nalgebra::DMatrix;

/// The map of an input from physical to standardised values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InputMap {
    /// Subtracted first.
    pub offset: f32,
    /// Multiplied second; positive.
    pub gain: f32,
}

impl InputMap {
    /// Physical to standardised.
    pub fn standardise(self, value: f64) -> f64 {
        (value - f64::from(self.offset)) * f64::from(self.gain)
    }
}

/// The map of an output from standardised to physical values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OutputMap {
    /// Added last.
    pub offset: f32,
    /// Multiplied first; positive.
    pub scale: f32,
}

impl OutputMap {
    /// Physical to standardised.
    pub fn standardise(self, value: f64) -> f64 {
        (value - f64::from(self.offset)) / f64::from(self.scale)
    }

    /// Standardised to physical.
    pub fn restore(self, value: f64) -> f64 {
        f64::from(self.offset) + f64::from(self.scale) * value
    }
}

/// The standardisation of every channel of a data set.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaling {
    /// One map per input.
    pub inputs: Vec<InputMap>,
    /// One map per output.
    pub outputs: Vec<OutputMap>,
}

/// An output whose mean is beyond this many standard deviations gets an offset.
const OFFSET_FROM: f64 = 3.0;
/// A spread below this part of the mean cannot be told from rounding in f32.
const UNRESOLVED: f64 = 1e-7;
/// A smaller spread is refused. Values of a thousandth of it are still normal numbers in f32, and its reciprocal is far from the
/// largest.
const SMALLEST: f64 = 1e-35;

impl Scaling {
    /// Standardised to physical outputs, N x l.
    pub fn restore(&self, y: &mut DMatrix<f64>) {
        for (mut column, map) in y.column_iter_mut().zip(&self.outputs) {
            column.apply(|value| *value = map.restore(*value));
        }
    }

    /// Mean and standard deviation over the given rows. Refuses a channel that moves too little for 32-bit numbers.
    ///
    /// Inputs are centred. Outputs are not, unless the mean is far from zero compared with the spread: a network minus
    /// a constant is a network of one rank more, and the constant 1 in x_t takes care of moderate means.
    pub fn from_rows(data: &Dataset, rows: &[usize]) -> Result<Self, DataError> {
        let spread = |(name, column): (&String, &Vec<f64>)| {
            let (mean, std) = mean_and_std(rows.iter().map(|&row| column[row]));
            if std <= UNRESOLVED * mean.abs() {
                return Ok((mean, None));
            }
            if std < SMALLEST {
                let finding = format!(
                    "its standard deviation {std:.1e} is too small for the 32-bit numbers of a model; use other units, in \
                     which it is near 1"
                );
                return Err(DataError::new(format!("{}, column '{name}'", data.origin), finding));
            }
            Ok((mean, Some(std)))
        };
        let input = |(mean, std): (f64, Option<f64>)| InputMap {
            offset: mean as f32,
            gain: std.map_or(1.0, |std| std.recip() as f32),
        };
        let output = |(mean, std): (f64, Option<f64>)| {
            let far = mean.abs() > OFFSET_FROM * std.unwrap_or(0.0);
            OutputMap { offset: if far { mean as f32 } else { 0.0 }, scale: std.unwrap_or(1.0) as f32 }
        };
        let inputs = data.inputs.iter().zip(&data.u).map(|channel| spread(channel).map(input));
        let outputs = data.outputs.iter().zip(&data.y).map(|channel| spread(channel).map(output));
        Ok(Self { inputs: inputs.collect::<Result<_, _>>()?, outputs: outputs.collect::<Result<_, _>>()? })
    }
}

/// Mean and population standard deviation, in two passes; zeros for no values. A constant has exactly no deviation.
pub fn mean_and_std(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let first = values.clone().next().unwrap_or(0.0);
    if values.clone().all(|v| v == first) {
        return (first, 0.0);
    }
    let mean = values.clone().sum::<f64>() / values.clone().count() as f64;
    (mean, root_mean_square(values.map(|v| v - mean)))
}

/// sqrt(mean v^2), of values of any size: their squares may leave the range of f64. Zero for no values.
pub(crate) fn root_mean_square(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let largest = values.clone().fold(0.0, |most: f64, v| most.max(v.abs()));
    if largest.is_infinite() {
        return largest;
    }
    // A power of two, so that nothing is rounded.
    let unit = f64::from_bits(largest.to_bits() & f64::INFINITY.to_bits()).max(f64::MIN_POSITIVE);
    let count = values.clone().count().max(1) as f64;
    unit * (values.map(|v| (v / unit).powi(2)).sum::<f64>() / count).sqrt()
}

/// A mean of this many standard deviations eats the digits of f32, which has 24 bits: what is left of the movement is known
/// to 1 % or worse.
const EATEN_FROM: f64 = (1u64 << 18) as f64;
/// A spread below this part of the mean is the rounding of f64: the values are constant.
const CONSTANT: f64 = 1e-12;

/// Mean and standard deviation of values whose offset eats the digits of f32; none for other values and for constants.
pub fn eating_offset(values: impl Iterator<Item = f64> + Clone) -> Option<(f64, f64)> {
    let (mean, std) = mean_and_std(values);
    let eaten = mean.abs() >= EATEN_FROM * std && std > CONSTANT * mean.abs();
    eaten.then_some((mean, std))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::tests::counting;

    fn scaled(values: Vec<f64>) -> (InputMap, OutputMap) {
        let mut data = counting(&[values.len()]);
        data.u[0] = values.clone();
        data.y[0] = values;
        let rows: Vec<usize> = (0..data.len()).collect();
        let scaling = Scaling::from_rows(&data, &rows).unwrap();
        (scaling.inputs[0], scaling.outputs[0])
    }

    #[test]
    fn inputs_are_centred_and_outputs_only_when_far_from_zero() {
        let (input, output) = scaled(vec![1.0, 5.0]);
        assert_eq!((input.offset, input.gain), (3.0, 0.5));
        assert_eq!(input.standardise(7.0), 2.0);
        assert_eq!((output.offset, output.scale), (0.0, 2.0));
        let (_, output) = scaled(vec![9.0, 11.0]);
        assert_eq!((output.offset, output.scale), (10.0, 1.0));
        assert_eq!(output.restore(output.standardise(9.5)), 9.5);
    }

    #[test]
    fn constants_keep_their_unit() {
        assert_eq!(scaled(vec![5.0; 4]).0, InputMap { offset: 5.0, gain: 1.0 });
        assert_eq!(scaled(vec![0.0; 4]).1, OutputMap { offset: 0.0, scale: 1.0 });
        assert_eq!(scaled(vec![5.0; 4]).1, OutputMap { offset: 5.0, scale: 1.0 });
        assert_eq!(scaled(vec![1e9, 1e9 + 1.0]).0.gain, 1.0, "f32 cannot resolve it");
        assert_eq!(mean_and_std(std::iter::repeat_n(0.1, 100_000)), (0.1, 0.0), "no rounding of the sum");
    }

    #[test]
    fn any_unit_that_32_bits_can_hold_is_standardised() {
        for unit in [1e-34, 1e-30, 1e-10, 1.0, 1e10, 1e30, 1e36] {
            let (input, output) = scaled(vec![-unit, unit]);
            assert!((input.standardise(unit) - 1.0).abs() < 1e-6, "{unit}: {input:?}");
            assert!((output.standardise(unit) - 1.0).abs() < 1e-6, "{unit}: {output:?}");
        }
        for unit in [1e-36, 1e-200, 1.5e-323] {
            let mut data = counting(&[2]);
            data.y[0] = vec![-unit, unit];
            let refusal = Scaling::from_rows(&data, &[0, 1]).unwrap_err().to_string();
            assert!(refusal.contains("column 'y1'") && refusal.contains("other units"), "{refusal}");
        }
    }

    #[test]
    fn an_offset_that_eats_the_digits_of_f32() {
        let around = |offset: f64| eating_offset([offset - 1.0, offset + 1.0].into_iter());
        assert_eq!(around(262_144.0), Some((262_144.0, 1.0)));
        assert_eq!(around(-1e8), Some((-1e8, 1.0)));
        assert_eq!(around(262_143.0), None);
        assert_eq!(eating_offset([0.1; 7].into_iter()), None, "a constant moves nothing");
        assert_eq!(eating_offset([0.0; 3].into_iter()), None);
    }

    #[test]
    fn only_the_given_rows_count() {
        let data = counting(&[10]);
        let scaling = Scaling::from_rows(&data, &[0, 2]).unwrap();
        assert_eq!((scaling.inputs[0].offset, scaling.inputs[0].gain), (1.0, 1.0));
    }
}
