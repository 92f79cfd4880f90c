//! A stream against the batch prediction, within the bound of its rounding, and against what `FORMAT.md` prescribes, to the bit.

use crate::model_file::{DeviceModel, ModelFile};
use crate::stream::{Status, Stream};
use serde::Serialize;
use tha_core::build::ModelSpec;
use tha_train::Dataset;
use tha_train::bound::ErrorBound;
use tha_train::reference::{IntegerReference, Reference};
use tha_train::stage::{eating_offset, mean_and_std};

/// How one output compares with the batch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OutputComparison {
    /// Its name.
    pub name: String,
    /// Largest difference, physical units; infinite where no sample could be compared.
    pub max_abs_error: f64,
    /// Root mean square of the differences.
    pub rms_error: f64,
    /// Standard deviation of the batch over the recording; the largest value of an output that is constant there.
    pub spread: f64,
    /// Largest difference relative to the spread.
    pub max_rel_error: f64,
    /// Largest bound of a sample.
    pub error_bound: f64,
    /// Bound for any input in the training range.
    pub model_bound: f64,
}

/// The stream against the batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Samples that gave outputs.
    pub samples: usize,
    /// Samples that filled a history.
    pub warmup: usize,
    /// Per output.
    pub outputs: Vec<OutputComparison>,
    /// The largest ratio of a difference to the bound of its sample.
    pub bound_used: f64,
    /// Every difference is within the bound of its sample, and every sample that should have an output has one.
    pub within_bound: bool,
    /// Why an output is of no use although it is within the bound, and what to do.
    pub lost: Option<String>,
}

/// The largest part of the spread of an output that rounding may take: about what an offset of 2^18 standard deviations
/// takes, from which on `fit` warns. In f32 in any sample, in integers, which round every sample, on the average (RMS).
const TOLERATED: f64 = 0.01;
/// A standard deviation below this part of the largest value is the rounding of f64: the output is constant.
const CONSTANT: f64 = 1e-12;

/// Compares a stream over `data` with the batch prediction.
pub fn compare(file: &ModelFile, data: &Dataset, stream: &Stream) -> Comparison {
    let batch = file.batch();
    let spec = batch.spec();
    let rows = data.scored_rows(spec.settled());
    let prediction = batch.predict(data, &rows);
    let mut bound = Bound::new(file, spec);
    let model_bound = bound.model();
    let mut outputs: Vec<OutputComparison> = spec
        .outputs
        .iter()
        .zip(model_bound)
        .map(|(channel, model_bound)| OutputComparison {
            name: channel.name.clone(),
            max_abs_error: f64::NAN,
            rms_error: 0.0,
            spread: 0.0,
            max_rel_error: 0.0,
            error_bound: 0.0,
            model_bound,
        })
        .collect();
    let ready = stream.status.iter().filter(|status| status.ready()).count();
    let mut within_bound = stream.status.len() == data.len() && ready == rows.len();
    let mut bound_used = 0.0f64;
    let all = bounds(&mut bound, spec.settled(), data, &stream.status);
    for (k, (row, bounds)) in all.enumerate() {
        for ((j, output), (&y, bound)) in
            outputs.iter_mut().enumerate().zip(stream.at(row).iter().zip(bounds))
        {
            let expected = prediction[(k, j)];
            // The range of f32, or of integers, was left: both say so, which is all that can be compared.
            let difference = if y.is_finite() { (f64::from(y) - expected).abs() } else { f64::INFINITY };
            within_bound &= difference <= bound;
            if bound.is_finite() {
                output.error_bound = output.error_bound.max(bound);
                output.max_abs_error = output.max_abs_error.max(difference);
                output.rms_error += difference * difference;
                bound_used = bound_used.max(difference / bound);
            }
        }
    }
    for (j, output) in outputs.iter_mut().enumerate() {
        let (largest, (_, std)) =
            (prediction.column(j).amax(), mean_and_std(prediction.column(j).iter().copied()));
        output.spread = if std > CONSTANT * largest { std } else { largest };
        if output.max_abs_error.is_nan() {
            output.max_abs_error = f64::INFINITY;
        }
        output.max_rel_error =
            if output.max_abs_error > 0.0 { output.max_abs_error / output.spread } else { 0.0 };
        output.rms_error = (output.rms_error / rows.len().max(1) as f64).sqrt();
    }
    let moved = |j: usize| prediction.column(j).iter().copied().collect();
    let lost = if within_bound { lost(data, &outputs, &bound, moved) } else { None };
    Comparison {
        samples: ready,
        warmup: stream.status.len() - ready,
        outputs,
        bound_used,
        within_bound,
        lost,
    }
}

