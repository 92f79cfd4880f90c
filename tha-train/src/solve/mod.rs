//! Solvers: from rows x_t, y_t to the cores of a network.
//!
//! `choose` decides on blocks of rows what `fit` keeps: ranks, gamma, ridge, a prior over the lags. Both minimise
//! J = ||Y - Yhat||^2 + ridge ||B||^2 over networks of bounded rank, B the whole tensor over features of mean square gamma.
//! The other solvers are for comparison: MVMALS and ALS as published, and direct least squares over all monomials, cut to the
//! cap. Everything is deterministic: the same problem, options and seed give the same bits for any number of threads.

mod along;
mod als;
mod around;
mod canonical;
mod choose;
mod conjugate;
mod direct;
mod directions;
mod entered;
mod error;
mod exact;
mod frame;
mod gram;
mod held_out;
mod jacobian;
mod levenberg;
mod local;
mod log;
mod moments;
mod mvmals;
mod options;
mod path;
mod precondition;
mod quadratic;
mod quartic;
mod reduce;
mod rows;
mod search;
mod subspaces;

pub(crate) use along::{Course, Last, along};
pub use choose::{Choice, Settings};
pub(crate) use choose::{mean_and_error, simplest};
pub use error::SolveError;
pub(crate) use frame::carried;
pub(crate) use levenberg::EXPLICIT;
pub use log::{Step, StepKind};
pub(crate) use mvmals::step as super_core_step;
pub use options::{Decay, Ridge, SolveParams, Solver};
pub(crate) use rows::KEPT;
#[doc(hidden)]
pub use search::Rule;

use crate::data::BLOCKS;
use crate::network::{Features, Network, Normal, dimension};
use crate::progress::Progress;
use nalgebra::DMatrix;
use path::{Fitted, Part};
use rows::Rows;
use serde::{Deserialize, Serialize};

/// Rows that are enough for a choice: of more, every n-th is taken, spread over all of them; the fit takes all.
const ROWS: usize = 30_000;
const ROWS_PER_DIMENSION: usize = 30;

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
    pub network: Network,
    /// What it was fitted with.
    pub settings: Settings,
    /// Sweeps, or steps over all cores, of the final descent.
    pub sweeps: usize,
    /// ||Y - Yhat|| / ||Y|| on the fitted rows.
    pub train_residual: f64,
}

/// Chooses settings on blocks of the rows; `blocks` holds the number of the block of every row, from 0.
pub fn choose(
    problem: &Problem<'_>,
    blocks: &[usize],
    options: &SolveParams,
    progress: &dyn Progress,
) -> Result<Choice, SolveError> {
    options.check()?;
    problem.check()?;
    agree("blocks of rows", blocks.len(), problem.x.nrows())?;
    let ranks = options.start_ranks(problem, options.max_rank);
    let enough = (ROWS_PER_DIMENSION * dimension(&ranks, problem.y.ncols(), problem.x.ncols())).max(ROWS);
    let some: Vec<usize> = (0..blocks.len()).step_by((blocks.len() / enough).max(1)).collect();
    let labels: Vec<usize> = some.iter().map(|&row| blocks[row]).collect();
    let part = Part::new(problem, some);
    within_pool(|| choose::choose(&part.problem(), &labels, Run { options, progress }))
}

/// Fits settings to all rows, from a network that was fitted with them to others where there is one.
pub fn fit(
    problem: &Problem<'_>,
    settings: &Settings,
    from: Option<&Network>,
    options: &SolveParams,
    progress: &dyn Progress,
) -> Result<Fit, SolveError> {
    options.check()?;
    problem.check()?;
    if let Some(from) = from {
        agree("columns of x", problem.x.ncols(), from.q())?;
        agree("outputs of y", problem.y.ncols(), from.outputs())?;
    }
    let run = Run { options, progress };
    let (network, sweeps) = within_pool(|| match options.solver {
        _ if problem.y.iter().all(|y| *y == 0.0) => {
            Ok((Network::zeros(problem.y.ncols(), problem.x.ncols(), &settings.ranks), 0))
        }
        Solver::Ladder => choose::fit_settings(problem, settings, from, run),
        _ => published(problem, settings, run),
    })?;
    let norm = problem.y.norm();
    let error = (network.evaluate(problem.x) - problem.y).norm();
    let train_residual = if norm > 0.0 { error / norm } else { error };
    Ok(Fit { network, settings: settings.clone(), sweeps, train_residual })
}

