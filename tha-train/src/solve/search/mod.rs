//! The race: cheap starts on a sketch of the rows, each brought down in rank as far as its loss allows.
//!
//! At exactly the true rank the landscape is full of local minima; one rank above, most starts fit. So a start of rank
//! R descends a little, then every bond gives up the direction it can best spare ([`Spectrum`]) and the train descends
//! again, for as long as the residual variance stays compatible. A train that came down this way, or whose variance
//! is that of the direct least-squares solution, is at the global optimum for all that the data can tell, and the race
//! ends.

mod above;
mod ends;
mod few;
mod grown;

use super::als;
use super::count::{dimension, useful_ranks};
use super::direct::DirectFit;
use super::levenberg::Descent;
use super::log::{Log, Step, StepKind};
use super::normal::{NormalEquations, Rows};
use super::reduce::Spectrum;
use super::{Problem, SolveError, SolveParams};
use crate::network::{Network, Normal};
use nalgebra::DMatrix;
use std::ops::ControlFlow;

/// Rows of the sketch per dimension of the largest model tried.
const ROWS_PER_DIMENSION: f64 = 3.0;
/// Mean squared residual below which data count as free of noise.
const EXACT: f64 = 1e-16;
/// Keeps the gauge from drifting while the race lasts.
const RACE_RIDGE: f64 = 1e-13;
/// Degrees above this grow from rank one; of those above the second nothing else is tried.
const GROWN: usize = 4;
const LONG: usize = 6;
/// Relative squared residual beyond the accuracy of any measurement.
const NEGLIGIBLE: f64 = 1e-10;
/// Relative squared residual that local minima do not reach by misfit alone.
pub(super) const SMALL: f64 = 1e-3;
/// The direct solution confirms a rank if it has one dimension in so many more.
const TELLING: usize = 10;
/// Losses this close, relatively, are those of the same minimum.
const SAME: f64 = 0.02;
/// So many descents to the same minimum have found what there is to find.
const ENOUGH: usize = 3;
/// Steps of a descent at most, and the ratio of successive losses above which it ends.
const HASTY: (usize, f64) = (40, 0.98);
const PATIENT: (usize, f64) = (100, 0.999);

/// A train of the race and its squared residual on the sketch.
#[derive(Clone)]
pub(super) struct Candidate {
    pub(super) train: Network,
    pub(super) loss: f64,
    pub(super) dimension: usize,
}

/// What the race found.
pub(super) struct Race {
    /// The best candidate of each rank level seen, lowest rank first.
    pub(super) candidates: Vec<Candidate>,
    /// Values of the sketch.
    entries: usize,
}

impl Race {
    /// The candidate of the smallest residual variance, or a smaller one that is not worse than chance allows.
    pub(super) fn best(&self) -> &Candidate {
        let variance = |c: &Candidate| c.loss / self.entries.saturating_sub(c.dimension).max(1) as f64;
        let by_variance = |a: &&Candidate, b: &&Candidate| variance(a).total_cmp(&variance(b));
        let least = self.candidates.iter().min_by(by_variance).expect("a race has candidates");
        let spare = |c: &Candidate| chance(least.dimension.saturating_sub(c.dimension));
        let close = |c: &&Candidate| c.loss - least.loss <= variance(least) * spare(c);
        self.candidates.iter().find(close).unwrap_or(least)
    }
}

struct Track<'a, 'b> {
    problem: &'a Problem<'a>,
    sketch: Rows<'a>,
    x: DMatrix<f64>,
    y: DMatrix<f64>,
    all: &'a Rows<'a>,
    judge: Option<&'a DirectFit>,
    options: &'a SolveParams,
    descent: Descent,
    normal: NormalEquations,
    draws: Normal,
    outputs: usize,
    /// The best candidate of each rank level, and how many starts came that far.
    best: Vec<Option<Candidate>>,
    agreeing: Vec<usize>,
    starts: usize,
    log: &'a mut Log<'b>,
}

