//! Solvers: from rows x_t, y_t to the cores of a tensor train.
//!
//! All minimise J = ||Y - Yhat||^2 + ridge N l ||theta||^2 over trains of bounded rank; they differ in how. theta are the
//! coefficients of the cores, for [`Solver::Direct`] those of the tensor. The [`Solver::Ladder`] is the default, the others
//! are its rungs by themselves, for comparison. Everything is deterministic: the same problem, options and seed give the same
//! bits for any number of threads.

mod als;
mod conjugate;
mod count;
mod direct;
mod directions;
mod error;
mod frame;
mod ladder;
mod levenberg;
mod log;
mod moments;
mod mvmals;
mod normal;
mod options;
mod quartic;
mod reduce;
mod search;
mod subspaces;

pub use error::SolveError;
pub(crate) use levenberg::EXPLICIT;
pub use log::{Observer, Silent, Step, StepKind};
pub(crate) use mvmals::step as super_core_step;
pub(crate) use normal::KEPT;
pub use options::{Decay, Options, Ridge, Solver};

use crate::tt::{Features, Normal, TensorTrain};
use frame::Frame;
use ladder::Chosen;
use log::Log;
use nalgebra::DMatrix;
use normal::Rows;
use serde::{Deserialize, Serialize};

/// A prior over the lags must lower the validation residual by this part of it.
const WORTH: f64 = 0.01;

/// Penalties on the tensor that [`Solver::Direct`] tries.
const PENALTIES: [f64; 18] = [
    1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6, 3e-7, 1e-7, 3e-8, 1e-8, 1e-9, 1e-10,
    0.0,
];

/// Rows to fit: standardised, only the scored ones.
#[derive(Clone, Copy, Debug)]
pub struct Problem<'a> {
    /// N x q, the first column one.
    pub x: &'a dyn Features,
    /// N x l.
    pub y: &'a DMatrix<f64>,
}

/// A finished fit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fit {
    /// The network.
    pub train: TensorTrain,
    /// The ridge parameter it was fitted with.
    pub ridge: f64,
    /// The time constant of the prior over the lags, where there was one.
    pub decay: Option<f64>,
    /// Sweeps, or steps over all cores, of the final descent.
    pub sweeps: usize,
    /// ||Y - Yhat|| / ||Y|| on the fitted rows.
    pub train_residual: f64,
    /// The same on the validation rows.
    pub validation_residual: Option<f64>,
    /// Every step on the way; a checkpoint does not hold it.
    #[serde(skip)]
    pub log: Vec<Step>,
}

/// Fits a train to `train`, choosing rank, ridge and stopping on `validation` where it is given.
pub fn fit(
    train: &Problem,
    validation: Option<&Problem>,
    options: &Options,
    observer: &dyn Observer,
) -> Result<Fit, SolveError> {
    options.check()?;
    train.check()?;
    if let Some(validation) = validation {
        validation.check()?;
        agree("columns of the validation x", validation.x.ncols(), train.x.ncols())?;
        agree("outputs of the validation y", validation.y.ncols(), train.y.ncols())?;
    }
    if train.y.iter().all(|y| *y == 0.0) {
        let zero = TensorTrain::zeros(train.y.ncols(), train.x.ncols(), &vec![1; options.degree - 1]);
        let chosen = Chosen { train: zero, ridge: 0.0, steps: 0 };
        return Ok(finish(chosen, None, train, validation, Vec::new()));
    }
    let mut best: Option<Fit> = None;
    for decay in options.decays(validation.is_some()) {
        let fit = fit_fading(train, validation, decay, options, observer)?;
        let residual = |fit: &Fit| fit.validation_residual.unwrap_or(0.0);
        if best.as_ref().is_none_or(|best| residual(&fit) < (1.0 - WORTH) * residual(best)) {
            best = Some(fit);
        }
    }
    Ok(best.expect("at least no prior is tried"))
}

