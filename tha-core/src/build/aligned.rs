//! [`AlignedBytes`]: a file in the memory of a host, where a model can be read in place.

use alloc::{vec, vec::Vec};
use core::ops::Deref;

/// A copy of some bytes at an address that is a multiple of four, as [`Model::parse`](crate::Model::parse) needs them.
#[derive(Clone, Debug)]
pub struct AlignedBytes {
    words: Vec<u32>,
    length: usize,
}

impl AlignedBytes {
    /// Copies `bytes`.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        let mut words = vec![0u32; bytes.len().div_ceil(4)];
        let room: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        room.get_mut(..bytes.len()).unwrap_or_default().copy_from_slice(bytes);
        Self { words, length: bytes.len() }
    }
}

impl Deref for AlignedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        bytemuck::cast_slice(&self.words).get(..self.length).unwrap_or_default()
    }
}
