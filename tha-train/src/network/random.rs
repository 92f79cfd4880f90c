//! Seeded normal deviates: SplitMix64 and Box-Muller, so that a seed gives the same start everywhere and always.

/// A stream of independent N(0, 1) deviates.
pub(crate) struct Normal {
    state: u64,
    spare: Option<f64>,
}

impl Normal {
    /// The stream of `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed, spare: None }
    }

    fn uniform(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        // 53 bits, never zero: its logarithm is taken.
        ((z >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// The next deviate.
    pub(crate) fn draw(&mut self) -> f64 {
        if let Some(value) = self.spare.take() {
            return value;
        }
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        let angle = std::f64::consts::TAU * self.uniform();
        self.spare = Some(radius * angle.sin());
        radius * angle.cos()
    }
}
