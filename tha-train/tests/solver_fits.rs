//! The solvers on data whose law is known, and on data that are hardly any.

// The deviates of the library, which does not export them.
#[path = "../src/network/random.rs"]
mod random;

use nalgebra::DMatrix;
use random::Normal;
use std::sync::Mutex;
use tha_train::network::Network;
use tha_train::solve::{Problem, SolveError, SolveParams, Step, StepKind, choose_and_fit, fit};
use tha_train::{Decay, Event, Progress, Ridge, Silent, Solver};

fn rows(count: usize, q: usize, draws: &mut Normal) -> DMatrix<f64> {
    DMatrix::from_fn(count, q, |_, i| if i == 0 { 1.0 } else { draws.draw() })
}

fn network(outputs: usize, q: usize, ranks: &[usize], draws: &mut Normal) -> Network {
    let mut network = Network::zeros(outputs, q, ranks);
    network.cores.iter_mut().flat_map(|core| &mut core.data).for_each(|v| *v = 0.4 * draws.draw());
    network
}

/// Keeps every step.
#[derive(Default)]
struct Steps(Mutex<Vec<Step>>);

impl Progress for Steps {
    fn report(&self, event: &Event<'_>) {
        if let Event::Step(step) = event {
            self.0.lock().unwrap().push(Step::clone(step));
        }
    }
}

fn residual(network: &Network, x: &DMatrix<f64>, y: &DMatrix<f64>) -> f64 {
    (network.evaluate(x) - y).norm() / y.norm()
}

#[test]
fn the_ladder_finds_networks_of_rank_two_exactly() {
    for (seed, q, degree, outputs) in [(1, 6, 3, 1), (2, 9, 3, 1), (3, 9, 3, 2), (4, 17, 3, 1)] {
        exactly(seed, q, outputs, &vec![2; degree - 1], 4);
    }
}

#[test]
fn networks_whose_rank_is_the_cap_are_found_exactly() {
    for (seed, q, ranks) in [(1, 9, [4; 2].as_slice()), (2, 17, &[3; 2]), (3, 13, &[3; 3]), (4, 13, &[3; 3])]
    {
        exactly(seed, q, 1, ranks, ranks[0]);
    }
}

fn exactly(seed: u64, q: usize, outputs: usize, ranks: &[usize], max_rank: usize) {
    let mut draws = Normal::new(seed * 7919);
    let truth = network(outputs, q, ranks, &mut draws);
    let (x, fresh) = (rows(1000 * ranks.len() - 500, q, &mut draws), rows(500, q, &mut draws));
    let (y, wanted) = (truth.evaluate(&x), truth.evaluate(&fresh));
    let options = SolveParams { degree: ranks.len() + 1, max_rank, ..SolveParams::default() };
    let found = choose_and_fit(&Problem { x: &x, y: &y }, &options, &Silent).unwrap();
    assert!(residual(&found.network, &fresh, &wanted) < 1e-9, "seed {seed}: {}", found.train_residual);
    assert!(found.network.ranks().iter().all(|r| *r <= max_rank));
}

#[test]
fn noisy_data_give_the_true_rank_and_the_floor() {
    for (q, ranks, seed) in [(9, vec![3, 3], 4711), (7, vec![3, 3, 3], 4712), (7, vec![3, 3, 3], 4713)] {
        noisy(q, &ranks, seed);
    }
}

fn noisy(q: usize, ranks: &[usize], seed: u64) {
    let count = 2000;
    let mut draws = Normal::new(seed);
    let truth = network(1, q, ranks, &mut draws);
    let x = rows(count, q, &mut draws);
    let clean = truth.evaluate(&x);
    let noise = 0.01 * clean.norm() / (count as f64).sqrt();
    let y = clean.map(|v| v + noise * draws.draw());
    let options = SolveParams { degree: ranks.len() + 1, ..SolveParams::default() };
    let found = choose_and_fit(&Problem { x: &x, y: &y }, &options, &Silent).unwrap();
    let fresh = rows(1000, q, &mut draws);
    let error = residual(&found.network, &fresh, &truth.evaluate(&fresh));
    let floor = 0.01 * (truth.parameters() as f64 / count as f64).sqrt();
    assert_eq!(found.network.ranks(), ranks);
    assert!(error < 1.3 * floor, "{error} against a floor of {floor}");
}

