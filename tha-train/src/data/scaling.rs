//! Standardisation: x = (u - offset) * gain per input and y = offset + scale * (network) per output, with the numbers
//! a model file stores.
//!
//! They are rounded to f32 first and the fit sees the rounded values, so that the device, which has only those,
//! computes with exactly the numbers the model was fitted with.

use super::Dataset;

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
/// A spread below this is taken for none: its reciprocal is near the end of f32 (and denormals are not data).
const VANISHING: f64 = 1e-30;

impl Scaling {
    /// Mean and standard deviation over the given rows.
    ///
    /// Inputs are centred. Outputs are not, unless the mean is far from zero compared with the spread: a network minus
    /// a constant is a network of one rank more, and the constant 1 in x_t takes care of moderate means.
    pub fn from_rows(data: &Dataset, rows: &[usize]) -> Self {
        let spread = |column: &Vec<f64>| {
            let (mean, std) = mean_and_std(rows.iter().map(|&row| column[row]));
            let constant = std < VANISHING || std <= UNRESOLVED * mean.abs();
            (mean, if constant { None } else { Some(std) })
        };
        let input = |(mean, std): (f64, Option<f64>)| InputMap {
            offset: mean as f32,
            gain: std.map_or(1.0, |std| std.recip() as f32),
        };
        let output = |(mean, std): (f64, Option<f64>)| {
            let far = mean.abs() > OFFSET_FROM * std.unwrap_or(0.0);
            OutputMap { offset: if far { mean as f32 } else { 0.0 }, scale: std.unwrap_or(1.0) as f32 }
        };
        Self {
            inputs: data.u.iter().map(spread).map(input).collect(),
            outputs: data.y.iter().map(spread).map(output).collect(),
        }
    }
}

/// Mean and population standard deviation, in two passes; zeros for no values.
pub fn mean_and_std(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let count = values.clone().count().max(1) as f64;
    let mean = values.clone().sum::<f64>() / count;
    let variance = values.map(|v| (v - mean).powi(2)).sum::<f64>() / count;
    (mean, variance.sqrt())
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
    use super::super::tests::counting;
    use super::*;

    fn scaled(values: Vec<f64>) -> (InputMap, OutputMap) {
        let mut data = counting(&[values.len()]);
        data.u[0] = values.clone();
        data.y[0] = values;
        let rows: Vec<usize> = (0..data.len()).collect();
        let scaling = Scaling::from_rows(&data, &rows);
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
    fn constants_and_denormals_keep_their_unit() {
        assert_eq!(scaled(vec![5.0; 4]).0, InputMap { offset: 5.0, gain: 1.0 });
        assert_eq!(scaled(vec![0.0; 4]).1, OutputMap { offset: 0.0, scale: 1.0 });
        assert_eq!(scaled(vec![5.0; 4]).1, OutputMap { offset: 5.0, scale: 1.0 });
        assert_eq!(scaled(vec![1.5e-323, -1.5e-323, 0.0]).0, InputMap { offset: 0.0, gain: 1.0 });
        assert_eq!(scaled(vec![1e9, 1e9 + 1.0]).0.gain, 1.0, "f32 cannot resolve it");
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
        let scaling = Scaling::from_rows(&data, &[0, 2]);
        assert_eq!((scaling.inputs[0].offset, scaling.inputs[0].gain), (1.0, 1.0));
    }
}
