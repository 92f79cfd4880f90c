//! A simulated resonator with a cubic spring: its resonance is found, and four resonators there predict it better than many
//! lags.

use nalgebra::{Complex, DMatrix};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use tha_core::RangePolicy;
use tha_train::internals::Split;
use tha_train::solve::{Problem, SolveParams, choose, fit};
use tha_train::stage::{Scaling, Stage, poles};
use tha_train::{Basis, Dataset, Metrics, Record, Silent};

/// Of the linear poles.
const MODULUS: f64 = 0.98;

/// Linear poles 0.98 exp(+-0.35 i), excited by uniform noise: y(t) = b y(t-1) - m2 y(t-2) + 0.1 u(t) - cubic y(t-1)^3.
fn resonator(samples: usize, cubic: f64, seed: u64) -> Dataset {
    let (modulus, angle) = (MODULUS, 0.35_f64);
    let (b, m2) = (2.0 * modulus * angle.cos(), modulus * modulus);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let (mut u, mut y) = (Vec::new(), vec![0.0, 0.0]);
    for t in 0..samples {
        u.push(random.random_range(-1.0..1.0));
        y.push(b * y[t + 1] - m2 * y[t] + 0.1 * u[t] - cubic * y[t + 1].powi(3));
    }
    Dataset::new("resonator", vec![u], vec![y[2..].to_vec()])
}

/// NRMSE on other rows of one network behind a basis.
fn error(train: &Dataset, test: &Dataset, basis: Basis, max_rank: usize) -> f64 {
    let history = basis.bank(1).unwrap().history();
    let rows = train.scored_rows(history + 1);
    let (blocks, scaling) = (Split::blocks(train, &rows), Scaling::from_rows(train, &rows).unwrap());
    let stage = Stage::fit(train, &rows, &scaling, &basis, None, RangePolicy::Clamp).unwrap();
    let samples = stage.clone().rows(train, rows);
    let problem = Problem { x: &samples, y: &samples.y };
    let memory = if let Basis::Lags(memory) = basis { memory } else { 0 };
    let options = SolveParams { degree: 3, max_rank, memory, ..SolveParams::default() };
    let chosen = choose(&problem, &blocks, &options, &Silent).unwrap();
    let network = fit(&problem, &chosen.settings, chosen.start(), &options, &Silent).unwrap().network;
    let samples = stage.rows(test, test.scored_rows(history + 1));
    let mut prediction: DMatrix<f64> = network.evaluate(&samples);
    scaling.restore(&mut prediction);
    Metrics::new(&test.outputs, &test.outputs_at(&samples.rows), &prediction).nrmse
}

fn found(data: &Dataset, order: usize) -> Vec<Complex<f64>> {
    poles(data, &[order]).unwrap().remove(0)
}

#[test]
fn poles_of_linear_resonators_are_found() {
    let data = resonator(4000, 0.0, 1);
    let poles = found(&data, 2);
    assert_eq!(poles.len(), 1);
    let expected = (MODULUS * 0.35_f64.cos(), MODULUS * 0.35_f64.sin());
    assert!((poles[0].re - expected.0).hypot(poles[0].im - expected.1) < 2e-3, "{}", poles[0]);
    // Two resonances in one output need four states.
    let (mut both, other) = (resonator(4000, 0.0, 1), 0.9_f64);
    let (mut last, mut before) = (0.0, 0.0);
    for (u, y) in both.u[0].iter().zip(&mut both.y[0]) {
        (last, before) = (2.0 * other * 1.2_f64.cos() * last - other * other * before + 0.1 * u, last);
        *y += last;
    }
    let poles = found(&both, 4);
    assert_eq!(poles.len(), 2, "{poles:?}");
    assert!((poles[0].re - expected.0).hypot(poles[0].im - expected.1) < 5e-3, "{poles:?}");
    assert!((poles[1].norm() - other).abs() < 5e-3 && (poles[1].arg() - 1.2).abs() < 5e-3, "{poles:?}");
    assert!(found(&resonator(300, 0.0, 1), 2).is_empty(), "too short to tell");
}

#[test]
fn resonances_that_ring_far_longer_than_any_window_are_found() {
    // Two modes with time constants of 1 000 and 400 samples, two inputs through a low-pass filter, 2 % noise, in three records.
    let modes = [(0.999_f64, 0.09_f64), (0.9975, 0.4)];
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let (mut u, mut y) = (vec![Vec::new(); 2], Vec::new());
    let mut starts = Vec::new();
    for record in 0..3 {
        starts.push(y.len());
        let mut slow = [0.0; 2];
        let mut states = [(0.0, 0.0); 2];
        for _ in 0..3000 + 100 * record {
            for (u, slow) in u.iter_mut().zip(&mut slow) {
                *slow += 0.5 * (random.random_range(-1.0..1.0) - *slow);
                u.push(*slow);
            }
            for ((last, before), (modulus, angle)) in states.iter_mut().zip(modes) {
                let fed = 2.0 * modulus * angle.cos() * *last - modulus * modulus * *before;
                (*last, *before) = (fed + slow[0] - 0.3 * slow[1], *last);
            }
            y.push(states[0].0 * 0.3 + states[1].0 + random.random_range(-1.0..1.0));
        }
    }
    let mut data = Dataset::new("modes", u, vec![y]);
    data.records = starts
        .iter()
        .zip(starts[1..].iter().chain([&data.len()]))
        .map(|(&start, &end)| Record { rows: start..end, ..data.records[0].clone() })
        .collect();
    let poles = found(&data, 4);
    assert_eq!(poles.len(), 2, "{poles:?}");
    for (pole, (modulus, angle)) in poles.iter().zip(modes) {
        let distance = (pole.re - modulus * angle.cos()).hypot(pole.im - modulus * angle.sin());
        assert!(distance < 0.2 * (1.0 - modulus), "{pole} for {modulus} at {angle}");
    }
}

#[test]
fn resonators_leave_a_third_of_what_sixty_lags_leave() {
    let (train, test) = (resonator(4000, 0.01, 1), resonator(2000, 0.01, 2));
    let pole = found(&train, 2)[0];
    let kautz = error(&train, &test, Basis::Kautz { re: pole.re, im: pole.im, count: 4 }, 5);
    let lags = error(&train, &test, Basis::Lags(60), 5);
    assert!(kautz < lags / 3.0, "resonators {kautz:.3}, lags {lags:.3}");
}