/// How far the device may be from the batch.
pub(crate) enum Bound<'s> {
    /// In f32: sample by sample.
    Float(Box<ErrorBound<'s>>),
    /// In integers: that of the file, while the device says that nothing is out of range or limited.
    Integer(Vec<f64>, usize),
}

impl<'s> Bound<'s> {
    pub fn new(file: &ModelFile, spec: &'s ModelSpec) -> Self {
        match file.model() {
            DeviceModel::Float(_) => Self::Float(Box::new(ErrorBound::new(spec))),
            DeviceModel::Integer(model) => {
                Self::Integer(model.units().iter().map(|unit| unit.bound.into()).collect(), 0)
            }
        }
    }

    /// For any input in the training range.
    pub fn model(&self) -> Vec<f64> {
        match self {
            Self::Float(bound) => bound.model(),
            Self::Integer(bounds, _) => bounds.clone(),
        }
    }

    fn reset(&mut self) {
        match self {
            Self::Float(bound) => bound.reset(),
            Self::Integer(_, taken) => *taken = 0,
        }
    }

    fn push(&mut self, u: &[f64], settled: usize, status: Status) -> Option<Vec<f64>> {
        match self {
            Self::Float(bound) => bound.push(u),
            Self::Integer(bounds, taken) => {
                *taken += 1;
                let outside = status.overflow() || status.out_of_range();
                let bound = |bound: &f64| if outside { f64::INFINITY } else { *bound };
                (*taken >= settled).then(|| bounds.iter().map(bound).collect())
            }
        }
    }
}

/// The rows of a data set at which the model has settled, and the bounds of the outputs there.
pub(crate) fn bounds<'b>(
    bound: &'b mut Bound<'_>,
    settled: usize,
    data: &'b Dataset,
    status: &'b [Status],
) -> impl Iterator<Item = (usize, Vec<f64>)> + 'b {
    let rows =
        data.records.iter().flat_map(|record| record.rows.clone().map(|row| (row, row == record.rows.start)));
    rows.filter_map(move |(row, first)| {
        if first {
            bound.reset();
        }
        let u: Vec<f64> = data.u.iter().map(|column| column[row]).collect();
        Some((row, bound.push(&u, settled, status.get(row).copied().unwrap_or_default())?))
    })
}

