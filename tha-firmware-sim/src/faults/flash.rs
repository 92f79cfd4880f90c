//! Faults of the flash: flipped bits, and models that are exchanged.

use super::driver::Driver;
use super::signal::judge;
use super::{Bench, SCRUB_EVERY, Trial};
use crate::model_file::{DeviceModel, ModelFile, with_valid_checksum};
use crate::stream::{Device, Stream};
use rand::RngExt;
use rand::rngs::ChaCha8Rng;
use tha_core::Swap;
use tha_core::build::{AlignedBytes, Core, Head, ModelSpec};

impl Bench<'_> {
    /// One to three bits flipped anywhere in the file: the device must refuse to start.
    pub(super) fn flash_at_start(&self, random: &mut ChaCha8Rng) -> Trial {
        match DeviceModel::parse(&AlignedBytes::new(&self.flip(random))) {
            Ok(_) => Trial { silent: true, ..Trial::default() },
            Err(error) => {
                // Numbers differ from file to file, the finding does not.
                let words = error.to_string();
                let finding = words.split([':', ';']).next().unwrap_or_default();
                Trial {
                    report: Some(finding.trim_start_matches(char::is_numeric).trim().into()),
                    ..Trial::default()
                }
            }
        }
    }

    /// Bits flipped under a running device: outputs are wrong until the next check of the flash finds it. Where the
    /// flipped file still has the shape of a model, the device computes with it; elsewhere only the finding is tried.
    pub(super) fn flash_while_running(&self, random: &mut ChaCha8Rng) -> Trial {
        let stretch = self.stretch(SCRUB_EVERY, random);
        let events = self.events(stretch);
        let flipped = self.flip(random);
        // What a device computes that has parsed before the bits flipped: the same bytes with a checksum that fits.
        let wrong = ModelFile::new(&with_valid_checksum(&flipped)).ok().filter(|wrong| {
            let (a, b) = (wrong.shape(), self.file.shape());
            (a.inputs, a.outputs, a.memory) == (b.inputs, b.outputs, b.memory)
        });
        let start = self.before();
        let mut clean = self.run(self.file, &events);
        let mut driver = Driver::new(self.file, &self.runs);
        let mut faulty = Vec::new();
        for (t, event) in events.iter().enumerate() {
            if t == start {
                driver.corrupt(flipped.clone());
                if let Some(wrong) = &wrong {
                    let _ = driver.device().swap(wrong);
                }
            }
            faulty.push(driver.handle(event));
        }
        let found = faulty.iter().position(|answer| answer.report == Some("model damaged"));
        let end = found.map_or(events.len(), |t| t + 1);
        self.restart(self.file, events, end, &mut clean);
        let mut trial = judge(&clean, &faulty, start..end, SCRUB_EVERY, &self.tolerance);
        // A flag that a wrong number has raised on the way is not the finding.
        trial.report = found.map(|_| "model damaged".to_owned());
        trial.silent |= found.is_none();
        trial
    }

    /// Another model of the same shape takes over: from then on the outputs are those of a device that always ran it.
    pub(super) fn swap(&self, random: &mut ChaCha8Rng) -> Trial {
        let other = self.file.variant(random);
        let stretch = self.stretch(1, random);
        let start = self.before() + random.random_range(0..self.memory);
        let mut always = Device::new(&other).expect("as large as the first");
        let clean = always.replay(stretch, &[stretch.len() / self.width]);
        let mut device = Device::new(self.file).expect("checked by the campaign");
        let mut stream = Stream::new(clean.width);
        let mut report = None;
        for (t, row) in stretch.chunks_exact(self.width).enumerate() {
            if t == start {
                report = Some(match device.swap(&other) {
                    Ok(Swap::Kept) => "taken over".to_owned(),
                    Ok(Swap::Restarted) => "restarted".to_owned(),
                    Err(error) => error.to_string(),
                });
            }
            stream.push(&device.push(row));
        }
        let differs = |t: &usize| {
            let bits = |stream: &Stream| stream.at(*t).iter().map(|y| y.to_bits()).collect::<Vec<_>>();
            bits(&stream) != bits(&clean)
        };
        let affected: Vec<usize> = (start..clean.status.len()).filter(differs).collect();
        let recovery = affected.last().map_or(0, |last| last + 1 - start);
        // Not a single output may differ.
        let silent = !affected.is_empty() || report.is_none();
        Trial { affected: affected.len(), late: affected.len(), recovery, report, silent }
    }

    /// A model with one lag more is refused and the old one goes on as if nothing had been.
    pub(super) fn swap_other_shape(&self, random: &mut ChaCha8Rng) -> Trial {
        let longer = longer(self.file.batch().spec());
        let Some(other) = longer.to_bytes().ok().and_then(|bytes| ModelFile::new(&bytes).ok()) else {
            return Trial::default();
        };
        let stretch = self.stretch(1, random);
        let records = [stretch.len() / self.width];
        let mut device = Device::new(self.file).expect("checked by the campaign");
        let clean = device.replay(stretch, &records);
        device.reset();
        let mut stream = Stream::new(clean.width);
        let mut report = None;
        for (t, row) in stretch.chunks_exact(self.width).enumerate() {
            if t == self.before() {
                report = device.swap(&other).err().map(|_| "refused, old model goes on".to_owned());
            }
            stream.push(&device.push(row));
        }
        let affected = if stream.same_bits(&clean) { 0 } else { records[0] };
        Trial { affected, silent: affected > 0 || report.is_none(), report, ..Trial::default() }
    }

    /// The firmware pushes with another model without telling the state: every sample is refused until it does.
    pub(super) fn swap_forgotten(&self, random: &mut ChaCha8Rng) -> Trial {
        let other = self.file.variant(random);
        let length = random.random_range(1..=8);
        let stretch = self.stretch(length, random);
        let events = self.events(stretch);
        let mut clean = self.run(&other, &events);
        let fault = self.before()..(self.before() + length).min(events.len());
        let mut driver = Driver::new(self.file, &self.runs);
        let mut faulty = Vec::new();
        for (t, event) in events.iter().enumerate() {
            if t == fault.start {
                driver.device().model = other.model();
            }
            if t == fault.end {
                let _ = driver.device().swap(&other);
            }
            faulty.push(driver.handle(event));
        }
        self.restart(&other, events, fault.end, &mut clean);
        judge(&clean, &faulty, fault, 0, &self.tolerance)
    }

    fn flip(&self, random: &mut ChaCha8Rng) -> Vec<u8> {
        let mut bytes = self.file.bytes().to_vec();
        let first = random.random_range(0..8 * bytes.len());
        bytes[first / 8] ^= 1 << (first % 8);
        for _ in 0..random.random_range(0..3) {
            // Never the first bit again, which would repair it.
            let bit = (first + 1 + random.random_range(0..8 * bytes.len() - 1)) % (8 * bytes.len());
            bytes[bit / 8] |= 1 << (bit % 8);
        }
        bytes
    }
}

/// A model of the same channels with one lag more.
fn longer(spec: &ModelSpec) -> ModelSpec {
    let mut longer = ModelSpec { memory: spec.memory + 1, ..spec.clone() };
    // A list of features does not change with the memory; lags need cores with as many rows.
    if spec.stage.features.is_empty() {
        let (outputs, rows) = (spec.outputs.len(), 1 + longer.memory);
        let core = Core::new(outputs, rows, 1, vec![0.0; outputs * rows]);
        longer.heads = vec![Head::from_cores(vec![0], 1.0, vec![core])];
    }
    longer
}
