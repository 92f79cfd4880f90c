//! Many inputs: starts on the few directions that the outputs are seen to depend on.
//!
//! There the race is a small problem. What it finds, descending in all directions, shows better which they are: its own
//! slices, and those in which its residual goes on. So rounds of both follow each other until nothing is gained.

use super::super::count::dimension;
use super::super::direct;
use super::super::directions::{self, Directions};
use super::super::entered::Entered;
use super::super::frame::change_slices;
use super::super::log::StepKind;
use super::super::normal::Rows;
use super::super::{Problem, SolveError, SolveParams};
use super::{Candidate, HASTY, SAME, SMALL, Track, race};
use crate::network::Network;
use nalgebra::DMatrix;
use std::ops::ControlFlow::{self, Break, Continue};

/// Rows in which directions are looked for, per dimension of the largest model.
const ROWS_PER_DIMENSION: usize = 50;
/// Monomials of few directions, at most, for which the direct solution is worth its cost.
const JUDGE: usize = 2000;
/// Starts in all directions at most, and of the race on few.
const STARTS: usize = 6;
const RESTARTS: usize = 6;
/// Holds the directions back that are fitted to noise while the others are not yet found.
const RIDGE: f64 = 1e-2;
/// So much larger than that of a rank more, a loss may still be that of the truth: the rank more fits noise.
const NEARLY: f64 = 4.0;
/// A round that leaves more of the loss than this gains nothing.
const GAIN: f64 = 0.7;

impl Track<'_, '_> {
    /// Starts on few directions until one is found to fit, with it as the break, or two agree.
    pub(super) fn start_from_directions(&mut self) -> Result<ControlFlow<Option<Candidate>>, SolveError> {
        let (q, cap) = (self.x.ncols(), self.options.max_rank);
        let bonds = [&[self.outputs], self.ranks(cap).as_slice(), &[1]].concat();
        let most: usize = bonds.windows(2).map(|b| b[0] * b[1]).sum();
        // Of quadratic networks random starts find nearly all.
        if q < 2 * (most + directions::BEYOND) || self.options.degree < 3 {
            return Ok(Continue(()));
        }
        let dimension = dimension(&self.ranks(cap), self.outputs, q);
        let stride = (self.problem.y.len() / (ROWS_PER_DIMENSION * dimension)).max(1);
        let indices: Vec<usize> = (0..self.problem.x.nrows()).step_by(stride).collect();
        let some = (stride > 1)
            .then(|| (self.problem.x.select_rows(&indices), self.problem.y.select_rows(&indices)));
        let rows = some.as_ref().map_or(*self.problem, |(x, y)| Problem { x, y });
        let Some(directions) = Directions::new(&rows) else { return Ok(Continue(())) };
        for find in [Directions::quadratic, Directions::cubic] {
            let Some(basis) = find(&directions, most) else { continue };
            let mut best = f64::INFINITY;
            for _ in 0..STARTS {
                let (candidate, found) = self.rounds(&rows, basis.clone())?;
                if found {
                    return Ok(Break(Some(candidate)));
                }
                if (candidate.loss - best).abs() < SAME * best {
                    return Ok(Break(None));
                }
                best = best.min(candidate.loss);
            }
        }
        Ok(Continue(()))
    }

    /// Rounds of races on few directions and descents in all. Tells whether the last candidate is found to fit.
    fn rounds(&mut self, rows: &Problem, mut basis: DMatrix<f64>) -> Result<(Candidate, bool), SolveError> {
        let mut known = f64::INFINITY;
        loop {
            let train = self.race_on(rows, &basis)?;
            let level = train.ranks().into_iter().max().unwrap_or(1);
            self.descent.restart(train);
            for _ in 0..HASTY.0 / 2 {
                let before = self.descent.loss;
                if self.descent.step(&self.sketch, RIDGE).is_none() || self.descent.loss > HASTY.1 * before {
                    break;
                }
            }
            let candidate = self.start(self.descent.train.clone(), level)?;
            let entries = self.sketch.entries();
            let freedom = entries.saturating_sub(candidate.dimension);
            let variance = candidate.loss / freedom.max(1) as f64;
            let found = 3 * freedom > entries && variance <= SMALL * self.sketch.square() / entries as f64;
            if candidate.loss >= GAIN * known || self.exact(candidate.loss) {
                let candidate = if found { self.found(candidate, level)? } else { candidate };
                return Ok((candidate, found));
            }
            known = candidate.loss;
            basis = directions::of(&candidate.train);
            if !found {
                basis = directions::beyond(rows, &candidate.train, &basis);
            }
        }
    }

    /// The candidate at the rank it needs. Lower ones that fit nearly as well are left among the best of their level.
    fn found(&mut self, candidate: Candidate, level: usize) -> Result<Candidate, SolveError> {
        let (candidate, _, reached) = self.lowered(candidate, level)?;
        let mut known = candidate.loss;
        for level in (2..reached).rev() {
            let near = self.best[level].as_ref().filter(|best| best.loss <= NEARLY * known);
            let Some(Candidate { train, loss, .. }) = near.cloned() else { break };
            known = loss;
            let Some(train) = self.reduced(&train, &self.ranks(level - 1)) else { break };
            self.descended(train, StepKind::Reduction, level - 1, HASTY)?;
        }
        Ok(candidate)
    }

    /// The best train that sees x through the columns of `basis`.
    fn race_on(&mut self, rows: &Problem, basis: &DMatrix<f64>) -> Result<Network, SolveError> {
        let z = Entered::new(rows.x, basis);
        let few = Problem { x: &z, y: rows.y };
        let judge = direct::judge(&few, self.options.degree, JUDGE);
        let rows = match judge.as_ref().and_then(|judge| judge.moments.as_ref()) {
            Some(moments) => Rows::condensed(moments),
            None => Rows::new(&few, 1),
        };
        let seed = self.options.seed.wrapping_add(self.starts as u64);
        let options = SolveParams { restarts: RESTARTS, seed, ..self.options.clone() };
        let race = race(&few, &rows, judge.as_ref(), &options, self.log)?;
        // While directions are missing, the residual is not noise and tells nothing of the rank.
        let told = judge.is_some_and(|judge| judge.variance <= SMALL);
        let best = if told { race.best() } else { race.candidates.last().expect("a race has candidates") };
        Ok(change_slices(&best.train, basis))
    }
}
