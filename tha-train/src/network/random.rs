//! Seeded normal deviates: ChaCha8 and Marsaglia's polar method. Generator and logarithm are written in Rust, so that a
//! seed gives the same bits on every platform.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

/// A stream of independent N(0, 1) deviates.
pub(crate) struct Normal {
    uniform: ChaCha8Rng,
    spare: Option<f64>,
}

impl Normal {
    /// The stream of `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self { uniform: ChaCha8Rng::seed_from_u64(seed), spare: None }
    }

    /// The next deviate.
    pub(crate) fn draw(&mut self) -> f64 {
        if let Some(value) = self.spare.take() {
            return value;
        }
        // A point in the unit disc gives two deviates.
        loop {
            let [a, b] = [(); 2].map(|()| self.uniform.random_range(-1.0..1.0));
            let square: f64 = a * a + b * b;
            if 0.0 < square && square < 1.0 {
                let factor = (-2.0 * libm::log(square) / square).sqrt();
                self.spare = Some(factor * b);
                return factor * a;
            }
        }
    }
}
