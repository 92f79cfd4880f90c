//! A `.tha` file in the memory of the host, aligned as the device needs it.

use rand::RngExt;
use rand::rngs::ChaCha8Rng;
use std::path::Path;
use tha_core::build::ModelSpec;
use tha_core::{Capacities, Model, ParseError, Shape};
use tha_train::host::refusal;
use tha_train::model::ModelError;

/// A model file that has been checked.
#[derive(Clone, Debug)]
pub struct ModelFile {
    words: Vec<u32>,
    length: usize,
}

impl ModelFile {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// [`ModelError`] with the name of the file.
    pub fn read(path: &Path) -> Result<Self, ModelError> {
        let name = path.display().to_string();
        let bytes = std::fs::read(path)
            .map_err(|error| ModelError::Unreadable { path: name.clone(), reason: refusal(&error) })?;
        Self::new(&bytes).map_err(|reason| ModelError::Refused { path: name, reason })
    }

    /// Copies the bytes of a file to an aligned place and checks them.
    ///
    /// # Errors
    /// What the decoder found.
    pub fn new(bytes: &[u8]) -> Result<Self, ParseError> {
        let mut words = vec![0u32; bytes.len().div_ceil(4)];
        bytemuck::cast_slice_mut::<u32, u8>(&mut words)[..bytes.len()].copy_from_slice(bytes);
        let file = Self { words, length: bytes.len() };
        Model::parse(file.bytes())?;
        Ok(file)
    }

    /// The bytes, at a multiple of four.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.length]
    }

    /// The model as the device sees it.
    ///
    /// # Panics
    /// Never: the bytes were checked when they came.
    #[must_use]
    pub fn model(&self) -> Model<'_> {
        Model::parse(self.bytes()).expect("checked by ModelFile::new")
    }

    /// The model as tha-train sees it.
    #[must_use]
    pub fn batch(&self) -> tha_train::model::Model {
        tha_train::model::Model::new(ModelSpec::from_model(&self.model()))
    }

    /// The dimensions.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.model().shape()
    }

    /// Another model of the same shape: weights and gains a little different.
    ///
    /// # Panics
    /// Never: it is as valid as this one.
    #[must_use]
    pub fn variant(&self, random: &mut ChaCha8Rng) -> Self {
        let mut spec = ModelSpec::from_model(&self.model());
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

    /// RAM of a state with exactly the model's capacities on a 32-bit device.
    #[must_use]
    pub fn state_bytes(&self) -> usize {
        state_bytes(&self.model().capacities())
    }
}

/// Values and flags of the channels, eleven scalars and two policies of one byte each.
fn state_bytes(needs: &Capacities) -> usize {
    4 * (needs.history + needs.scratch) + (needs.inputs + 2).next_multiple_of(4) + 11 * 4
}
