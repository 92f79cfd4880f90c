//! Specification to bytes to specification, exactly, over random shapes.

mod common;

use common::{Dimensions, random_spec};
use proptest::prelude::*;
use tha_core::build::ModelSpec;

proptest! {
    #[test]
    fn nothing_is_lost(
        seed in any::<u64>(), inputs in 1usize..8, outputs in 1usize..4, memory in 1usize..6, degree in 1usize..6,
        heads in 1usize..5, max_rank in 1usize..12, note in "\\PC*",
    ) {
        let mut spec = random_spec(seed, Dimensions { inputs, outputs, memory, degree, heads, max_rank });
        spec.provenance.note = note;
        let bytes = spec.to_bytes().unwrap();
        let back = ModelSpec::from_bytes(&bytes).unwrap();
        prop_assert_eq!(&back, &spec);
        prop_assert_eq!(back.to_bytes().unwrap(), bytes);
    }
}
