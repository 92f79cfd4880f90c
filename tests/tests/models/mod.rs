//! Random models of many shapes and policies.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use tha_core::build::{Core, Head, InputChannel, ModelSpec, OutputChannel, Provenance};
use tha_core::{NonFinitePolicy, RangePolicy};

/// A head on `inputs` with the ranks r_0, ..., r_d.
fn head(inputs: &[usize], memory: usize, ranks: &[usize], random: &mut ChaCha8Rng) -> Head {
    let q = inputs.len() * memory + 1;
    let core = |pair: &[usize]| {
        let data = (0..pair[0] * q * pair[1]).map(|_| random.random_range(-1.0..1.0)).collect();
        Core::new(pair[0], q, pair[1], data)
    };
    let cores = ranks.windows(2).map(core).collect();
    Head::from_cores(inputs.to_vec(), random.random_range(-1.0..1.0), cores)
}

fn spec(p: usize, memory: usize, heads: &[(&[usize], &[usize])], seed: u64) -> ModelSpec {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let input = |c: usize| InputChannel {
        name: format!("u{c}"),
        offset: 0.3 * c as f32 - 0.1,
        gain: 1.0 / (1.0 + c as f32),
        low: -1.5,
        high: 1.0 + c as f32,
    };
    let outputs = heads[0].1[0];
    let output = |j: usize| OutputChannel {
        name: format!("y{j}"),
        offset: 0.7 * j as f32,
        scale: 1.3 + j as f32,
        residual: 0.01,
    };
    ModelSpec {
        inputs: (0..p).map(input).collect(),
        outputs: (0..outputs).map(output).collect(),
        memory,
        stage: Default::default(),
        range: if seed.is_multiple_of(2) { RangePolicy::Pass } else { RangePolicy::Clamp },
        non_finite: if seed % 3 == 2 { NonFinitePolicy::Refuse } else { NonFinitePolicy::Hold },
        heads: heads.iter().map(|(inputs, ranks)| head(inputs, memory, ranks, &mut random)).collect(),
        provenance: Provenance { tool: "test */ \\".into(), ..Provenance::default() },
    }
}

/// Models and their files: one input and no memory, linear, cubic, several outputs, heads on subsets, both policies.
pub fn files() -> Vec<(ModelSpec, Vec<u8>)> {
    let specs = [
        spec(1, 1, &[(&[0], &[1, 1])], 0),
        spec(2, 3, &[(&[0, 1], &[2, 3, 1])], 1),
        spec(3, 2, &[(&[0, 2], &[1, 4, 5, 1]), (&[1], &[1, 2, 2, 1]), (&[0, 1, 2], &[1, 3, 3, 1])], 2),
        spec(5, 4, &[(&[0, 1, 4], &[3, 2, 8, 2, 1]), (&[1, 2, 3, 4], &[3, 4, 4, 7, 1])], 3),
        spec(4, 1, &[(&[0, 1, 2, 3], &[2, 2, 1]), (&[3], &[2, 9, 1])], 5),
    ];
    specs.into_iter().map(|spec| (spec.clone(), spec.to_bytes().expect("the shapes are valid"))).collect()
}
