//! SplitMix64: the one source of randomness of a campaign, the same numbers on every machine.

/// A generator that is its seed.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Starts from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to `limit - 1`; 0 when the limit is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.bits() % (limit as u64).max(1)) as usize
    }

    /// A number between -1 and 1.
    pub fn signed(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}