#[test]
fn networks_of_many_inputs_are_found() {
    let (q, noise) = (121, 0.01);
    let mut draws = Normal::new(31);
    let (x, fresh) = (rows(7500, q, &mut draws), rows(1000, q, &mut draws));
    let mut truth = network(1, q, &[3, 3], &mut draws);
    let size = (truth.evaluate(&x).norm_squared() / 7500.0).sqrt();
    truth.scale(size.recip());
    let mut y = truth.evaluate(&x);
    y.apply(|v| *v += noise * draws.draw());
    let options = SolveParams { degree: 3, max_rank: 4, restarts: 1, ..SolveParams::default() };
    let found = choose_and_fit(&Problem { x: &x, y: &y }, &options, &Silent).unwrap();
    assert_eq!(found.network.ranks(), [3, 3]);
    let error = residual(&found.network, &fresh, &truth.evaluate(&fresh));
    assert!(error < noise, "{error}");
}

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    // The second is too large for normal equations: its steps are conjugate gradients.
    for (outputs, q, ranks, count) in [(2, 10, vec![2, 3], 1200), (1, 51, vec![4, 4], 2000)] {
        let mut draws = Normal::new(99);
        let truth = network(outputs, q, &ranks, &mut draws);
        let x = rows(count, q, &mut draws);
        let y = truth.evaluate(&x).map(|v| v + 0.05 * draws.draw());
        let options =
            SolveParams { restarts: 2, ridge: Ridge::Fixed(1e-3), sweeps: 5, ..SolveParams::default() };
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| choose_and_fit(&Problem { x: &x, y: &y }, &options, &Silent).unwrap().network)
        };
        assert_eq!(run(1), run(3));
    }
}

#[test]
fn theorem_5_holds_at_every_super_core() {
    for (outputs, count) in [(1, 400), (2, 400), (2, 25)] {
        let mut draws = Normal::new(31);
        let truth = network(outputs, 5, &[3, 3], &mut draws);
        let x = rows(count, 5, &mut draws);
        let y = truth.evaluate(&x).map(|v| v + 0.1 * draws.draw());
        let options =
            SolveParams { solver: Solver::Mvmals, max_rank: 2, sweeps: 3, ..SolveParams::default() };
        let (problem, steps) = (Problem { x: &x, y: &y }, Steps::default());
        let settings = choose_and_fit(&problem, &options, &Silent).unwrap().settings;
        fit(&problem, &settings, None, &options, &steps).unwrap();
        let steps = steps.0.into_inner().unwrap();
        assert!(steps.iter().all(|step| matches!(step.kind, StepKind::SuperCore(_))));
        for pair in steps.windows(2) {
            let realised = pair[0].loss - pair[1].loss;
            let predicted = pair[1].gain - pair[1].truncation;
            assert!((realised - predicted).abs() < 1e-8, "{realised} against {predicted}");
            assert!(pair[1].gain > -1e-9 && pair[1].truncation > -1e-12);
        }
    }
}

#[test]
fn uncapped_mvmals_and_direct_agree_with_least_squares() {
    let mut draws = Normal::new(5);
    let truth = network(1, 4, &[3, 3], &mut draws);
    let x = rows(300, 4, &mut draws);
    let y = truth.evaluate(&x).map(|v| v + 0.1 * draws.draw());
    let run = |solver| {
        let options =
            SolveParams { solver, max_rank: 50, ridge: Ridge::Fixed(0.0), ..SolveParams::default() };
        choose_and_fit(&Problem { x: &x, y: &y }, &options, &Silent).unwrap().train_residual
    };
    let (mvmals, direct) = (run(Solver::Mvmals), run(Solver::Direct));
    assert!((mvmals - direct).abs() < 1e-5 * direct, "{mvmals} against {direct}");
}

