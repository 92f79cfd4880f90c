//! The firmware around tha-core, as its guide asks for it:
//!
//! - a sample that does not come is pushed as NaN: the model's policy decides;
//! - after a gap of unknown length, and after a refused sample, the state is reset: no history with a hole in it;
//! - a channel that repeats one value longer than it ever did in the recording is treated as NaN;
//! - the model in flash is parsed again every [`SCRUB_EVERY`] samples.

use crate::model_file::{DeviceModel, ModelFile};
use crate::stream::{Device, Status};
use tha_core::build::AlignedBytes;

/// Samples between two checks of the model in flash.
pub const SCRUB_EVERY: usize = 64;

/// What comes to the driver instead of a plain sample.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A sample.
    Sample(Vec<f32>),
    /// The sample did not come.
    Missing,
    /// The device does not run.
    Nothing,
    /// The clock has jumped, then a sample.
    AfterGap(Vec<f32>),
    /// Power was lost, then a sample.
    AfterPowerLoss(Vec<f32>),
}

/// What the device did with an event.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The outputs; none while warming up or refused.
    pub outputs: Option<Vec<u32>>,
    /// What it said about them.
    pub report: Option<&'static str>,
}

/// A device with its driver.
#[derive(Debug)]
pub struct Driver<'m> {
    file: &'m ModelFile,
    device: Device<'m>,
    /// Per channel: the longest believable run of one value, the present value, its run.
    runs: Vec<(usize, f32, usize)>,
    /// The flash as it is now, when it is no longer what was parsed.
    flash: Option<Vec<u8>>,
    taken: usize,
}

impl<'m> Driver<'m> {
    /// Switches on; `runs` are the longest believable runs of one value.
    pub fn new(file: &'m ModelFile, runs: &[usize]) -> Self {
        let device = Device::new(file).expect("checked by the campaign");
        Self {
            file,
            device,
            runs: runs.iter().map(|&run| (run, f32::NAN, 0)).collect(),
            flash: None,
            taken: 0,
        }
    }

    /// The device itself.
    pub fn device(&mut self) -> &mut Device<'m> {
        &mut self.device
    }

    /// From now on the flash reads like this.
    pub fn corrupt(&mut self, flash: Vec<u8>) {
        self.flash = Some(flash);
    }

    /// Works an event through.
    pub fn handle(&mut self, event: &Event) -> Answer {
        if *event == Event::Nothing {
            return Answer { outputs: None, report: None };
        }
        self.taken += 1;
        if self.taken.is_multiple_of(SCRUB_EVERY) && self.flash_is_damaged() {
            // A firmware would load its spare copy; here that is the file itself.
            self.flash = None;
            self.device = Device::new(self.file).expect("it was there before");
            return Answer { outputs: None, report: Some("model damaged") };
        }
        let mut sample = match event {
            Event::Sample(sample) => sample.clone(),
            Event::Missing | Event::Nothing => vec![f32::NAN; self.runs.len()],
            Event::AfterGap(sample) => {
                self.device.reset();
                sample.clone()
            }
            Event::AfterPowerLoss(sample) => {
                self.device = Device::new(self.file).expect("it was there before");
                sample.clone()
            }
        };
        let stuck = self.replace_stuck(&mut sample);
        let said = self.device.push(&sample);
        let status = said.status;
        let outputs = status.ready().then(|| said.y.iter().map(|y| y.to_bits()).collect());
        if status.refused() {
            self.device.reset();
        }
        Answer { outputs, report: if stuck { Some("stuck") } else { words(status) } }
    }

    fn flash_is_damaged(&self) -> bool {
        self.flash.as_ref().is_some_and(|flash| DeviceModel::parse(&AlignedBytes::new(flash)).is_err())
    }

    fn replace_stuck(&mut self, sample: &mut [f32]) -> bool {
        let mut stuck = false;
        for (value, (limit, last, run)) in sample.iter_mut().zip(&mut self.runs) {
            *run = if *value == *last { *run + 1 } else { 1 };
            *last = *value;
            if *run > *limit {
                *value = f32::NAN;
                stuck = true;
            }
        }
        stuck
    }
}

/// The first thing to say about a status.
fn words(status: Status) -> Option<&'static str> {
    match status {
        _ if status.warming() => Some("warming up"),
        _ if status.refused() => Some("refused"),
        _ if status.overflow() => Some("overflow"),
        _ if status.held() => Some("held"),
        _ if status.out_of_range() => Some("out of range"),
        _ => None,
    }
}