/// [`fit`] with a given prior over the lags.
fn fit_fading(
    train: &Problem,
    validation: Option<&Problem>,
    decay: Option<f64>,
    options: &Options,
    observer: &dyn Observer,
) -> Result<Fit, SolveError> {
    within_pool(|| {
        let frame = match (decay, options.solver) {
            (Some(tau), _) => Frame::fading(train, options.memory, tau)?,
            (None, Solver::Ladder) => Frame::new(train)?,
            (None, _) => Frame::plain(train),
        };
        let (x, y) = frame.enter(train);
        let problem = Problem { x: &x, y: &y };
        let judge = validation.map(|rows| frame.enter(rows));
        let judge = judge.as_ref().map(|(x, y)| Problem { x, y });
        let mut log = Log::new(observer);
        let chosen = match options.solver {
            Solver::Ladder => ladder::fit(&problem, judge.as_ref(), options, &mut log)?,
            Solver::Mvmals => mvmals::fit(&problem, options, fixed(options.ridge), &mut log)?,
            Solver::Als => alternate(&problem, options, &mut log)?,
            Solver::Direct => {
                let cap = options.ranks.as_ref().and_then(|r| r.iter().max().copied());
                let cap = cap.unwrap_or(options.max_rank);
                solve_directly(&problem, judge.as_ref(), options.ridge, cap, options, &mut log)?
            }
        };
        let chosen = Chosen { train: frame.leave(&chosen.train), ..chosen };
        Ok(finish(chosen, decay, train, validation, log.steps))
    })
}

/// Fits the structure of `fit` (ranks, ridge and prior) to other rows, starting from its network.
pub fn refit(
    train: &Problem,
    fit: &Fit,
    options: &Options,
    observer: &dyn Observer,
) -> Result<Fit, SolveError> {
    options.check()?;
    train.check()?;
    agree("columns of x", train.x.ncols(), fit.train.q())?;
    agree("outputs of y", train.y.ncols(), fit.train.outputs())?;
    if train.y.iter().all(|y| *y == 0.0) {
        return self::fit(train, None, options, observer);
    }
    within_pool(|| {
        let frame = match (fit.decay, options.solver) {
            (Some(tau), _) => Frame::fading(train, options.memory, tau)?,
            // Where the penalty was chosen.
            (None, Solver::Direct) => Frame::plain(train),
            (None, _) => Frame::new(train)?,
        };
        let (x, y) = frame.enter(train);
        let problem = Problem { x: &x, y: &y };
        let mut log = Log::new(observer);
        let start = frame.enter_train(&fit.train);
        let chosen = match options.solver {
            Solver::Direct => {
                let cap = fit.train.ranks().into_iter().max().unwrap_or(1);
                solve_directly(&problem, None, Ridge::Fixed(fit.ridge), cap, options, &mut log)?
            }
            _ => ladder::refit(start, &problem, fit.ridge, options, &mut log)?,
        };
        let chosen = Chosen { train: frame.leave(&chosen.train), ..chosen };
        Ok(finish(chosen, fit.decay, train, None, log.steps))
    })
}

/// Runs inside rayon's pool, so that the many small parallel loops need not wake it each time.
fn within_pool<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let mut result = None;
    rayon::scope(|_| result = Some(work()));
    result.expect("the scope has run")
}

fn alternate(problem: &Problem, options: &Options, log: &mut Log) -> Result<Chosen, SolveError> {
    let (q, outputs) = (problem.x.ncols(), problem.y.ncols());
    let ranks = options.start_ranks(outputs, q, options.max_rank);
    let rows = Rows::new(problem, 1);
    let ridge = fixed(options.ridge);
    let mut normal = Normal::new(options.seed);
    let mut best: Option<(f64, Chosen)> = None;
    for _ in 0..options.restarts {
        let mut train = TensorTrain::random(outputs, q, &ranks, &mut normal);
        let steps = als::sweeps(&mut train, &rows, ridge, options.sweeps, options.tolerance, log)?;
        let loss = rows.loss(&train);
        if best.as_ref().is_none_or(|(b, _)| loss < *b) {
            best = Some((loss, Chosen { train, ridge, steps }));
        }
    }
    Ok(best.expect("at least one start").1)
}

