//! A recording as it runs: measured and predicted curves, flags, the heads' shares, the running error.
//!
//! [`Playback`] is the model of the view: it pushes one sample at a time and keeps what is to be seen. [`screen`]
//! draws it; [`plain_line`](Playback::plain_line) says the same in text.

mod ending;
pub mod screen;

use crate::model_file::ModelFile;
use crate::stream::{Device, Status, samples};
use std::borrow::Cow;
use std::collections::VecDeque;
use tha_core::CapacityError;
use tha_core::build::{Head, ModelSpec};
use tha_train::Dataset;
use tha_train::reference::Reference;

/// Samples that the curves show at most.
const SHOWN: usize = 400;

/// One sample of one output.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Sample number.
    pub t: usize,
    /// Measured, where the data has it.
    pub measured: Option<f64>,
    /// Predicted, once there is an output.
    pub predicted: Option<f64>,
}

/// The running error of one output.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RunningError {
    count: usize,
    squares: f64,
    mean: f64,
    spread: f64,
}

impl RunningError {
    fn add(&mut self, measured: f64, predicted: f64) {
        self.count += 1;
        self.squares += (measured - predicted).powi(2);
        // Welford's variance of what was measured.
        let before = measured - self.mean;
        self.mean += before / self.count as f64;
        self.spread += before * (measured - self.mean);
    }

    /// Root mean square error so far.
    pub fn rmse(&self) -> f64 {
        (self.squares / self.count.max(1) as f64).sqrt()
    }

    /// RMSE by the standard deviation of the measured output so far.
    pub fn nrmse(&self) -> f64 {
        (self.squares / self.spread).sqrt()
    }
}

/// A recording that is being played.
#[derive(Debug)]
pub struct Playback<'m> {
    data: &'m Dataset,
    spec: ModelSpec,
    samples: Vec<f32>,
    device: Device<'m>,
    /// The same once more, to ask for the shares of the heads.
    plain: Reference<'static, f32>,
    /// The next sample.
    pub next: usize,
    /// The last samples of each output.
    pub points: Vec<VecDeque<Point>>,
    /// Status of the last sample.
    pub status: Status,
    /// Names of the inputs the last sample was flagged for.
    pub flagged_inputs: Vec<String>,
    /// Outputs with a flag so far.
    pub flagged: usize,
    /// Weighted share of each head in each output at the last sample, physical units without the offset.
    pub shares: Vec<Vec<f64>>,
    /// Error of each output so far.
    pub errors: Vec<RunningError>,
}

impl<'m> Playback<'m> {
    /// At the beginning.
    pub fn new(file: &'m ModelFile, data: &'m Dataset) -> Result<Self, CapacityError> {
        let spec = file.batch().spec().clone();
        let outputs = spec.outputs.len();
        Ok(Self {
            data,
            samples: samples(data),
            device: Device::new(file)?,
            plain: Reference::from(Cow::Owned(spec.clone())),
            next: 0,
            points: vec![VecDeque::new(); outputs],
            status: Status::default(),
            flagged_inputs: Vec::new(),
            flagged: 0,
            shares: vec![Vec::new(); outputs],
            errors: vec![RunningError::default(); outputs],
            spec,
        })
    }

    /// Samples of the recording.
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// The outputs.
    pub fn output_names(&self) -> Vec<&str> {
        self.spec.outputs.iter().map(|channel| channel.name.as_str()).collect()
    }

    /// Pushes the next sample; false at the end.
    pub fn step(&mut self) -> bool {
        let t = self.next;
        if t >= self.data.len() {
            return false;
        }
        if self.data.records.iter().any(|record| record.rows.start == t) {
            self.device.reset();
            self.plain.reset();
        }
        let width = self.data.u.len();
        let row = &self.samples[t * width..(t + 1) * width];
        self.plain.take(row);
        let said = self.device.push(row);
        self.status = said.status;
        self.flagged_inputs.clear();
        if said.status.ready() {
            let names = self.data.inputs.iter().zip(said.channels);
            let odd = names.filter(|(_, flags)| flags.below() || flags.above() || flags.held());
            self.flagged_inputs.extend(odd.map(|(name, _)| name.clone()));
            self.flagged += usize::from(said.status.reported());
            let shares = self.plain.shares();
            for (j, (place, channel)) in self.shares.iter_mut().zip(&self.spec.outputs).enumerate() {
                // A head has no share in an output that it does not serve.
                let share = |(head, share): (&Head, &Vec<f32>)| {
                    let own = j.checked_sub(head.outputs.start).and_then(|j| share.get(j));
                    f64::from(own.copied().unwrap_or(0.0) * channel.scale)
                };
                *place = self.spec.heads.iter().zip(&shares).map(share).collect();
            }
        }
        for (j, (points, error)) in self.points.iter_mut().zip(&mut self.errors).enumerate() {
            let measured = self.data.y.get(j).map(|column| column[t]);
            let predicted = said.y.get(j).copied().map(f64::from);
            if let (Some(measured), Some(predicted)) = (measured, predicted) {
                error.add(measured, predicted);
            }
            points.push_back(Point { t, measured, predicted });
            if points.len() > SHOWN {
                points.pop_front();
            }
        }
        self.next += 1;
        true
    }

    /// What the device says to the last sample, in words.
    pub fn says(&self) -> String {
        let words = [
            (self.status.warming(), "warming up"),
            (self.status.refused(), "refused"),
            (self.status.out_of_range(), "out of range"),
            (self.status.held(), "held"),
            (self.status.overflow(), "overflow"),
        ];
        let words: Vec<&str> = words.into_iter().filter(|(set, _)| *set).map(|(_, word)| word).collect();
        let mut text = if words.is_empty() { "ok".to_owned() } else { words.join(", ") };
        if !self.flagged_inputs.is_empty() {
            text.push_str(&format!(" ({})", self.flagged_inputs.join(" ")));
        }
        text
    }

    /// The first line of the plain view.
    pub fn plain_head(&self) -> String {
        let columns = self.spec.outputs.iter().map(|c| format!("{0},yhat_{0}", c.name));
        format!("t,{},device", columns.collect::<Vec<_>>().join(","))
    }

    /// The last sample as a line of comma-separated values.
    pub fn plain_line(&self) -> String {
        let number = |value: Option<f64>| match value {
            None => String::new(),
            Some(value) if value == 0.0 || (1e-3..1e9).contains(&value.abs()) => format!("{value:.6}"),
            Some(value) => format!("{value:.6e}"),
        };
        let mut fields = vec![self.next.saturating_sub(1).to_string()];
        for points in &self.points {
            let last = points.back();
            fields.push(number(last.and_then(|point| point.measured)));
            fields.push(number(last.and_then(|point| point.predicted)));
        }
        fields.push(self.says().replace(", ", " + "));
        fields.join(",")
    }
}
