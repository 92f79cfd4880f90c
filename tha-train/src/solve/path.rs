//! Paths: networks that follow the ridges from strong to weak, each fit starting where the last one ended.
//!
//! What the fits need of the rows without a block is prepared once for all settings: their second moments, and where the
//! monomials are few their moments up to twice the degree, which then stand for the rows as a quadratic form.

use super::canonical::{Effort, sweeps};
use super::choose::Settings;
use super::direct::{MONOMIALS, ROWS_PER_MONOMIAL};
use super::frame::{Frame, unit_of};
use super::gram::Sums;
use super::precondition::Covariance;
use super::quadratic::{Forms, Framed, Quadratic};
use super::rows::{KEPT, Rows};
use super::{Problem, SolveError, SolveParams};
use crate::linalg::{add_gram_lower, view, view_mut};
use crate::network::{Features, Network, Normal, monomials};
use crate::progress::Progress;
use nalgebra::DMatrix;
use std::sync::Arc;

/// The first fit of a path and those that follow it.
const FIRST: Effort = Effort { sweeps: 3, steps: 6 };
const NEXT: Effort = Effort { sweeps: 1, steps: 6 };

/// Some rows of a problem.
#[derive(Debug)]
pub(super) struct Part<'a> {
    x: &'a dyn Features,
    rows: Vec<usize>,
    pub(super) y: DMatrix<f64>,
}

impl<'a> Part<'a> {
    /// The given rows.
    pub(super) fn new(problem: &Problem<'a>, rows: Vec<usize>) -> Self {
        Self { x: problem.x, y: problem.y.select_rows(&rows), rows }
    }

    /// As a problem of its own.
    pub(super) fn problem(&self) -> Problem<'_> {
        Problem { x: self, y: &self.y }
    }
}

impl Features for Part<'_> {
    fn nrows(&self) -> usize {
        self.rows.len()
    }

    fn ncols(&self) -> usize {
        self.x.ncols()
    }

    fn select_rows(&self, rows: &[usize]) -> DMatrix<f64> {
        self.x.select_rows(&rows.iter().map(|&row| self.rows[row]).collect::<Vec<_>>())
    }

    fn rows(&self, start: usize, count: usize) -> DMatrix<f64> {
        self.x.select_rows(&self.rows[start..start + count])
    }
}

/// Rows to fit, and what all settings share of them.
pub(super) struct Fitted<'a> {
    pub(super) part: Part<'a>,
    /// X^T X.
    pub(super) second: DMatrix<f64>,
    pub(super) quadratic: Option<Quadratic>,
}

/// Rows to fit and rows held out, for every block.
pub(super) struct Blocks<'a> {
    pub(super) parts: Vec<(Fitted<'a>, Part<'a>)>,
}

impl<'a> Fitted<'a> {
    /// All rows of a problem, themselves.
    pub(super) fn rows(problem: &Problem<'a>) -> Self {
        let part = Part::new(problem, (0..problem.x.nrows()).collect());
        Self { second: second(&part), part, quadratic: None }
    }

    /// All rows of a problem, or the moments that stand for them.
    pub(super) fn all(problem: &Problem<'a>, degree: usize) -> Self {
        let mut fitted = Self::rows(problem);
        let forms = worthwhile(&fitted.part, degree);
        fitted.quadratic =
            forms.and_then(|forms| Quadratic::new(&forms, &forms.pairs.sums(&fitted.part.problem())));
        fitted
    }

    /// The relative squared residual of the direct solution, below which nothing of the degree fits, where it is known.
    pub(super) fn floor(&self) -> Option<f64> {
        self.quadratic.as_ref().map(Quadratic::floor)
    }

    /// The coordinates of the published solvers: the problem's own, unless there is a prior over the lags.
    pub(super) fn published_frame(
        &self,
        settings: &Settings,
        options: &SolveParams,
    ) -> Result<Frame, SolveError> {
        match settings.decay {
            Some(_) => self.frame(settings, options.memory),
            None => Ok(Frame::plain(&self.part.problem())),
        }
    }

    /// The coordinates in which the penalty is the norm of the tensor.
    pub(super) fn frame(&self, settings: &Settings, memory: usize) -> Result<Frame, SolveError> {
        Frame::of((&self.second, self.part.nrows(), unit_of(&self.part.y)), settings, memory)
    }
}

