//! Every way in which a file can be wrong is refused, each with its own error, and every error says what to do.

mod common;

use common::{Dimensions, patched, random_spec};
use tha_core::build::{AlignedBytes, BuildError, Core, Interval, ModelSpec};
use tha_core::format::{FORMAT, HEADER_LEN};
use tha_core::{Model, ParseError, RangePolicy};

fn parse(bytes: &[u8]) -> Result<(), ParseError> {
    Model::parse(&AlignedBytes::new(bytes)).map(|_| ())
}

/// p = 2, l = 1, M = 2, d = 2, one head on both inputs with ranks 1, 3, 1.
fn spec() -> ModelSpec {
    let mut spec =
        random_spec(3, Dimensions { inputs: 2, outputs: 1, memory: 2, degree: 2, heads: 1, max_rank: 1 });
    spec.heads[0].inputs = vec![0, 1];
    spec.heads[0].cores = vec![Core::new(1, 5, 3, vec![0.5; 15]), Core::new(3, 5, 1, vec![0.25; 15])];
    spec
}

fn good() -> Vec<u8> {
    spec().to_bytes().unwrap()
}

fn set(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// Where the block starts.
fn block(bytes: &[u8]) -> usize {
    let metadata = u32::from_le_bytes(bytes[16..20].try_into().unwrap()) as usize;
    HEADER_LEN + metadata.next_multiple_of(4)
}

fn with_words(words: &[(usize, u32)]) -> Vec<u8> {
    patched(&good(), |bytes| {
        let start = block(bytes);
        words.iter().for_each(|&(word, value)| set(bytes, start + 4 * word, value));
    })
}

fn with_word(word: usize, value: u32) -> Vec<u8> {
    with_words(&[(word, value)])
}

/// Words: two inputs of 4, one output of 3, then the head: inputs, first output, outputs, degree, features, sums, rows, then
/// ranks 0 to 2, inputs 0 and 1, the weight, cores.
const HEAD: usize = 11;
const SUMS: usize = HEAD + 5;
const RANKS: usize = HEAD + 7;
const INPUTS: usize = RANKS + 3;
const WEIGHT: usize = INPUTS + 2;
const CORES: usize = WEIGHT + 1;

/// The bytes of a file with other metadata.
fn with_metadata(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    patched(&good(), |bytes| {
        let length = u32::from_le_bytes(bytes[16..20].try_into().unwrap()) as usize;
        let mut metadata = bytes[HEADER_LEN..HEADER_LEN + length].to_vec();
        let words = bytes[block(bytes)..].to_vec();
        change(&mut metadata);
        bytes.truncate(HEADER_LEN);
        bytes.extend(&metadata);
        bytes.resize(HEADER_LEN + metadata.len().next_multiple_of(4), 0);
        bytes.extend(words);
        let total = bytes.len() as u32;
        set(bytes, 8, total);
        set(bytes, 16, metadata.len() as u32);
    })
}

#[test]
fn lengths_and_header() {
    let good = good();
    let n = good.len();
    assert_eq!(parse(&good[..35]), Err(ParseError::TooShort { found: 35 }));
    assert_eq!(parse(&[]), Err(ParseError::TooShort { found: 0 }));
    assert_eq!(parse(&[b'u'; 100]), Err(ParseError::NotAModel));
    for cut in HEADER_LEN..n {
        assert_eq!(parse(&good[..cut]), Err(ParseError::Truncated { expected: n, found: cut }));
    }
    let longer = [&good[..], &[0]].concat();
    assert_eq!(parse(&longer), Err(ParseError::TrailingBytes { expected: n, found: n + 1 }));
    let newer = patched(&good, |bytes| bytes[4] = 5);
    assert_eq!(parse(&newer), Err(ParseError::NewerFormat { found: 5, supported: FORMAT }));
    assert!(parse(&newer).unwrap_err().to_string().starts_with("made by a newer format"));
    for (at, byte, format, length) in [(4, 0, 0, 40), (6, 36, 2, 36)] {
        let bytes = patched(&good, |bytes| bytes[at] = byte);
        assert_eq!(parse(&bytes), Err(ParseError::Header { format, length }));
    }
    for (at, value) in [(16, u32::MAX), (16, 0), (20, u32::MAX), (20, 0), (36, u32::MAX), (36, 0)] {
        let error = parse(&patched(&good, |bytes| set(bytes, at, value))).unwrap_err();
        assert!(matches!(error, ParseError::Lengths { .. }), "{error}");
    }
}

#[test]
fn every_flipped_bit_is_noticed() {
    let good = good();
    for bit in 0..8 * good.len() {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let error = parse(&bytes).unwrap_err();
        // Flips in magic and length are seen before the checksum is even looked at.
        let expected = match bit / 8 {
            0..4 => matches!(error, ParseError::NotAModel),
            8..12 => matches!(error, ParseError::Truncated { .. } | ParseError::TrailingBytes { .. }),
            _ => matches!(error, ParseError::Checksum { .. }),
        };
        assert!(expected, "bit {bit}: {error}");
    }
}

#[test]
fn alignment_is_asked_for() {
    let good = good();
    for shift in 1..4 {
        let shifted = AlignedBytes::new(&[&vec![0; shift][..], &good].concat());
        let error = Model::parse(&shifted[shift..]).unwrap_err();
        assert_eq!(error, ParseError::Unaligned);
        assert!(error.to_string().contains("include_model!"));
    }
}

#[test]
fn intervals() {
    let mut with = spec();
    with.interval = Interval::from_residuals(0.5, [[0.5]]);
    let good = with.to_bytes().unwrap();
    assert_eq!((parse(&good), good[4]), (Ok(()), 3));
    let bad = |value: f32| {
        patched(&good, |bytes| {
            let at = block(bytes) + 4 * HEAD;
            set(bytes, at, value.to_bits());
        })
    };
    assert_eq!(parse(&bad(-0.5)), Err(ParseError::Scaling { what: "output", channel: 0 }));
    let error = parse(&bad(f32::INFINITY)).unwrap_err();
    assert_eq!(error, ParseError::NonFinite { part: "interval", index: 0, word: HEAD });
    // 1 000 000 millionths, of three bytes as the 500 000 in the file.
    let certain = patched(&good, |bytes| {
        let at = HEADER_LEN + 13;
        bytes[at..at + 3].copy_from_slice(&[0xc0, 0x84, 0x3d]);
    });
    assert_eq!(parse(&certain), Err(ParseError::Metadata));
    // A file that says format 2 has no such field, one that says 3 must have it.
    let older = patched(&good, |bytes| bytes[4] = 2);
    assert_eq!(parse(&older), Err(ParseError::MetadataTrailing { extra: 3 }));
    assert_eq!(parse(&patched(&self::good(), |bytes| bytes[4] = 3)), Err(ParseError::Metadata));
    with.interval = Interval::from_residuals(0.5, [[0.5], [0.5]]);
    assert_eq!(with.to_bytes(), Err(BuildError::Interval { found: 2, outputs: 1 }));
}

#[test]
fn description() {
    assert_eq!(parse(&with_metadata(|m| m.extend([0]))), Err(ParseError::MetadataTrailing { extra: 1 }));
    assert_eq!(parse(&with_metadata(|m| m.truncate(5))), Err(ParseError::Metadata));
    // A range policy that does not exist.
    assert_eq!(parse(&with_metadata(|m| m[5] = 9)), Err(ParseError::Metadata));
    assert_eq!(parse(&with_metadata(|m| m[0] = 1)), Err(ParseError::Numbers { found: 1 }));
    for (at, what) in ["inputs", "outputs", "memory", "heads"].into_iter().enumerate() {
        assert_eq!(parse(&with_metadata(|m| m[1 + at] = 0)), Err(ParseError::Zero { what }));
    }
    let padded = with_metadata(|m| m.extend([0; 4].iter().take(5 - m.len() % 4)));
    assert!(parse(&padded).is_err());
    let dirty = patched(&good(), |bytes| {
        let at = block(bytes) - 1;
        bytes[at] = 1;
    });
    assert_eq!(parse(&dirty), Err(ParseError::Padding));
}

/// Names and provenance are none of the device's business, but a host that reads them says what is wrong.
#[test]
fn about() {
    let changed = |change: &dyn Fn(&mut [u8])| {
        patched(&good(), |bytes| {
            let length = u32::from_le_bytes(bytes[36..40].try_into().unwrap()) as usize;
            let start = bytes.len() - length;
            change(&mut bytes[start..]);
        })
    };
    // 5 u0\nu1 2 y0 4 test ...
    for (at, byte, expected) in [
        (1, 0xff, ParseError::Metadata),
        (3, b'x', ParseError::Names { what: "input", expected: 2, found: 1 }),
        (7, b'\n', ParseError::Names { what: "output", expected: 1, found: 2 }),
        (0, 250, ParseError::Metadata),
    ] {
        let bytes = changed(&|about| about[at] = byte);
        assert_eq!(parse(&bytes), Ok(()));
        assert_eq!(ModelSpec::from_bytes(&bytes), Err(expected), "byte {at}");
    }
}

#[test]
fn scaling() {
    let inputs = [(1, 0.0f32), (1, -1.0), (2, 100.0), (3, f32::NEG_INFINITY)];
    let outputs = [(8, f32::NAN), (9, f32::INFINITY), (9, 0.0), (10, -1.0)];
    for (word, value) in (0..8).map(|word| (word, f32::NAN)).chain(inputs).chain(outputs) {
        let (what, channel) = if word < 8 { ("input", word / 4) } else { ("output", 0) };
        let refused = Err(ParseError::Scaling { what, channel });
        assert_eq!(parse(&with_word(word, value.to_bits())), refused, "{value} at {word}");
    }
}

#[test]
fn heads() {
    let infinite = f32::INFINITY.to_bits();
    let non_finite = |word| ParseError::NonFinite { part: "head", index: 0, word };
    for (word, value, error) in [
        (HEAD, 0, ParseError::SubsetSize { head: 0, found: 0, inputs: 2 }),
        (HEAD, 3, ParseError::SubsetSize { head: 0, found: 3, inputs: 2 }),
        (WEIGHT, infinite, non_finite(WEIGHT)),
        (HEAD + 1, 1, ParseError::Served { head: 0, outputs: 1 }),
        (HEAD + 1, u32::MAX, ParseError::Served { head: 0, outputs: 1 }),
        (HEAD + 2, 0, ParseError::Served { head: 0, outputs: 1 }),
        (HEAD + 2, 2, ParseError::Served { head: 0, outputs: 1 }),
        (HEAD + 3, 0, ParseError::Zero { what: "degree" }),
        (SUMS, 7, ParseError::Sums { head: 0, expected: 6, found: 7 }),
        (SUMS + 1, 6, ParseError::Sums { head: 0, expected: 6, found: 6 }),
        (RANKS, 0, ParseError::RankZero { head: 0, bond: 0 }),
        (RANKS + 1, 0, ParseError::RankZero { head: 0, bond: 1 }),
        (RANKS + 2, 0, ParseError::RankZero { head: 0, bond: 2 }),
        (RANKS, 2, ParseError::RankChain { head: 0, bond: 0, expected: 1, found: 2 }),
        (RANKS + 2, 2, ParseError::RankChain { head: 0, bond: 2, expected: 1, found: 2 }),
        (INPUTS + 1, 2, ParseError::SubsetRange { head: 0, input: 2, inputs: 2 }),
        (INPUTS + 1, 0, ParseError::SubsetOrder { head: 0, position: 1 }),
        (CORES + 7, infinite, non_finite(CORES + 7)),
    ] {
        assert_eq!(parse(&with_word(word, value)), Err(error), "{value} at {word}");
    }
}

#[test]
fn sizes() {
    // A rank of 4 needs 8 sums; the block ends before them.
    let larger = with_words(&[(RANKS + 1, 4), (SUMS, 8)]);
    assert_eq!(parse(&larger), Err(ParseError::BlockTooShort { needed: CORES + 40, found: CORES + 30 }));
    let smaller = with_words(&[(RANKS + 1, 2), (SUMS, 4)]);
    assert_eq!(parse(&smaller), Err(ParseError::BlockTooLong { used: CORES + 20, found: CORES + 30 }));
    let huge = with_word(RANKS + 1, u32::MAX);
    assert_eq!(parse(&huge), Err(ParseError::SizeOverflow));
    for at in [24, 28, 32] {
        let error = parse(&patched(&good(), |bytes| bytes[at] ^= 1)).unwrap_err();
        assert!(matches!(error, ParseError::Capacities { .. }), "{error}");
    }
    let error = parse(&with_word(HEAD + 3, 3)).unwrap_err();
    assert!(
        matches!(error, ParseError::RankZero { bond: 3, .. }),
        "a degree of three takes an input for a rank: {error}"
    );
}

#[test]
fn what_cannot_be_built() {
    let refuse = |change: &dyn Fn(&mut ModelSpec)| {
        let mut spec = spec();
        change(&mut spec);
        spec.to_bytes().unwrap_err()
    };
    assert!(matches!(refuse(&|s| s.heads.clear()), BuildError::Size { what: "heads", found: 0, .. }));
    assert!(matches!(refuse(&|s| s.memory = 70_000), BuildError::Size { .. }));
    assert!(matches!(refuse(&|s| s.heads[0].cores.clear()), BuildError::Size { found: 0, .. }));
    assert!(matches!(refuse(&|s| s.heads[0].weights.clear()), BuildError::Weights { found: 0, .. }));
    assert!(matches!(refuse(&|s| s.range = RangePolicy::Extend), BuildError::NothingToExtend));
    assert!(matches!(refuse(&|s| s.heads[0].cores[1].left = 2), BuildError::CoreShape { core: 1, .. }));
    assert!(matches!(refuse(&|s| s.heads[0].cores[1].q = 4), BuildError::CoreShape { core: 1, .. }));
    assert!(matches!(refuse(&|s| s.heads[0].cores[1].right = 2), BuildError::CoreShape { core: 1, .. }));
    assert!(matches!(refuse(&|s| s.memory = 3), BuildError::CoreShape { .. }));
    assert!(matches!(
        refuse(&|s| s.heads[0].cores[0].data.truncate(3)),
        BuildError::CoreLength { found: 3, .. }
    ));
    assert!(matches!(refuse(&|s| s.inputs[0].name = "a\nb".into()), BuildError::Name(_)));
    let refused = |change: &dyn Fn(&mut ModelSpec)| match refuse(change) {
        BuildError::Refused(error) => error,
        other => panic!("{other}"),
    };
    assert!(matches!(refused(&|s| s.heads[0].inputs = vec![1, 0]), ParseError::SubsetOrder { .. }));
    assert!(matches!(refused(&|s| s.heads[0].inputs = vec![0, 2]), ParseError::SubsetRange { .. }));
    assert!(matches!(refused(&|s| s.heads[0].weights[0] = f32::NAN), ParseError::NonFinite { .. }));
    assert!(matches!(refused(&|s| s.inputs[1].gain = 0.0), ParseError::Scaling { .. }));
}
