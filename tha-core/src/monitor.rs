//! [`Monitor`] (feature `monitor`): how well the model does on the device, given the measured outputs.
//!
//! Per output, with the error e = y - yhat and a forgetting factor that averages over about `window` samples:
//!
//! ```text
//! rmse  = sqrt(mean e^2)                    nrmse = rmse / std(y)
//! S     = max(0, S + e^2 / e0^2 - 1 - slack)              alarm while S > threshold          (CUSUM)
//! w     = w exp(rate C) if |e| > w, else w exp(-rate (1 - C))                                (adaptive conformal)
//! ```
//!
//! w is the half-width of the interval with coverage C, where the model has one. A miss widens it, a hit narrows it, so that log w
//! stays where it is exactly when the part 1 - C of the errors is outside: over n samples the part that is inside differs from C by
//! at most |log(w_n / w_0)| / (rate n), whatever the errors do.
//!
//! e0 is the RMS residual stored in the model. Where that is unknown (0), e0 is the rmse of the first `window` samples, and
//! the alarm starts after them. Inside, outputs are in units of their `scale`: squares of physical ones may leave the range of
//! f32. O(l) per sample, no allocation; f32 with `libm::sqrtf`.

use heapless::Vec;

use crate::error::CapacityError;
use crate::facts::Facts;

/// How a [`Monitor`] averages and when it raises the alarm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MonitorOptions {
    /// Samples to average over, at least 1.
    pub window: u32,
    /// By how much the squared error may exceed the expected one, relative to it, without counting as drift.
    pub slack: f32,
    /// Excess squared error, in units of the expected one, that is drift when it has piled up.
    pub threshold: f32,
    /// How fast the intervals follow, 0 to 1: the larger, the sooner they follow drift and the more they move without it.
    pub rate: f32,
}

impl Default for MonitorOptions {
    /// Window 256, slack 1 (40 % more RMSE is tolerated), threshold 50, rate 0.05: for normal errors and C = 0.9 an interval follows
    /// in some 60 samples and moves by 8 % (standard deviation) while nothing drifts.
    fn default() -> Self {
        Self { window: 256, slack: 1.0, threshold: 50.0, rate: 0.05 }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Channel {
    scale: f32,
    expected: f32,
    mean: f32,
    variance: f32,
    error: f32,
    cusum: f32,
    half_width: f32,
}

/// Running error statistics and drift alarm of one stream, for at most `OUTPUTS` outputs.
#[derive(Clone, Debug)]
pub struct Monitor<const OUTPUTS: usize> {
    options: MonitorOptions,
    /// By what an interval grows on a miss and shrinks on a hit; none without intervals.
    factors: Option<[f32; 2]>,
    channels: Vec<Channel, OUTPUTS>,
    samples: u32,
}

impl<const OUTPUTS: usize> Monitor<OUTPUTS> {
    /// A monitor for the outputs of `model`.
    ///
    /// # Errors
    /// [`CapacityError`] when `OUTPUTS` is smaller than the model's outputs.
    pub fn new(model: &Facts<'_>, options: MonitorOptions) -> Result<Self, CapacityError> {
        let needed = model.outputs().len();
        let mut channels = Vec::new();
        for (k, output) in model.outputs().iter().enumerate() {
            let residual = output.residual / output.scale;
            let channel = Channel {
                scale: output.scale,
                expected: residual * residual,
                half_width: model.half_widths().get(k).map_or(0.0, |width| width / output.scale),
                ..Channel::default()
            };
            let full = CapacityError { capacity: "OUTPUTS", found: OUTPUTS, needed, needs: None };
            channels.push(channel).map_err(|_| full)?;
        }
        let (coverage, rate) = (model.coverage(), options.rate.clamp(0.0, 1.0));
        let factors = [libm::expf(rate * coverage), libm::expf(-rate * (1.0 - coverage))];
        Ok(Self {
            options: MonitorOptions { window: options.window.max(1), ..options },
            factors: (coverage > 0.0).then_some(factors),
            channels,
            samples: 0,
        })
    }

    /// Takes the measured outputs of a sample and what the model said. Returns whether any output drifts.
    ///
    /// A value that is not finite, on either side, leaves its output's statistics as they are.
    pub fn update(&mut self, predicted: &[f32], measured: &[f32]) -> bool {
        self.samples = self.samples.saturating_add(1);
        let learning = self.samples <= self.options.window;
        // The plain mean first, then the exponential one: no bias from an arbitrary start.
        let gain = 1.0 / self.samples.min(self.options.window) as f32;
        for (channel, (&yhat, &y)) in self.channels.iter_mut().zip(predicted.iter().zip(measured)) {
            let (yhat, y) = (yhat / channel.scale, y / channel.scale);
            let error = (y - yhat) * (y - yhat);
            if !error.is_finite() || !y.is_finite() {
                continue;
            }
            let step = y - channel.mean;
            channel.mean += gain * step;
            channel.variance += gain * (step * (y - channel.mean) - channel.variance);
            channel.error += gain * (error - channel.error);
            if let Some([wider, narrower]) = self.factors {
                let size = (y - yhat).abs();
                // A width of nothing cannot grow by a factor: then the first error is it.
                channel.half_width = match channel.half_width {
                    width if size <= width => width * narrower,
                    0.0 => size,
                    width => (width * wider).min(f32::MAX),
                };
            }
            if channel.expected > 0.0 {
                let excess = error / channel.expected - 1.0 - self.options.slack;
                channel.cusum = (channel.cusum + excess).clamp(0.0, f32::MAX);
            } else if !learning {
                channel.expected = channel.error;
            }
        }
        self.drifting()
    }

    /// Whether the alarm of any output is on.
    #[must_use]
    pub fn drifting(&self) -> bool {
        self.channels.iter().any(|channel| channel.cusum > self.options.threshold)
    }

    /// Whether the alarm of output `channel` is on.
    #[must_use]
    pub fn drifts(&self, channel: usize) -> Option<bool> {
        self.channels.get(channel).map(|channel| channel.cusum > self.options.threshold)
    }

    /// Running root mean square error of output `channel`, physical units.
    #[must_use]
    pub fn rmse(&self, channel: usize) -> Option<f32> {
        self.channels.get(channel).map(|channel| channel.scale * libm::sqrtf(channel.error))
    }

    /// Running RMSE over the running standard deviation of the measured output `channel`; infinite while that is 0.
    #[must_use]
    pub fn nrmse(&self, channel: usize) -> Option<f32> {
        self.channels.get(channel).map(|channel| libm::sqrtf(channel.error / channel.variance.max(0.0)))
    }

    /// Half the width of the interval around output `channel` as it is now, physical units; none where the model has no intervals.
    #[must_use]
    pub fn half_width(&self, channel: usize) -> Option<f32> {
        self.factors.and(self.channels.get(channel)).map(|channel| channel.scale * channel.half_width)
    }

    /// Takes the alarm back, as after a repair. The statistics stay.
    pub fn clear(&mut self) {
        for channel in &mut self.channels {
            channel.cusum = 0.0;
        }
    }
}