/// The direct solution, bonds cut at `cap`; the penalty chosen on `judge`.
///
/// Without a penalty the cut solution is a start for a descent. With one it stays as it is: the penalty of a descent is on the
/// cores, another and a weaker one than that on the tensor, and would undo what was chosen.
fn solve_directly(
    problem: &Problem,
    judge: Option<&Problem>,
    ridge: Ridge,
    cap: usize,
    options: &Options,
    log: &mut Log,
) -> Result<Chosen, SolveError> {
    let system = direct::System::new(problem, options.degree)?;
    let (ridges, judge) = match (ridge, judge) {
        (Ridge::Auto, Some(judge)) => (PENALTIES.as_slice(), judge),
        (ridge, _) => (&[fixed(ridge)] as &[f64], problem),
    };
    let rows = Rows::new(problem, 1);
    let mut best: Option<(f64, Chosen)> = None;
    for &ridge in ridges {
        let train = system.train(ridge, options.tolerance, cap)?;
        let loss = direct::relative_loss(&train, &rows);
        let (gain, ranks) = (1.0 - loss, train.ranks());
        log.record(Step { kind: StepKind::Direct, loss, gain, truncation: 0.0, ranks })?;
        let chosen = match ridge {
            0.0 => ladder::refit(train, problem, ridge, options, log)?,
            _ => Chosen { train, ridge, steps: 0 },
        };
        let score = (chosen.train.evaluate(judge.x) - judge.y).norm_squared();
        if best.as_ref().is_none_or(|(b, _)| score < *b) {
            best = Some((score, chosen));
        }
    }
    Ok(best.expect("at least one penalty").1)
}

fn fixed(ridge: Ridge) -> f64 {
    match ridge {
        Ridge::Auto => 0.0,
        Ridge::Fixed(ridge) => ridge,
    }
}

impl Problem<'_> {
    fn check(&self) -> Result<(), SolveError> {
        let (rows, inputs, outputs) = (self.x.nrows(), self.x.ncols(), self.y.ncols());
        if rows == 0 || inputs == 0 || outputs == 0 {
            return Err(SolveError::Empty { rows, inputs, outputs });
        }
        agree("rows of y", self.y.nrows(), rows)?;
        let bad =
            |values: &DMatrix<f64>| values.iter().position(|v| !v.is_finite()).map(|at| at % values.nrows());
        if let Some(row) = self.x.parts().find_map(|(start, x)| bad(&x).map(|row| start + row)) {
            return Err(SolveError::NotFinite { matrix: "x", row });
        }
        if let Some(row) = bad(self.y) {
            return Err(SolveError::NotFinite { matrix: "y", row });
        }
        Ok(())
    }
}

fn agree(what: &'static str, found: usize, expected: usize) -> Result<(), SolveError> {
    if found == expected { Ok(()) } else { Err(SolveError::Shape { what, found, expected }) }
}

fn finish(
    chosen: Chosen,
    decay: Option<f64>,
    train: &Problem,
    validation: Option<&Problem>,
    log: Vec<Step>,
) -> Fit {
    let Chosen { train: network, ridge, steps: sweeps } = chosen;
    let residual = |rows: &Problem| {
        let norm = rows.y.norm();
        let error = (network.evaluate(rows.x) - rows.y).norm();
        if norm > 0.0 { error / norm } else { error }
    };
    let (train_residual, validation_residual) = (residual(train), validation.map(residual));
    Fit { train: network, ridge, decay, sweeps, train_residual, validation_residual, log }
}
