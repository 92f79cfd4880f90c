//! A model in 16-bit integers: the units by what happens on the training rows, the file, its error and the bound of it.
//!
//! For features of 14, 13, 12 and 11 bits (the more bits, the fewer are left for the coefficients, since a sum has 32) the model is written and
//! run as the device would; the smallest error wins. One factor per output, by least squares against the model before, takes
//! out what the errors have in common. Where a vector is limited on the training rows the gauge leaves twice the room.

mod bound;
mod device;
mod units;

pub use device::{DeviceOutputs, Integers};

use crate::data::Dataset;
use crate::metrics::Metrics;
use crate::model::{Model, ModelError};
use nalgebra::DMatrix;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tha_core::build::{BuildError, ModelSpec, Units};
use units::Sizes;

/// What the counts of a converter mean, for the inputs where the recording does not tell.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct QuantizeParams {
    /// By the name of the input: the physical value at 0 counts, and of one count.
    pub counts: BTreeMap<String, (f64, f64)>,
}

/// A model in integers, and what that cost.
#[derive(Clone, Debug, Serialize)]
pub struct Quantized {
    /// The model; its predictions are those of the device.
    #[serde(skip)]
    pub model: Model,
    /// The largest difference of an output from the model before, physical units, over all outputs.
    pub max_abs_error: f64,
    /// The largest bound of an output.
    pub bound: f64,
    /// By output, without integers and with them.
    pub nrmse_before: Vec<f64>,
    /// With them.
    pub nrmse_after: Vec<f64>,
    /// Rows in which a vector was limited to 16 bits.
    pub saturated: usize,
    /// Bytes of the file before.
    pub flash_before: usize,
    /// And of the file of integers.
    pub flash_after: usize,
    /// Output by output.
    pub outputs: Vec<OutputError>,
    /// Bits of the features.
    pub bits: u32,
    /// The head that loses most, counted from 0, where the error grows by more than 5 %.
    pub blame: Option<usize>,
}

/// What an output lost.
#[derive(Clone, Debug, Serialize)]
pub struct OutputError {
    /// Its name.
    pub name: String,
    /// Largest difference, physical units.
    pub max_abs_error: f64,
    /// Root mean square of the differences.
    pub rms_error: f64,
    /// How large a difference can be at most, for inputs in the training range while nothing is limited.
    pub bound: f64,
}

/// The error may grow by so much before it is said which head is to blame.
const TOLERATED: f64 = 1.05;

/// Makes integers of a model; the data should be those it was fitted to.
///
/// # Errors
/// [`ModelError`] where the model has integers already or does not fit them.
pub fn quantize(model: &Model, data: &Dataset, params: &QuantizeParams) -> Result<Quantized, ModelError> {
    if model.integers().is_some() {
        return Err(ModelError::Integers);
    }
    let spec = &centred(model.spec());
    let rows = data.scored_rows(spec.settled());
    let before = model.predict(data, &rows);
    let best =
        Attempt::best(spec, &Sizes::new(model, data), &counts(spec, data, params)?, data, &rows, &before)?;
    let truth = data.outputs_at(&rows);
    let names = model.output_names();
    let nrmse = |prediction: &DMatrix<f64>| {
        let metrics = Metrics::new(&names, &truth, prediction);
        metrics.outputs.iter().map(|output| output.nrmse).collect::<Vec<_>>()
    };
    let (nrmse_before, nrmse_after) = (nrmse(&before), nrmse(&best.y));
    let lost = nrmse_before.iter().zip(&nrmse_after).any(|(before, after)| *after > TOLERATED * before);
    let error = &best.y - &before;
    let made = Model::read_bytes(&best.bytes).map_err(BuildError::Refused)?;
    let bounds = best.units.bounds.iter().map(|bound| f64::from(*bound));
    let outputs: Vec<OutputError> = names
        .into_iter()
        .zip(bounds)
        .zip(error.column_iter())
        .map(|((name, bound), error)| OutputError {
            name,
            max_abs_error: error.amax(),
            rms_error: error.norm() / (rows.len().max(1) as f64).sqrt(),
            bound,
        })
        .collect();
    let most = |of: fn(&OutputError) -> f64| outputs.iter().map(of).fold(0.0, f64::max);
    Ok(Quantized {
        max_abs_error: most(|output| output.max_abs_error),
        bound: most(|output| output.bound),
        nrmse_before,
        nrmse_after,
        saturated: best.limited,
        flash_before: model.to_bytes()?.len(),
        flash_after: best.bytes.len(),
        outputs,
        bits: best.units.bits,
        blame: if lost { Some(blame(model, &best.units, data, &rows)?) } else { None },
        model: made,
    })
}

