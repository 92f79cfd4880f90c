//! A `.tha` file in the memory of the host, aligned as the device needs it.

use crc::{CRC_32_ISO_HDLC, Crc};
use rand::RngExt;
use rand::rngs::ChaCha8Rng;
use std::path::Path;
use tha_core::build::{AlignedBytes, ModelSpec};
use tha_core::{ParseError, Shape, integer};
use tha_train::ModelError;
pub use tha_train::device::DeviceModel;
use tha_train::host::refusal;

/// A model file that has been checked.
#[derive(Clone, Debug)]
pub struct ModelFile(AlignedBytes);

impl ModelFile {
    /// Reads and checks a file.
    pub fn read(path: &Path) -> Result<Self, ModelError> {
        let name = path.display().to_string();
        let bytes = std::fs::read(path)
            .map_err(|error| ModelError::Unreadable { path: name.clone(), reason: refusal(&error) })?;
        Self::new(&bytes).map_err(|reason| ModelError::Refused { path: name, reason })
    }

    /// Copies the bytes of a file to an aligned place and checks them.
    pub fn new(bytes: &[u8]) -> Result<Self, ParseError> {
        let file = Self(AlignedBytes::new(bytes));
        DeviceModel::parse(file.bytes())?;
        Ok(file)
    }

    /// The bytes, at a multiple of four.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The model as the device sees it.
    pub fn model(&self) -> DeviceModel<'_> {
        DeviceModel::parse(self.bytes()).expect("checked by ModelFile::new")
    }

    /// The model in f64: of integers what they mean.
    pub fn batch(&self) -> tha_train::Model {
        tha_train::Model::new(match self.model() {
            DeviceModel::Float(model) => ModelSpec::from_model(&model),
            DeviceModel::Integer(model) => ModelSpec::meaning(&model),
        })
    }

    /// The model with the arithmetic of the device, where its numbers are integers.
    pub fn device_batch(&self) -> tha_train::Model {
        tha_train::Model::read_bytes(self.bytes()).expect("checked by ModelFile::new")
    }

    /// The dimensions.
    pub fn shape(&self) -> Shape {
        self.model().shape()
    }

    /// Another model of the same shape: weights and gains a little different.
    pub fn variant(&self, random: &mut ChaCha8Rng) -> Self {
        let mut spec = match self.model() {
            DeviceModel::Float(model) => ModelSpec::from_model(&model),
            DeviceModel::Integer(model) => return self.with_other_weights(&model, random),
        };
        for head in &mut spec.heads {
            let factor = 1.0 + 0.1 * random.random_range(-1.0..1.0);
            head.weights.iter_mut().for_each(|weight| *weight *= factor);
        }
        // Filters go on only where the scaling in front of them stays.
        if spec.stage.sections.is_empty() {
            for input in &mut spec.inputs {
                input.gain *= 1.0 + 0.1 * random.random::<f32>();
            }
        }
        // The note makes it another file even where every number stayed.
        spec.provenance.note.push('\'');
        Self::new(&spec.to_bytes().expect("as valid as this one")).expect("just built")
    }

    /// The same where the numbers are integers: no weight larger than before, which keeps the proof that no sum overflows.
    fn with_other_weights(&self, model: &integer::Model<'_>, random: &mut ChaCha8Rng) -> Self {
        let mut bytes = self.bytes().to_vec();
        for head in model.heads() {
            let factor = 1.0 - 0.2 * random.random::<f32>();
            let at = head.weights.as_ptr() as usize - self.bytes().as_ptr() as usize;
            for (k, &weight) in head.weights.iter().enumerate() {
                let other = (f32::from(weight) * factor) as i16;
                bytes[at + 2 * k..at + 2 * k + 2].copy_from_slice(&other.to_le_bytes());
            }
        }
        Self::new(&with_valid_checksum(&bytes)).expect("as valid as this one")
    }

    /// RAM of a state with exactly the model's capacities on a 32-bit device.
    pub fn state_bytes(&self) -> usize {
        let needs = self.model().capacities();
        // Values and flags of the channels, eleven scalars and two policies of one byte each.
        4 * (needs.history + needs.scratch) + (needs.inputs + 2).next_multiple_of(4) + 11 * 4
    }
}

/// The file with the checksum that its contents ask for.
pub(crate) fn with_valid_checksum(bytes: &[u8]) -> Vec<u8> {
    let crc = Crc::<u32>::new(&CRC_32_ISO_HDLC).checksum(&[&bytes[..12], &bytes[16..]].concat());
    [&bytes[..12], &crc.to_le_bytes(), &bytes[16..]].concat()
}