#[test]
fn steps_never_raise_the_loss() {
    let mut draws = Normal::new(8);
    let truth = network(1, 6, &[2, 2], &mut draws);
    let x = rows(300, 6, &mut draws);
    let y = truth.evaluate(&x).map(|v| v + 0.3 * draws.draw());
    let options = SolveParams { solver: Solver::Als, restarts: 1, max_rank: 2, ..SolveParams::default() };
    let (problem, steps) = (Problem { x: &x, y: &y }, Steps::default());
    let settings = choose_and_fit(&problem, &options, &Silent).unwrap().settings;
    fit(&problem, &settings, None, &options, &steps).unwrap();
    let steps = steps.0.into_inner().unwrap();
    assert!(steps.len() > 5 && steps.windows(2).all(|pair| pair[1].loss <= pair[0].loss * (1.0 + 1e-9)));
}

#[test]
fn degenerate_data_work_or_say_why_not() {
    let mut draws = Normal::new(3);
    let run = |x: &DMatrix<f64>, y: &DMatrix<f64>, options: &SolveParams| {
        choose_and_fit(&Problem { x, y }, options, &Silent)
    };
    let solvers = [Solver::Ladder, Solver::Mvmals, Solver::Als, Solver::Direct];
    for solver in solvers {
        let options = SolveParams { solver, restarts: 3, ..SolveParams::default() };
        // A constant column, a column of zeros and two equal ones.
        let mut x = rows(200, 7, &mut draws);
        x.column_mut(1).fill(2.0);
        x.column_mut(2).fill(0.0);
        let copy = x.column(4).into_owned();
        x.set_column(3, &copy);
        let y = DMatrix::from_fn(200, 1, |t, _| x[(t, 4)] * x[(t, 5)] + x[(t, 6)]);
        let found = run(&x, &y, &options).unwrap();
        assert!(residual(&found.network, &x, &y) < 1e-3, "{solver:?} {}", found.train_residual);
        // Fewer rows than unknowns, two outputs.
        let short = rows(12, 7, &mut draws);
        let two = DMatrix::from_fn(12, 2, |t, j| short[(t, 1 + j)]);
        assert!(run(&short, &two, &options).unwrap().train_residual.is_finite());
        // Linear, and a single column.
        let linear = SolveParams { degree: 1, ..options.clone() };
        let y = DMatrix::from_fn(200, 2, |t, j| 1.0 + x[(t, 5 + j)]);
        assert!(run(&x, &y, &linear).unwrap().train_residual < 1e-5, "{solver:?}");
        let one = DMatrix::from_element(20, 1, 1.0);
        assert!(run(&one, &DMatrix::from_element(20, 1, 3.0), &options).unwrap().train_residual < 1e-5);
        // Nothing to explain.
        let zero = run(&x, &DMatrix::zeros(200, 1), &options).unwrap();
        assert_eq!(zero.network.evaluate(&x).norm(), 0.0);
    }
    let options = SolveParams::default();
    let none = DMatrix::zeros(0, 3);
    assert!(matches!(run(&none, &DMatrix::zeros(0, 1), &options), Err(SolveError::Empty { .. })));
    let x = rows(5, 3, &mut draws);
    assert!(matches!(run(&x, &DMatrix::zeros(4, 1), &options), Err(SolveError::Shape { .. })));
    let nan = DMatrix::from_fn(5, 1, |t, _| if t == 3 { f64::NAN } else { 1.0 });
    assert_eq!(run(&x, &nan, &options).unwrap_err(), SolveError::NotFinite { matrix: "y", row: 3 });
}

/// y = z + 0.4 z^2 where z follows u through a filter that fades over 8 samples; windows of 40 lags.
fn fading(count: usize, noise: f64, draws: &mut Normal) -> (DMatrix<f64>, DMatrix<f64>) {
    const MEMORY: usize = 40;
    let u: Vec<f64> = (0..count + MEMORY).map(|_| draws.draw()).collect();
    let x = DMatrix::from_fn(count, MEMORY + 1, |t, i| if i == 0 { 1.0 } else { u[t + MEMORY - i] });
    let y = DMatrix::from_fn(count, 1, |t, _| {
        let z: f64 = (1..=MEMORY).map(|i| 0.4 * (-(i as f64) / 8.0).exp() * x[(t, i)]).sum();
        z + 0.4 * z * z + noise * draws.draw()
    });
    (x, y)
}