/// Races the starts on `problem`, whose rows are `all`.
pub(super) fn race<'a, 'b>(
    problem: &'a Problem<'a>,
    all: &'a Rows,
    judge: Option<&'a DirectFit>,
    options: &'a SolveParams,
    log: &'a mut Log<'b>,
) -> Result<Race, SolveError> {
    let (q, outputs, cap) = (problem.x.ncols(), problem.y.ncols(), options.max_rank);
    let most = dimension(&options.start_ranks(outputs, q, cap), outputs, q);
    let stride = ((problem.y.len() as f64 / (ROWS_PER_DIMENSION * most as f64)) as usize).max(1);
    let (mut sketch, x, y) = sampled(problem, stride);
    // Where all rows are condensed to no more than a third of the sketch, they are the sketch; also where noise or misfit
    // would mislead few rows.
    let few = judge.is_some_and(|judge| 3 * judge.dimension <= y.len() || judge.variance > SMALL);
    if few && all.are_condensed() {
        sketch = all.clone();
    }
    let mut track = Track {
        problem,
        sketch,
        x,
        y,
        all,
        judge,
        options,
        descent: Descent::new(Network::zeros(outputs, q, &[])),
        normal: NormalEquations::default(),
        draws: Normal::new(options.seed),
        outputs,
        best: vec![None; cap + 1],
        agreeing: vec![0; cap + 1],
        starts: 0,
        log,
    };
    let winner = track.run()?;
    let entries = track.sketch.entries();
    // Where nearly every polynomial has the rank below the cap, those that fit are many and none is likely to be true: the
    // direct solution itself is the better choice.
    if let Some(judge) = judge
        && track.arrived(cap)
    {
        for best in &mut track.best[..cap] {
            best.take_if(|candidate| !telling(judge, candidate.dimension));
        }
    }
    let candidates = match winner {
        // Without a judge the rank is not certain: a rank more fits noise better than its dimension tells.
        Some(winner) if judge.is_none() => {
            let level = winner.train.ranks().into_iter().max().unwrap_or(1);
            track.best.drain(..level).flatten().chain([winner]).collect()
        }
        Some(winner) => vec![winner],
        None => track.best.into_iter().flatten().collect(),
    };
    Ok(Race { candidates, entries })
}

impl Track<'_, '_> {
    /// Runs all starts; gives the candidate that ends the race early.
    fn run(&mut self) -> Result<Option<Candidate>, SolveError> {
        let cap = self.options.max_rank;
        if let Some(ranks) = &self.options.ranks {
            for _ in 0..self.options.restarts {
                let train = self.random(ranks);
                let candidate = self.start(train, cap)?;
                if self.as_good_as_any(&candidate, false) {
                    return Ok(Some(candidate));
                }
            }
            return Ok(None);
        }
        if let Some(judge) = self.judge {
            let winner = self.start_from_subspaces(judge)?;
            // Where even the direct solution misses a part, the rank has little to say: no more is spent on it.
            if winner.is_some() || judge.variance > SMALL && self.agreeing[cap] >= ENOUGH {
                return Ok(winner);
            }
        }
        if self.judge.is_none()
            && let ControlFlow::Break(winner) = self.start_from_directions()?
        {
            return Ok(winner);
        }
        if self.options.degree > GROWN {
            let winner = self.grow()?;
            if winner.is_some() || self.options.degree > LONG {
                return Ok(winner);
            }
        }
        let below = cap.saturating_sub(1).max(1);
        // A small cap leaves no room to come down from.
        let above = if cap < 3 { cap + 1 } else { cap };
        // Every rank has its turn, or where there are fewer starts than ranks, some from the lowest to the cap.
        let (low, turns) = (2.min(cap), self.options.restarts.min(below));
        let rising = (0..turns).map(|turn| low + turn * (cap - low) / (turns - 1).max(1));
        let schedule = rising.chain([above, cap, below].into_iter().cycle());
        for level in schedule.take(self.options.restarts) {
            let train = self.random(&self.ranks(level));
            if let Some(winner) = self.come_down(train, level)? {
                return Ok(Some(winner));
            }
            if self.judge.is_none() && self.agreeing[cap] > 1 && self.near(cap) {
                break;
            }
            // At the direct solution itself more starts can only make it smaller: a few are enough.
            if self.arrived(cap) && (self.starts >= self.options.restarts / 2 || self.matches(below, cap)) {
                break;
            }
        }
        let done = match self.judge {
            Some(judge) => judge.variance > SMALL || self.arrived(cap),
            None => self.near(cap),
        };
        if done {
            return Ok(None);
        }
        if let Some(winner) = self.start_above()? {
            return Ok(Some(winner));
        }
        // Many inputs make long plateaus, so the best start gets the time to cross them.
        if let Some(best) = self.best[cap].clone().filter(|_| self.judge.is_none()) {
            self.descended(best.train, StepKind::Start(self.starts), cap, PATIENT)?;
        }
        Ok(None)
    }