/// Chooses on five contiguous parts of the rows, then fits all of them.
pub fn choose_and_fit(
    problem: &Problem<'_>,
    options: &SolveParams,
    progress: &dyn Progress,
) -> Result<Fit, SolveError> {
    let count = problem.x.nrows();
    let blocks: Vec<usize> = (0..count).map(|t| t * BLOCKS / count).collect();
    let choice = choose(problem, &blocks, options, progress)?;
    fit(problem, &choice.settings, choice.start(), options, progress)
}

/// What every step of a choice or a fit is done with.
#[derive(Clone, Copy)]
struct Run<'a> {
    options: &'a SolveParams,
    progress: &'a dyn Progress,
}

/// The solvers as published, on outputs of unit mean square.
fn published(
    problem: &Problem<'_>,
    settings: &Settings,
    run: Run<'_>,
) -> Result<(Network, usize), SolveError> {
    let options = run.options;
    let frame = Fitted::rows(problem).published_frame(settings, options)?;
    let (x, y) = frame.enter(problem);
    let inside = Problem { x: &x, y: &y };
    let ridge = settings.ridge;
    let (network, sweeps) = match options.solver {
        Solver::Mvmals => mvmals::fit(&inside, ridge, run)?,
        Solver::Als => alternate(&inside, ridge, run)?,
        _ => {
            let cap = settings.ranks.iter().max().copied().unwrap_or(1);
            let network =
                direct::System::new(&inside, options.degree)?.network(ridge, options.tolerance, cap)?;
            // Without a penalty the cut solution is a start for a descent; with one it stays what was chosen.
            if ridge == 0.0 { exact::polish(&inside, None, &network, run)? } else { (network, 1) }
        }
    };
    Ok((frame.leave(&network), sweeps))
}

/// Alternating least squares from random starts; the best of them.
fn alternate(problem: &Problem<'_>, ridge: f64, run: Run<'_>) -> Result<(Network, usize), SolveError> {
    let Run { options, progress } = run;
    let (q, outputs) = (problem.x.ncols(), problem.y.ncols());
    let ranks = options.start_ranks(problem, options.max_rank);
    let rows = Rows::new(problem, 1);
    let mut normal = Normal::new(options.seed);
    let mut best: Option<(f64, (Network, usize))> = None;
    for _ in 0..options.restarts {
        let mut network = Network::random(outputs, q, &ranks, &mut normal);
        let steps = als::sweeps(&mut network, &rows, ridge, options.sweeps, options.tolerance, progress)?;
        let loss = rows.loss(&network);
        if best.as_ref().is_none_or(|(b, _)| loss < *b) {
            best = Some((loss, (network, steps)));
        }
    }
    Ok(best.expect("at least one start").1)
}

/// Runs inside rayon's pool, so that the many small parallel loops need not wake it each time.
fn within_pool<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let mut result = None;
    rayon::scope(|_| result = Some(work()));
    result.expect("the scope has run")
}

impl Problem<'_> {
    fn check(&self) -> Result<(), SolveError> {
        self.check_all_but_x()?;
        match self.x.parts().find_map(|(start, x)| not_finite(&x).map(|row| start + row)) {
            Some(row) => Err(SolveError::NotFinite { matrix: "x", row }),
            None => Ok(()),
        }
    }

    /// Sizes and outputs. For callers that see in the moments of x whether it is finite: to make its rows costs time.
    fn check_all_but_x(&self) -> Result<(), SolveError> {
        let (rows, inputs, outputs) = (self.x.nrows(), self.x.ncols(), self.y.ncols());
        if rows == 0 || inputs == 0 || outputs == 0 {
            return Err(SolveError::Empty { rows, inputs, outputs });
        }
        agree("rows of y", self.y.nrows(), rows)?;
        match not_finite(self.y) {
            Some(row) => Err(SolveError::NotFinite { matrix: "y", row }),
            None => Ok(()),
        }
    }
}

/// The first row with an entry that is not a finite number.
fn not_finite(values: &DMatrix<f64>) -> Option<usize> {
    values.iter().position(|v| !v.is_finite()).map(|at| at % values.nrows())
}

fn agree(what: &'static str, found: usize, expected: usize) -> Result<(), SolveError> {
    if found == expected { Ok(()) } else { Err(SolveError::Shape { what, found, expected }) }
}