#[test]
fn a_prior_over_the_lags_helps_where_kernels_fade() {
    let mut draws = Normal::new(99);
    let (x, y) = fading(160, 0.1, &mut draws);
    let (fresh, wanted) = fading(500, 0.0, &mut draws);
    let rows = Problem { x: &x, y: &y };
    let options = SolveParams { degree: 2, max_rank: 2, restarts: 2, memory: 40, ..SolveParams::default() };
    let error = |decay| {
        let options = SolveParams { decay, ..options.clone() };
        let found = choose_and_fit(&rows, &options, &Silent).unwrap();
        let again = fit(&rows, &found.settings, Some(&found.network), &options, &Silent).unwrap();
        assert_eq!(again.settings, found.settings, "a refit keeps the prior");
        (residual(&again.network, &fresh, &wanted), found.settings.decay)
    };
    let (free, none) = error(Decay::None);
    let (chosen, some) = error(Decay::Auto);
    assert!(none.is_none() && some.is_some(), "{some:?}");
    assert!(chosen < 0.7 * free, "{chosen} with the prior, {free} without");
    for solver in [Solver::Als, Solver::Mvmals, Solver::Direct] {
        let ridge = Ridge::Fixed(1e-3);
        let given = SolveParams { solver, ridge, decay: Decay::Fixed(10.0), ..options.clone() };
        let found = choose_and_fit(&rows, &given, &Silent).unwrap();
        assert_eq!((found.settings.decay, found.network.q()), (Some(10.0), 41));
        assert!(residual(&found.network, &fresh, &wanted) < free, "{solver:?}");
    }
    let wrong = SolveParams { memory: 7, decay: Decay::Fixed(10.0), ..options };
    assert!(matches!(choose_and_fit(&rows, &wrong, &Silent), Err(SolveError::Shape { .. })));
}

#[test]
fn direct_chooses_a_penalty_and_a_refit_keeps_it() {
    let mut draws = Normal::new(7);
    let (x, y) = fading(160, 0.1, &mut draws);
    let (fresh, wanted) = fading(500, 0.0, &mut draws);
    let rows = Problem { x: &x, y: &y };
    let given = SolveParams {
        solver: Solver::Direct,
        degree: 2,
        max_rank: 6,
        memory: 40,
        decay: Decay::Fixed(10.0),
        ..SolveParams::default()
    };
    let found = choose_and_fit(&rows, &given, &Silent).unwrap();
    let free = SolveParams { ridge: Ridge::Fixed(0.0), ..given.clone() };
    let free = choose_and_fit(&rows, &free, &Silent).unwrap();
    let (chosen, free) =
        (residual(&found.network, &fresh, &wanted), residual(&free.network, &fresh, &wanted));
    let ridge = found.settings.ridge;
    assert!(ridge > 0.0 && chosen < 0.5 * free, "{chosen} at {ridge}, {free} without a penalty");
    let again = fit(&rows, &found.settings, Some(&found.network), &given, &Silent).unwrap();
    assert_eq!((&again.settings, &again.network), (&found.settings, &found.network));

    // Without noise there is next to nothing to penalise.
    let (x, truth) = (self::rows(400, 5, &mut draws), network(1, 5, &[2, 2], &mut draws));
    let y = truth.evaluate(&x);
    let fresh = self::rows(100, 5, &mut draws);
    let given = SolveParams { solver: Solver::Direct, ..SolveParams::default() };
    let found = choose_and_fit(&Problem { x: &x, y: &y }, &given, &Silent).unwrap();
    assert!(residual(&found.network, &fresh, &truth.evaluate(&fresh)) < 1e-10, "{:?}", found.settings);
}