/// The same model with the values of every map around 0: the hats of its nodes sum to 1, so that what they have in common belongs to the
/// constant, where it takes no room from the coefficients.
fn centred(spec: &ModelSpec) -> ModelSpec {
    let mut spec = spec.clone();
    for head in &mut spec.heads {
        for core in &mut head.cores {
            let mut first = 1;
            for rows in head.features.iter().map(|&k| spec.stage.features[k].rows()) {
                for (a, b) in (0..core.left).flat_map(|a| (0..core.right).map(move |b| (a, b))) {
                    let at = |i: usize| (a * core.q + i) * core.right + b;
                    let own = || (first..first + rows).map(at);
                    let least = own().map(|at| core.data[at]).fold(f32::INFINITY, f32::min);
                    let most = own().map(|at| core.data[at]).fold(f32::NEG_INFINITY, f32::max);
                    let middle = if rows > 1 { 0.5 * (least + most) } else { 0.0 };
                    own().for_each(|at| core.data[at] -= middle);
                    core.data[at(0)] += middle;
                }
                first += rows;
            }
        }
    }
    spec
}

/// What the counts of all inputs mean.
fn counts(spec: &ModelSpec, data: &Dataset, params: &QuantizeParams) -> Result<Vec<(f32, f32)>, ModelError> {
    let known = |name: &String| spec.inputs.iter().any(|channel| channel.name == *name);
    if let Some(name) = params.counts.keys().find(|name| !known(name)) {
        return Err(ModelError::Counts { name: name.clone() });
    }
    let all =
        spec.inputs.iter().zip(&data.u).map(|(channel, column)| match params.counts.get(&channel.name) {
            Some(&(zero, step)) => (zero as f32, (1.0 / step) as f32),
            None => units::counts(channel, column),
        });
    Ok(all.collect())
}

/// A way to write a model in integers, and what it gives.
struct Attempt {
    units: Units,
    bytes: Vec<u8>,
    y: DMatrix<f64>,
    limited: usize,
    /// Sum over the outputs of the squared error in units of its scale.
    error: f64,
}

impl Attempt {
    fn best(
        spec: &ModelSpec,
        sizes: &Sizes,
        counts: &[(f32, f32)],
        data: &Dataset,
        rows: &[usize],
        before: &DMatrix<f64>,
    ) -> Result<Self, ModelError> {
        let mut best: Option<Self> = None;
        for bits in [14, 13, 12, 11] {
            let mut part = 0.5;
            let attempt = loop {
                let units = units::units(spec, sizes, counts, bits, part);
                let attempt = Self::new(spec, &units, data, rows, before)?;
                part /= 2.0;
                if attempt.limited == 0 || part < 0.1 {
                    break attempt;
                }
            };
            if best.as_ref().is_none_or(|best| attempt.error < best.error) {
                best = Some(attempt);
            }
        }
        let mut best = best.expect("there are bits to try");
        let fit = |(a, b): (nalgebra::DVectorView<'_, f64>, nalgebra::DVectorView<'_, f64>), offset: f64| {
            let (a, b) = (a.add_scalar(-offset), b.add_scalar(-offset));
            let size = a.norm_squared();
            if size > 0.0 { a.dot(&b) / size } else { 1.0 }
        };
        let columns = best.y.column_iter().zip(before.column_iter()).zip(&spec.outputs);
        best.units.factors = columns.map(|(pair, output)| fit(pair, output.offset.into())).collect();
        let refit = Self::new(spec, &best.units, data, rows, before)?;
        if refit.error < best.error {
            best = refit;
        } else {
            best.units.factors.clear();
        }
        let file = Integers::new(&best.bytes).map_err(BuildError::Refused)?;
        let bounds = bound::bounds(spec, &file.model(), &best.units);
        best.units.bounds = bounds.into_iter().map(|bound| (bound as f32).next_up()).collect();
        (best.bytes, best.units) = spec.to_integers(&best.units)?;
        Ok(best)
    }

    fn new(
        spec: &ModelSpec,
        units: &Units,
        data: &Dataset,
        rows: &[usize],
        before: &DMatrix<f64>,
    ) -> Result<Self, ModelError> {
        let (bytes, units) = spec.to_integers(units)?;
        let file = Integers::new(&bytes).map_err(BuildError::Refused)?;
        let DeviceOutputs { y, limited } = file.outputs(data, rows);
        let error = (&y - before)
            .column_iter()
            .zip(&spec.outputs)
            .map(|(error, output)| error.norm_squared() / f64::from(output.scale).powi(2))
            .sum();
        Ok(Self { units, bytes, y, limited, error })
    }
}

/// The head whose integers are furthest from it, times its weight.
fn blame(model: &Model, units: &Units, data: &Dataset, rows: &[usize]) -> Result<usize, ModelError> {
    let mut worst = (0, -1.0);
    for (k, head) in model.spec().heads.iter().enumerate() {
        let spec = ModelSpec { heads: vec![head.clone()], ..model.spec().clone() };
        let own = Units { heads: vec![units.heads[k].clone()], factors: Vec::new(), ..units.clone() };
        let before = Model::new(spec.clone()).predict(data, rows);
        let error = Attempt::new(&spec, &own, data, rows, &before)?.error;
        if error > worst.1 {
            worst = (k, error);
        }
    }
    Ok(worst.0)
}
