//! The size of a firmware image, from the program headers of its ELF file (32-bit, little-endian).

use std::path::Path;

const LOAD: usize = 1;

/// Bytes in flash, which are code, constants and initial values; `None` when the file is not an image.
pub(super) fn flash_bytes(image: &Path) -> Option<usize> {
    parse(&std::fs::read(image).ok()?)
}

fn parse(bytes: &[u8]) -> Option<usize> {
    let word = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?) as usize);
    let half = |at: usize| Some(usize::from(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?)));
    if !bytes.starts_with(b"\x7fELF\x01\x01") {
        return None;
    }
    let (table, size, count) = (word(28)?, half(42)?, half(44)?);
    let mut flash = 0;
    for at in (0..count).map(|k| table + k * size) {
        if word(at)? != LOAD {
            continue;
        }
        // Read-only segments of an image without a memory map begin with the ELF header itself; it is not code.
        let header = if word(at + 4)? == 0 { table + count * size } else { 0 };
        flash += word(at + 16)?.saturating_sub(header);
    }
    Some(flash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_add_up() {
        let mut image = vec![0u8; 52 + 3 * 32];
        image[..6].copy_from_slice(b"\x7fELF\x01\x01");
        let mut put =
            |at: usize, value: usize| image[at..at + 4].copy_from_slice(&(value as u32).to_le_bytes());
        put(28, 52);
        put(42, 32 | 3 << 16);
        for (k, [kind, offset, in_file, in_memory]) in
            [[LOAD, 200, 1000, 1000], [LOAD, 1200, 24, 100], [7, 1224, 8, 8]].into_iter().enumerate()
        {
            for (field, value) in [kind, offset, 0, 0, in_file, in_memory].into_iter().enumerate() {
                put(52 + 32 * k + 4 * field, value);
            }
        }
        assert_eq!(parse(&image), Some(1024));
        assert_eq!(parse(b"\x7fELF\x02\x01"), None);
        assert_eq!(parse(&image[..80]), None);
    }
}