/// The output that loses most to rounding, where that is too much. A difference can be within the bound and as large as all
/// that the output ever does, because the bound grows with the offsets.
fn lost(
    data: &Dataset,
    outputs: &[OutputComparison],
    bound: &Bound<'_>,
    prediction: impl Fn(usize) -> Vec<f64>,
) -> Option<String> {
    let taken = |output: &OutputComparison| match bound {
        Bound::Integer(..) if output.max_abs_error.is_finite() && output.spread > 0.0 => {
            output.rms_error / output.spread
        }
        _ => output.max_rel_error,
    };
    let worst = outputs.iter().max_by(|a, b| taken(a).total_cmp(&taken(b)))?;
    let OutputComparison { name, max_abs_error, .. } = worst;
    if taken(worst) <= TOLERATED {
        return None;
    }
    if max_abs_error.is_infinite() {
        return Some(format!(
            "no sample of '{name}' is within the range of f32; rescale the inputs, or fit with --range clamp"
        ));
    }
    let inputs = data.inputs.iter().zip(&data.u).map(|(name, column)| (name, column.clone()));
    let outputs = outputs.iter().enumerate().map(|(j, output)| (&output.name, prediction(j)));
    let eaten: Vec<String> = inputs
        .chain(outputs)
        .filter(|(_, values)| eating_offset(values.iter().copied()).is_some())
        .map(|(name, _)| format!("'{name}'"))
        .collect();
    let (percent, allowed) = (100.0 * taken(worst), 100.0 * TOLERATED);
    let cause = if eaten.is_empty() {
        "it hardly moves in this recording, or large terms of the model cancel; \
         try a recording in which it moves, or fit with a lower --degree or a larger --ridge"
            .into()
    } else {
        format!(
            "the offset of {} eats the digits of f32; subtract it before, in the recording and on the device, or send counts",
            eaten.join(", ")
        )
    };
    Some(format!(
        "rounding takes {percent:.0} % of the spread of '{name}', {allowed:.0} % is tolerated: {cause}"
    ))
}

/// A plain implementation of `FORMAT.md`: takes a sample, and whether it is the first of a record.
type Plain<'a> = &'a mut dyn FnMut(&[f32], bool) -> Option<Vec<f32>>;

/// Whether the stream has, to the bit, the outputs that `FORMAT.md` prescribes.
pub fn follows_the_format(file: &ModelFile, data: &Dataset, samples: &[f32], stream: &Stream) -> bool {
    let same = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
    let follows = |plain: Plain<'_>| {
        data.records.iter().all(|record| {
            record.rows.clone().all(|t| {
                let u = &samples[t * data.u.len()..(t + 1) * data.u.len()];
                plain(u, t == record.rows.start).is_none_or(|y| y.iter().zip(stream.at(t)).all(same))
            })
        })
    };
    match file.model() {
        DeviceModel::Float(_) => {
            let batch = file.batch();
            let mut plain = Reference::<f32>::new(batch.spec());
            follows(&mut |u, first| {
                if first {
                    plain.reset();
                }
                plain.push(u)
            })
        }
        DeviceModel::Integer(model) => {
            let mut plain = IntegerReference::new(&model);
            follows(&mut |u, first| {
                if first {
                    plain.reset();
                }
                let (counts, scales) = (plain.push(u)?, model.outputs().iter().zip(model.units()));
                Some(
                    counts
                        .iter()
                        .zip(scales)
                        .map(|(&y, (o, unit))| o.offset + unit.unit * y as f32)
                        .collect(),
                )
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::{Device, samples};
    use tha_train::{SynthKind as Kind, SynthParams, generate};

    #[test]
    fn a_wrong_output_a_missing_one_and_a_wrong_bit_are_found() {
        let made = generate(&SynthParams { samples: 300, ..SynthParams::new(Kind::Volterra) }).unwrap();
        let file = ModelFile::new(&made.model.unwrap().to_bytes().unwrap()).unwrap();
        let samples = samples(&made.train);
        let stream = Device::new(&file).unwrap().replay(&samples, &[300]);
        let good = compare(&file, &made.train, &stream);
        assert!(good.within_bound && good.bound_used > 0.0 && good.bound_used < 1.0);
        assert!(follows_the_format(&file, &made.train, &samples, &stream));

        let mut wrong = stream.clone();
        wrong.outputs[100] += 2.0 * good.outputs[0].error_bound as f32;
        assert!(!compare(&file, &made.train, &wrong).within_bound);

        let mut missing = stream.clone();
        missing.outputs[100] = f32::NAN;
        assert!(!compare(&file, &made.train, &missing).within_bound);

        let mut flipped = stream.clone();
        flipped.outputs[100] = f32::from_bits(stream.outputs[100].to_bits() ^ 1);
        assert!(compare(&file, &made.train, &flipped).within_bound);
        assert!(!follows_the_format(&file, &made.train, &samples, &flipped));
        assert!(!flipped.same_bits(&stream));
    }
}
