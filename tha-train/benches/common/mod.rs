//! What the benchmarks share: CPU time, seeded problems and lagged rows.

#![allow(dead_code, reason = "each benchmark uses its part")]

use nalgebra::DMatrix;
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

/// Peak resident memory in MiB.
pub fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux keeps sizes in /proc");
    let line = status.lines().find(|line| line.starts_with("VmHWM")).expect("VmHWM is always there");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<f64>().ok()).expect("a number of KiB") / 1024.0
}

/// Seeded N(0, 1) deviates: xorshift and the sum of twelve uniforms.
pub struct Draws(pub u64);

impl Draws {
    /// The next deviate.
    pub fn draw(&mut self) -> f64 {
        let mut sum = -6.0;
        for _ in 0..12 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            sum += (self.0 >> 11) as f64 / (1u64 << 53) as f64;
        }
        sum
    }
}

/// Rows [1, u(t), u(t-1), ...] of independent inputs.
pub fn lagged(inputs: usize, memory: usize, rows: usize, draws: &mut Draws) -> DMatrix<f64> {
    let u: Vec<f64> = (0..inputs * (rows + memory)).map(|_| draws.draw()).collect();
    DMatrix::from_fn(rows, inputs * memory + 1, |t, i| match i {
        0 => 1.0,
        i => u[(t + memory - 1 - (i - 1) / inputs) * inputs + (i - 1) % inputs],
    })
}

/// A random network of independent normal entries, scaled so that its values are of order one.
pub fn network(q: usize, degree: usize, outputs: usize, rank: usize, draws: &mut Draws) -> Network {
    let mut train = Network::zeros(outputs, q, &vec![rank; degree - 1]);
    let scale = ((q * rank) as f64).sqrt().recip();
    train.cores.iter_mut().flat_map(|core| &mut core.data).for_each(|v| *v = scale * draws.draw());
    train
}
