//! Sizes of a firmware image, from the program headers of its ELF file (32-bit, little-endian).

use std::path::Path;

/// What an image takes of a board.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ElfSizes {
    /// Bytes in flash: code, constants, initial values.
    pub flash: usize,
    /// Bytes of static data in RAM.
    pub ram: usize,
}

/// Where RAM begins on every Cortex-M.
const RAM: u32 = 0x2000_0000;
const LOAD: u32 = 1;

impl ElfSizes {
    /// Reads an image; `None` when it is not one.
    #[must_use]
    pub fn of(image: &Path) -> Option<Self> {
        Self::parse(&std::fs::read(image).ok()?)
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let half = |at: usize| Some(usize::from(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?)));
        if !bytes.starts_with(b"\x7fELF\x01\x01") {
            return None;
        }
        let (table, size, count) = (word(28)? as usize, half(42)?, half(44)?);
        let mut sizes = Self::default();
        for at in (0..count).map(|k| table + k * size) {
            if word(at)? != LOAD {
                continue;
            }
            let (address, in_file, in_memory) = (word(at + 8)?, word(at + 16)?, word(at + 20)?);
            // Read-only segments of an image without a memory map begin with the ELF header itself; it is not code.
            let header = if word(at + 4)? == 0 { table + count * size } else { 0 };
            sizes.flash += (in_file as usize).saturating_sub(header);
            if address >= RAM {
                sizes.ram += in_memory as usize;
            }
        }
        Some(sizes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_add_up() {
        let mut image = vec![0u8; 52 + 2 * 32];
        image[..6].copy_from_slice(b"\x7fELF\x01\x01");
        let mut put = |at: usize, value: u32| image[at..at + 4].copy_from_slice(&value.to_le_bytes());
        put(28, 52);
        put(42, 32 | 2 << 16);
        for (k, [offset, address, in_file, in_memory]) in
            [[200, 0, 1000, 1000], [1200, RAM, 24, 100]].into_iter().enumerate()
        {
            for (field, value) in [LOAD, offset, address, 0, in_file, in_memory].into_iter().enumerate() {
                put(52 + 32 * k + 4 * field, value);
            }
        }
        assert_eq!(ElfSizes::parse(&image), Some(ElfSizes { flash: 1024, ram: 100 }));
        assert_eq!(ElfSizes::parse(b"\x7fELF\x02\x01"), None);
        assert_eq!(ElfSizes::parse(&image[..80]), None);
    }
}