    fn ranks(&self, cap: usize) -> Vec<usize> {
        useful_ranks(self.options.degree, self.outputs, self.x.ncols(), cap)
    }

    /// A random train whose values are somewhat smaller than the outputs.
    fn random(&mut self, ranks: &[usize]) -> Network {
        let mut train = Network::random(self.outputs, self.x.ncols(), ranks, &mut self.draws);
        let values = train.evaluate(&self.x);
        let size = (values.norm_squared() / values.len() as f64).sqrt();
        train.scale(0.3 / size.max(f64::MIN_POSITIVE));
        train.equalize_norms();
        train
    }

    /// Descends from `train`, then reduces the rank for as long as the loss stays compatible.
    fn come_down(&mut self, train: Network, level: usize) -> Result<Option<Candidate>, SolveError> {
        let mut candidate = self.start(train, level)?;
        if self.nearly(&candidate) {
            // Not there yet, but too close to give up at the usual pace.
            candidate = self.descended(candidate.train, StepKind::Start(self.starts - 1), level, PATIENT)?;
        }
        let (candidate, from, reached) = self.lowered(candidate, level)?;
        // Coming down from a local minimum of a misfit proves nothing.
        let proven = reached < from && candidate.loss <= SMALL * self.sketch.square();
        if self.as_good_as_any(&candidate, proven)
            && (reached < level.max(self.options.max_rank)
                || self.exact(candidate.loss)
                || self.judge.is_some_and(|judge| judge.variance <= NEGLIGIBLE))
            && reached <= self.options.max_rank
        {
            return Ok(Some(candidate));
        }
        Ok(None)
    }

    /// Reduces the rank to the cap, and on for as long as the loss stays compatible; gives the level from which it was
    /// so and the level reached.
    fn lowered(
        &mut self,
        mut candidate: Candidate,
        level: usize,
    ) -> Result<(Candidate, usize, usize), SolveError> {
        let (mut from, mut reached) = (level, level);
        while reached > 1 {
            let Some(train) = self.reduced(&candidate.train, &self.ranks(reached - 1)) else { break };
            let lower = self.descended(train, StepKind::Reduction, reached - 1, HASTY)?;
            if !self.compatible(&lower, &candidate) {
                if reached <= self.options.max_rank {
                    break;
                }
                from = reached - 1;
            }
            candidate = lower;
            reached -= 1;
        }
        Ok((candidate, from, reached))
    }

    /// The best of a level is the direct solution, for all that the data can tell.
    fn arrived(&self, level: usize) -> bool {
        let (Some(best), Some(judge)) = (&self.best[level], self.judge) else { return false };
        let excess = (best.loss - judge.loss) / judge.variance.max(EXACT);
        self.sketch.are_condensed() && !telling(judge, best.dimension) && excess <= 1.0
    }

    /// The best of a level is no local minimum of a misfit.
    fn near(&self, level: usize) -> bool {
        self.best[level].as_ref().is_some_and(|best| best.loss <= SMALL * self.sketch.square())
    }

    /// The best of a lower level is as good as the best of a higher one.
    fn matches(&self, lower: usize, upper: usize) -> bool {
        let best = (&self.best[lower], &self.best[upper]);
        matches!(best, (Some(lower), Some(upper)) if self.compatible(lower, upper))
    }

    /// Within twice the noise of the direct solution, but not at it.
    fn nearly(&self, candidate: &Candidate) -> bool {
        self.judge.is_some_and(|judge| {
            let share = candidate.loss / self.sketch.entries() as f64 / judge.variance.max(EXACT);
            (1.1..4.0).contains(&share)
        })
    }

    fn start(&mut self, train: Network, level: usize) -> Result<Candidate, SolveError> {
        self.starts += 1;
        self.descended(train, StepKind::Start(self.starts - 1), level, HASTY)
    }

    /// The train cut to `ranks`, the cores in the middle refitted.
    fn reduced(&mut self, train: &Network, ranks: &[usize]) -> Option<Network> {
        let mut train = train.clone();
        for bond in (1..train.degree()).rev() {
            if ranks[bond - 1] < train.cores[bond].left {
                train = Spectrum::new(&train, bond, &self.x)?.cut(ranks[bond - 1]);
            }
        }
        for k in 1..train.degree().saturating_sub(1) {
            als::update(&mut train, k, &self.sketch, RACE_RIDGE, &mut self.normal);
        }
        train.balance();
        Some(train)
    }

