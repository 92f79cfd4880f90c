//! The stream of the demo: tha-core in f32, sample by sample, against the batch in f64 and against the bits that
//! `FORMAT.md` prescribes.

use crate::commands::error::CliError;
use serde::Serialize;
use tha_core::build::AlignedBytes;
use tha_train::bound::ErrorBound;
use tha_train::device::{DeviceModel, DeviceState, DeviceStep};
use tha_train::reference::Reference;
use tha_train::{Dataset, Model};

/// How the stream compares.
#[derive(Serialize)]
pub(super) struct Streamed {
    /// Samples that gave outputs.
    pub samples: usize,
    /// Every output has the bits that `FORMAT.md` prescribes.
    pub bit_exact: bool,
    /// Largest difference from the batch, in standard deviations of the output.
    pub difference: f64,
    /// Largest difference from the batch as a part of the rounding bound of its sample.
    pub bound_used: f64,
}

impl Streamed {
    /// Bits and bound are as they should be, and no sample is missing.
    pub(super) fn ok(&self, expected: usize) -> bool {
        self.bit_exact && self.bound_used <= 1.0 && self.samples == expected
    }
}

/// Pushes one record through tha-core.
pub(super) fn stream(model: &Model, data: &Dataset) -> Result<Streamed, CliError> {
    let refuse = |error: &dyn std::fmt::Display| CliError::Usage(format!("the stream failed: {error}"));
    let bytes = AlignedBytes::new(&model.to_bytes()?);
    let core = DeviceModel::parse(&bytes).map_err(|error| refuse(&error))?;
    let mut state = DeviceState::new(&core).map_err(|error| refuse(&error))?;

    let spec = model.spec();
    let batch = model.predict(data, &data.scored_rows(spec.settled()));
    let (mut bound, mut plain) = (ErrorBound::new(spec), Reference::new(spec));
    let samples: Vec<Vec<f32>> =
        (0..data.len()).map(|t| data.u.iter().map(|column| column[t] as f32).collect()).collect();
    let mut found = Streamed { samples: 0, bit_exact: true, difference: 0.0, bound_used: 0.0 };
    for (t, u) in samples.iter().enumerate() {
        let row: Vec<f64> = data.u.iter().map(|column| column[t]).collect();
        let (bounds, expected) = (bound.push(&row), plain.push(u));
        let (DeviceStep::Ready { y, .. }, Some(bounds), Some(expected)) =
            (state.push(&core, u), bounds, expected)
        else {
            continue;
        };
        for (j, &y) in y.iter().enumerate() {
            let difference = (f64::from(y) - batch[(found.samples, j)]).abs();
            found.bit_exact &= y.to_bits() == expected[j].to_bits();
            found.difference = found.difference.max(difference / f64::from(spec.outputs[j].scale));
            found.bound_used = found.bound_used.max(difference / bounds[j]);
        }
        found.samples += 1;
    }
    Ok(found)
}