impl<'a> Blocks<'a> {
    /// Prepares the rows without each block.
    pub(super) fn new(problem: &Problem<'a>, blocks: &[usize], degree: usize) -> Self {
        let count = blocks.iter().max().map_or(0, |last| last + 1);
        let rows = |keep: &dyn Fn(usize) -> bool| -> Vec<usize> {
            (0..blocks.len()).filter(|&row| keep(blocks[row])).collect()
        };
        let held: Vec<Part<'_>> = (0..count).map(|k| Part::new(problem, rows(&|block| block == k))).collect();
        let seconds: Vec<DMatrix<f64>> = held.iter().map(second).collect();
        let fitted: Vec<Part<'_>> =
            (0..count).map(|k| Part::new(problem, rows(&|block| block != k))).collect();
        let forms = fitted.iter().min_by_key(|part| part.nrows()).and_then(|part| worthwhile(part, degree));
        let by_block: Option<(Arc<Forms>, Vec<Sums>)> = forms.map(|forms| {
            let by_block = held.iter().map(|part| forms.pairs.sums(&part.problem())).collect();
            (forms, by_block)
        });
        let others = |k: usize| (0..count).filter(move |&other| other != k);
        let parts = fitted.into_iter().zip(held).enumerate().map(|(k, (part, held))| {
            let mut second = DMatrix::zeros(problem.x.ncols(), problem.x.ncols());
            others(k).for_each(|other| second += &seconds[other]);
            // Sums over the others, and not the sum over all less this one: no bit of a block reaches its judge.
            let quadratic = by_block.as_ref().and_then(|(forms, by_block)| {
                let mut blocks = others(k).map(|other| &by_block[other]);
                let mut sum = blocks.next()?.clone();
                blocks.for_each(|block| sum.add(block));
                Quadratic::new(forms, &sum)
            });
            (Fitted { part, second, quadratic }, held)
        });
        Self { parts: parts.collect() }
    }
}

/// Quadratic forms in the coefficients of a polynomial, where those are few against the rows.
fn worthwhile(part: &Part<'_>, degree: usize) -> Option<Arc<Forms>> {
    let (q, rows) = (part.ncols(), part.nrows());
    let count = monomials(q, degree);
    (count <= MONOMIALS && rows >= ROWS_PER_MONOMIAL * count).then(|| Forms::new(q, degree))
}

/// X^T X.
fn second(part: &Part<'_>) -> DMatrix<f64> {
    let mut gram = DMatrix::zeros(part.ncols(), part.ncols());
    for (_, x) in (part as &dyn Features).parts() {
        add_gram_lower(view_mut(&mut gram), view(&x));
    }
    gram.fill_upper_triangle_with_lower_triangle();
    gram
}

/// A network on its way from strong to weak ridges.
pub(super) struct Path<'a> {
    frame: Frame,
    source: Source<'a>,
    covariance: Covariance,
    network: Network,
    effort: Effort,
}

/// What a path is fitted to, in its coordinates.
enum Source<'a> {
    Kept(Rows<'static>),
    /// Too many to keep: entered when they are read.
    Read(&'a Part<'a>),
    Quadratic(&'a Quadratic),
}

impl<'a> Path<'a> {
    /// One of so many, from a random network or from one that was fitted with these settings.
    pub(super) fn new(
        fitted: &'a Fitted<'_>,
        of: usize,
        settings: &Settings,
        options: &SolveParams,
        from: Option<&Network>,
    ) -> Result<Self, SolveError> {
        let (memory, seed) = (options.memory, options.seed);
        let frame = fitted.frame(settings, memory)?;
        let q = frame.map.ncols();
        let covariance = Covariance::new(&frame.second(&fitted.second))?;
        let source = match &fitted.quadratic {
            Some(quadratic) => Source::Quadratic(quadratic),
            // Of all blocks together.
            None if of * fitted.part.nrows() * q > 2 * KEPT => Source::Read(&fitted.part),
            None => {
                let (x, y) = frame.enter(&fitted.part.problem());
                Source::Kept(Rows::kept(&Problem { x: &x, y: &y }))
            }
        };
        let network = match from {
            Some(network) => frame.enter_network(network),
            None => Network::random(fitted.part.y.ncols(), q, &settings.ranks, &mut Normal::new(seed)),
        };
        Ok(Self { frame, source, covariance, network, effort: FIRST })
    }

    /// Fits with another ridge, as far as is needed on the way.
    pub(super) fn follow(&mut self, ridge: f64, progress: &dyn Progress) -> Result<(), SolveError> {
        self.descend(ridge, self.effort, progress)?;
        self.effort = NEXT;
        Ok(())
    }

    /// Fits with a ridge; gives the number of sweeps.
    pub(super) fn descend(
        &mut self,
        ridge: f64,
        effort: Effort,
        progress: &dyn Progress,
    ) -> Result<usize, SolveError> {
        match &self.source {
            Source::Kept(rows) => sweeps(&mut self.network, rows, &self.covariance, ridge, effort, progress),
            Source::Read(part) => {
                let (x, y) = self.frame.enter(&part.problem());
                let rows = Rows::read(&Problem { x: &x, y: &y });
                sweeps(&mut self.network, &rows, &self.covariance, ridge, effort, progress)
            }
            Source::Quadratic(quadratic) => {
                let framed = Framed { quadratic, frame: &self.frame };
                sweeps(&mut self.network, &framed, &self.covariance, ridge, effort, progress)
            }
        }
    }

    /// The network in the coordinates of the problem.
    pub(super) fn network(&self) -> Network {
        self.frame.leave(&self.network)
    }
}

/// Squared errors of a network on some rows, by output.
pub(super) fn squares(network: &Network, part: &Part<'_>) -> Vec<f64> {
    let error = network.evaluate(part) - &part.y;
    error.column_iter().map(|column| column.norm_squared()).collect()
}
