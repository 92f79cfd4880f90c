//! A 64-bit fingerprint of a data set (FNV-1a over 64-bit words, with a final mix): it tells data sets apart in a
//! model's provenance; it is no protection against forgery.

use super::Dataset;

struct Fnv(u64);

impl Fnv {
    fn word(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        // A plain FNV over words never carries high bits down; one rotation does.
        self.0 = self.0.rotate_left(29);
    }

    fn text(&mut self, text: &str) {
        self.word(text.len() as u64);
        text.bytes().for_each(|byte| self.word(byte.into()));
    }
}

pub(super) fn fingerprint(data: &Dataset) -> u64 {
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    for (names, columns) in [(&data.inputs, &data.u), (&data.outputs, &data.y)] {
        hash.word(columns.len() as u64);
        names.iter().for_each(|name| hash.text(name));
        columns.iter().flatten().for_each(|value| hash.word(value.to_bits()));
    }
    data.records.iter().for_each(|record| hash.word(record.rows.end as u64));
    let mixed = (hash.0 ^ (hash.0 >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}