    /// Descends on the sketch until the progress is slow.
    fn descended(
        &mut self,
        train: Network,
        kind: StepKind,
        level: usize,
        (steps, pace): (usize, f64),
    ) -> Result<Candidate, SolveError> {
        let ranks = train.ranks();
        let dimension = dimension(&ranks, self.outputs, self.x.ncols());
        // Where nearly every polynomial has the rank, small differences decide.
        let close = self.judge.is_some_and(|judge| !telling(judge, dimension));
        let (steps, pace) = if close { PATIENT } else { (steps, pace) };
        self.descent.restart(train);
        for step in 0..steps {
            let before = self.descent.loss;
            let moved = self.descent.step(&self.sketch, RACE_RIDGE);
            let slow = step > 6 && self.descent.loss > pace * before;
            if moved.is_none() || slow || self.exact(100.0 * self.descent.loss) {
                break;
            }
        }
        let (train, loss) = (self.descent.train.clone(), self.descent.loss);
        let candidate = Candidate { train, loss, dimension };
        if let Some(best) = self.best.get_mut(level) {
            let known = best.as_ref().map_or(f64::INFINITY, |b| b.loss);
            let agreeing = if candidate.loss < (1.0 - SAME) * known { 1 } else { self.agreeing[level] + 1 };
            if candidate.loss < (1.0 + SAME) * known {
                self.agreeing[level] = agreeing;
            }
            if candidate.loss < known {
                *best = Some(candidate.clone());
            }
        }
        let loss = loss / self.sketch.square();
        self.log.record(Step { kind, loss, gain: 0.0, truncation: 0.0, ranks })?;
        Ok(candidate)
    }

    fn exact(&self, loss: f64) -> bool {
        loss <= EXACT * self.sketch.entries() as f64
    }

    /// The smaller model is not worse than chance allows, on the sketch.
    fn compatible(&self, lower: &Candidate, upper: &Candidate) -> bool {
        let freedom = self.sketch.entries().saturating_sub(upper.dimension).max(1) as f64;
        let spare = upper.dimension.saturating_sub(lower.dimension);
        self.exact(lower.loss) || lower.loss - upper.loss <= upper.loss / freedom * chance(spare)
    }

    /// No other model can be expected to fit better: it has no residual, the direct solution is not better than chance
    /// allows, or it came down from above without a loss.
    fn as_good_as_any(&mut self, candidate: &Candidate, came_down: bool) -> bool {
        if self.exact(candidate.loss) {
            return true;
        }
        let Some(judge) = self.judge else { return came_down };
        let excess = |loss: f64| (loss - judge.loss) / judge.variance.max(EXACT);
        // Where nearly every polynomial has the rank, nearly every minimum passes: the lowest of all is taken.
        if !telling(judge, candidate.dimension) {
            return false;
        }
        let spare = chance(judge.dimension.saturating_sub(candidate.dimension));
        // The sketch is an optimist; only what passes there is worth all rows.
        if candidate.loss / self.sketch.entries() as f64 > 1.3 * judge.variance.max(EXACT) {
            return false;
        }
        self.descent.restart(candidate.train.clone());
        for _ in 0..10 {
            let before = self.descent.loss;
            if self.descent.step(self.all, RACE_RIDGE).is_none() || excess(self.descent.loss) <= spare {
                break;
            }
            if self.descent.loss > 0.9999 * before {
                break;
            }
        }
        excess(self.descent.loss) <= spare
    }
}

/// Every so many rows of a problem.
fn sampled<'a>(problem: &'a Problem, stride: usize) -> (Rows<'a>, DMatrix<f64>, DMatrix<f64>) {
    let indices: Vec<usize> = (0..problem.x.nrows()).step_by(stride).collect();
    (Rows::new(problem, stride), problem.x.select_rows(&indices), problem.y.select_rows(&indices))
}

/// The direct solution has enough dimensions more to tell a good fit from an accident.
fn telling(judge: &DirectFit, dimension: usize) -> bool {
    TELLING * judge.dimension.saturating_sub(dimension) >= judge.dimension
}

/// A sum of `count` squared standard normals hardly ever exceeds this: mean and three deviations.
fn chance(count: usize) -> f64 {
    count as f64 + 3.0 * (2.0 * count as f64).sqrt()
}
