//! What the benchmarks share: CPU time, seeded problems and lagged rows.

#![allow(dead_code, reason = "each benchmark uses its part")]

// The deviates of the library, which does not export them.
#[path = "../../src/network/random.rs"]
mod random;

pub mod recorded;

use nalgebra::DMatrix;
pub(crate) use random::Normal;
use tha_train::network::Network;

/// CPU seconds of all threads of this process so far.
pub fn cpu_seconds() -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux keeps times in /proc");
    let nanoseconds = tasks.filter_map(|task| {
        let text = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<f64>().ok()
    });
    nanoseconds.sum::<f64>() * 1e-9
}

/// Rows [1, u(t), u(t-1), ...] of independent inputs.
pub(crate) fn lagged(inputs: usize, memory: usize, rows: usize, normal: &mut Normal) -> DMatrix<f64> {
    let u: Vec<f64> = (0..inputs * (rows + memory)).map(|_| normal.draw()).collect();
    DMatrix::from_fn(rows, inputs * memory + 1, |t, i| match i {
        0 => 1.0,
        i => u[(t + memory - 1 - (i - 1) / inputs) * inputs + (i - 1) % inputs],
    })
}

/// A random network of independent normal entries, scaled so that its values are of order one.
pub(crate) fn network(q: usize, degree: usize, outputs: usize, rank: usize, normal: &mut Normal) -> Network {
    let mut network = Network::zeros(outputs, q, &vec![rank; degree - 1]);
    let scale = ((q * rank) as f64).sqrt().recip();
    network.cores.iter_mut().flat_map(|core| &mut core.data).for_each(|v| *v = scale * normal.draw());
    network
}
