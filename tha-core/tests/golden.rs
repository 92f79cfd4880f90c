//! Files whose bytes were worked out by hand from `FORMAT.md`: of format 1, which is read for ever, and of format 2, which is
//! also written.

mod common;

use common::staged::staged;
use common::{Room, crc32, parsed, patched};
use tha_core::build::{
    AlignedBytes, Core, Head, InputChannel, Interval, ModelSpec, OutputChannel, Provenance,
};
use tha_core::{Model, NonFinitePolicy, RangePolicy, push};

/// Two inputs, one output, M = 2, d = 2, one head on the second input with ranks 1, 2, 1.
fn small() -> ModelSpec {
    let input =
        |name: &str, offset, gain, low, high| InputChannel { name: name.into(), offset, gain, low, high };
    ModelSpec {
        inputs: vec![input("a", 0.0, 1.0, -1.0, 1.0), input("b", 1.0, 2.0, 0.0, 4.0)],
        outputs: vec![OutputChannel { name: "y".into(), offset: 10.0, scale: 0.25, residual: 0.5 }],
        memory: 2,
        stage: Default::default(),
        range: RangePolicy::Clamp,
        non_finite: NonFinitePolicy::Refuse,
        interval: None,
        heads: vec![Head::from_cores(
            vec![1],
            0.5,
            vec![
                Core::new(1, 3, 2, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
                Core::new(2, 3, 1, vec![7.0, 8.0, 9.0, 10.0, 11.0, 12.0]),
            ],
        )],
        provenance: Provenance { tool: "t".into(), seed: 7, data_hash: 300, note: "ok".into() },
    }
}

#[rustfmt::skip]
const SMALL: &[u8] = &[
    // header
    0x89, b'T', b'H', b'A',     // magic
    1, 0, 36, 0,                // format 1, header of 36 bytes
    0xb4, 0, 0, 0,              // file of 36 + 24 + 4 * 30 = 180 bytes
    0x9f, 0x3c, 0x28, 0x3c,     // CRC-32 of all other bytes
    21, 0, 0, 0,                // bytes of metadata
    30, 0, 0, 0,                // words in the block
    2, 0, 0, 0,                 // INPUTS: p = 2
    12, 0, 0, 0,                // HISTORY: 3 M p = 12
    11, 0, 0, 0,                // SCRATCH: 2 features + 4 sums + 2 * rank 2 + 1 output
    // metadata
    2, 1, 2, 2, 1,              // p, l, M, d, heads
    1, 1,                       // clamp, refuse
    3, b'a', b'\n', b'b',       // input names
    1, b'y',                    // output names
    1, b't',                    // tool
    7,                          // seed
    0xac, 0x02,                 // data hash 300
    2, b'o', b'k',              // note
    0, 0, 0,                    // padding to a multiple of four
];

/// The block as numbers: integers are words, the rest f32.
#[rustfmt::skip]
fn small_block() -> Vec<u8> {
    let float = |value: f32| value.to_le_bytes();
    let word = |value: u32| value.to_le_bytes();
    [
        float(0.0), float(1.0), float(-1.0), float(1.0),        // input a: offset, gain, low, high
        float(1.0), float(2.0), float(0.0), float(4.0),         // input b
        float(10.0), float(0.25), float(0.5),                   // output y: offset, scale, residual
        word(1), float(0.5), word(4),                           // head: one input, weight, 1 * 2 + 2 * 1 sums
        word(1), word(2), word(1),                              // ranks
        word(1),                                                // input b
        // One block of 4 sums: V2(0,i,0), V2(1,i,0), V1(0,i,0), V1(0,i,1), for i = 0, 1, 2.
        float(7.0), float(10.0), float(1.0), float(2.0),
        float(8.0), float(11.0), float(3.0), float(4.0),
        float(9.0), float(12.0), float(5.0), float(6.0),
    ].concat()
}

fn small_bytes() -> Vec<u8> {
    let mut bytes = SMALL.to_vec();
    bytes.extend(small_block());
    bytes
}

#[test]
fn the_small_file_is_what_the_specification_says() {
    assert_eq!(small_bytes().len(), 180);
    assert_eq!(
        crc32(&small_bytes()),
        u32::from_le_bytes([0x9f, 0x3c, 0x28, 0x3c]),
        "{:08x}",
        crc32(&small_bytes())
    );
    assert_eq!(ModelSpec::from_bytes(&small_bytes()).unwrap(), small());
    assert_eq!(
        std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/small.tha")).unwrap(),
        small_bytes()
    );
}

#[test]
fn the_small_file_computes_what_the_algebra_says() {
    let model = parsed(&small_bytes());
    let mut state = Room::new(&model).unwrap();
    push(&model, &mut state, &[0.0, 1.5]);
    let output = push(&model, &mut state, &[0.0, 5.0]).output().unwrap();
    // b is clamped from 5 to 4: x = [1, (4 - 1) 2, (1.5 - 1) 2] = [1, 6, 1].
    // V2(x) = [7 + 48 + 9, 10 + 66 + 12] = [64, 88]; V1(x) = [1 + 18 + 5, 2 + 24 + 6] = [24, 32].
    // y = 10 + 0.25 * 0.5 * (24 * 64 + 32 * 88) = 10 + 0.125 * 4352 = 554.
    assert_eq!(output.y, [554.0]);
    assert!(output.channels[1].above());
}

#[test]
fn names_and_provenance_are_borrowed_from_the_file() {
    let model = parsed(&small_bytes());
    assert_eq!(model.input_names().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(model.output_names().collect::<Vec<_>>(), ["y"]);
    let provenance = model.provenance();
    assert_eq!(
        (provenance.tool, provenance.seed, provenance.data_hash, provenance.note),
        ("t", 7, 300, "ok")
    );
    assert_eq!(model.macs(), 2 * 3 + 2 * 3);
    let head = model.heads().next().unwrap();
    assert_eq!(head.core(0).unwrap().get(0, 2, 1), Some(6.0));
    assert_eq!(head.core(1).unwrap().get(1, 0, 0), Some(10.0));
    assert!(head.core(1).unwrap().get(2, 0, 0).is_none() && head.core(2).is_none());
}

/// The bits of the outputs of the last of some samples.
fn last_output<const P: usize>(model: &Model<'_>, samples: u8, sample: impl Fn(f32) -> [f32; P]) -> Vec<u32> {
    let (mut state, mut last) = (Room::new(model).unwrap(), Vec::new());
    for t in 0..samples {
        let step = push(model, &mut state, &sample(f32::from(t)));
        last = step.output().map(|output| output.y.iter().map(|y| y.to_bits()).collect()).unwrap_or_default();
    }
    last
}

/// A larger file of the first release of this format: two heads, two outputs, ranks that use every block width.
/// It must parse, and give these outputs, for ever.
#[test]
fn a_file_of_the_first_release_still_reads() {
    let bytes = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/format1.tha")).unwrap();
    let model = parsed(&bytes);
    assert_eq!(model.checksum(), FORMAT1.0);
    assert_eq!(last_output(&model, 8, |t| [0.125 * t, -0.25 * t, 0.5 - 0.125 * t]), FORMAT1.1);
    // Written anew it is a file of format 2, with the same model in it.
    let spec = ModelSpec::from_bytes(&bytes).unwrap();
    let written = spec.to_bytes().unwrap();
    assert_eq!(written[4], 2);
    assert_eq!(ModelSpec::from_bytes(&written).unwrap(), spec);
}

/// The small model as format 2 writes it.
#[rustfmt::skip]
fn small_2() -> Vec<u8> {
    let float = |value: f32| value.to_le_bytes();
    let word = |value: u32| value.to_le_bytes();
    let header = [
        *b"\x89THA", [2, 0, 40, 0],        // format 2, header of 40 bytes
        word(210), [0x5e, 0x0d, 0x7d, 0xa9], // file of 40 + 16 + 4 * 35 + 14 bytes, CRC-32
        word(13), word(35),                 // bytes of description, words in the block
        word(2), word(12), word(7),         // INPUTS, HISTORY = 3 M p, SCRATCH = 2 features + 4 sums + 1 output
        word(14),                           // bytes behind the block
    ].concat();
    let description: &[u8] = &[
        0, 2, 1, 2, 1,      // f32; p, l, M, heads
        1, 1,               // clamp, refuse
        0, 0, 0, 0, 0, 0,   // no runs, features, maps, linear part; settled and felt as M says
        0, 0, 0,            // padding
    ];
    let block = [
        float(0.0), float(1.0), float(-1.0), float(1.0),
        float(1.0), float(2.0), float(0.0), float(4.0),
        float(10.0), float(0.25), float(0.5),
        word(1), word(0), word(1), word(2), word(0), word(4), word(3), // head: inputs, first output, outputs, degree, features, sums, rows
        word(1), word(2), word(1), word(1), float(0.5),               // ranks, input b, weight
        float(7.0), float(10.0), float(1.0), float(2.0),
        float(8.0), float(11.0), float(3.0), float(4.0),
        float(9.0), float(12.0), float(5.0), float(6.0),
    ].concat();
    let about: &[u8] = &[3, b'a', b'\n', b'b', 1, b'y', 1, b't', 7, 0xac, 0x02, 2, b'o', b'k'];
    [&header, description, &block, about].concat()
}

#[test]
fn the_small_file_in_format_2() {
    let bytes = small_2();
    assert_eq!(crc32(&bytes).to_le_bytes(), [0x5e, 0x0d, 0x7d, 0xa9]);
    assert_eq!(small().to_bytes().unwrap(), bytes);
    assert_eq!(ModelSpec::from_bytes(&bytes).unwrap(), small());
}

/// With an interval it is a file of format 3: one number more in the description, one word per output in the block.
#[test]
fn the_small_file_in_format_3() {
    let mut spec = small();
    spec.interval = Interval::from_residuals(0.9, [(1..=19).map(|k| 0.25 * f64::from(k))]);
    let two = small_2();
    let mut bytes = two[..40].to_vec();
    (bytes[4], bytes[8], bytes[16], bytes[20]) = (3, 214, 16, 36);
    bytes.extend(&two[40..53]);
    bytes.extend([0xa0, 0xf7, 0x36]); // 900 000 millionths
    bytes.extend(&two[56..56 + 4 * 11]);
    bytes.extend(4.5f32.to_le_bytes()); // the 18th of 19
    bytes.extend(&two[56 + 4 * 11..]);
    let checksum = crc32(&bytes).to_le_bytes();
    bytes[12..16].copy_from_slice(&checksum);
    assert_eq!(spec.to_bytes().unwrap(), bytes);
    assert_eq!(ModelSpec::from_bytes(&bytes).unwrap(), spec);
    assert_eq!(
        std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/format3.tha")).unwrap(),
        bytes
    );

    let model = parsed(&bytes);
    assert_eq!((model.coverage(), model.half_widths()), (0.9, &[4.5][..]));
    let mut state = Room::new(&model).unwrap();
    push(&model, &mut state, &[0.0, 1.5]);
    let output = push(&model, &mut state, &[0.0, 5.0]).output().unwrap();
    assert_eq!((output.y, output.half_widths), (&[554.0][..], &[4.5][..]));
}

/// A file of format 2 with filters, features, maps and a linear part: it must parse, and give these outputs, for ever.
/// THA_BLESS=1 writes it.
#[test]
fn a_file_with_filters_and_maps_still_reads() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/format2.tha");
    let seed = (0..).find(|&seed| staged(seed, 2, 2, 2).range == RangePolicy::Extend).unwrap();
    if std::env::var_os("THA_BLESS").is_some() {
        std::fs::write(path, staged(seed, 2, 2, 2).to_bytes().unwrap()).unwrap();
    }
    let bytes = std::fs::read(path).unwrap();
    assert_eq!(ModelSpec::from_bytes(&bytes).unwrap().to_bytes().unwrap(), bytes);
    assert_eq!(last_output(&parsed(&bytes), 100, |t| [0.01 * t, 1.0 - 0.02 * t]), FORMAT2);

    // Resonators of an earlier state of the format had five values each. They are refused, not misread.
    let description = u32::from_le_bytes(bytes[16..20].try_into().unwrap()).next_multiple_of(4) as usize;
    let third_run = 40 + description + 4 * (4 * 2 + 3 * 2 + 2 * 11);
    assert_eq!(bytes[third_run], 3);
    let old = patched(&bytes, |bytes| bytes[third_run] = 1);
    let refused = Model::parse(&AlignedBytes::new(&old)).unwrap_err();
    assert!(
        refused.to_string().contains("run 2") && refused.to_string().contains("fit the model again"),
        "{refused}"
    );
}

const FORMAT2: [u32; 2] = [0xbf49_d216, 0x3f8f_816d];
const FORMAT1: (u32, [u32; 2]) = (0xa6b7_7258, [0x3fdf_c395, 0x419d_0bc2]);
