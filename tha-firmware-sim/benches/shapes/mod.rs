//! Random models as files, and samples for them.

#[path = "../../../tha-core/benches/shapes/mod.rs"]
mod shapes;

use rand::RngExt;
use rand::rngs::ChaCha8Rng;
pub use shapes::Shape;
use tha_firmware_sim::model_file::ModelFile;

/// The file of a model with random coefficients.
pub fn model(shape: Shape, random: &mut ChaCha8Rng) -> ModelFile {
    let bytes = shapes::spec(shape, random).to_bytes().expect("the shapes are valid");
    ModelFile::new(&bytes).expect("just built")
}

/// Samples of `p` values, some of them out of range.
pub fn samples(p: usize, count: usize, random: &mut ChaCha8Rng) -> Vec<f32> {
    (0..p * count).map(|_| 0.5 * random.random_range(-1.0..1.0)).collect()
}
