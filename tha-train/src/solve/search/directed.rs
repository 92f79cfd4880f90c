//! Many inputs: starts on the few directions that the outputs are seen to depend on.
//!
//! There the search is a small problem. What it finds, descending in all directions, shows better which they are: its own
//! slices, and those in which its residual goes on. So rounds of both follow each other until nothing is gained.

use super::super::direct;
use super::super::directions::{self, Directions};
use super::super::entered::Entered;
use super::super::frame::change_slices;
use super::super::levenberg::Descent;
use super::super::rows::Rows;
use super::super::{Problem, SolveError, SolveParams};
use super::lower::{PACE, STEPS};
use super::{SMALL, Search, Source, Start, search};
use crate::network::{Network, dimension};
use nalgebra::DMatrix;

/// Rows in which directions are looked for, per dimension of the largest model.
const ROWS_PER_DIMENSION: usize = 50;
/// Monomials of few directions, at most, for which the direct solution is worth its cost.
const MONOMIALS: usize = 2000;
/// Starts in all directions at most for each kind of moments, and of the search on few.
const STARTS: usize = 6;
const RESTARTS: usize = 6;
/// Holds the directions back that are fitted to noise while the others are not yet found.
const RIDGE: f64 = 1e-2;
/// A round that leaves more of the loss than this gains nothing.
const GAIN: f64 = 0.7;

struct Directed {
    rows: (DMatrix<f64>, DMatrix<f64>),
    /// Directions at most.
    most: usize,
    turn: usize,
    /// What the second moments show, later the third, which are far more expensive.
    basis: Option<DMatrix<f64>>,
}

pub(super) fn open(search: &mut Search<'_, '_>) -> Option<Box<dyn Source>> {
    let (q, cap) = (search.q(), search.params.max_rank);
    let bonds = [&[search.outputs()], search.ranks(cap).as_slice(), &[1]].concat();
    let most: usize = bonds.windows(2).map(|b| b[0] * b[1]).sum();
    // Of quadratic networks random starts find nearly all.
    let suits = search.direct.is_none() && search.params.ranks.is_none() && search.params.degree > 2;
    if !suits || q < 2 * (most + directions::BEYOND) {
        return None;
    }
    let dimension = dimension(&search.ranks(cap), search.outputs(), q);
    let stride = (search.problem.y.len() / (ROWS_PER_DIMENSION * dimension)).max(1);
    let indices: Vec<usize> = (0..search.problem.x.nrows()).step_by(stride).collect();
    let rows = (search.problem.x.select_rows(&indices), search.problem.y.select_rows(&indices));
    Some(Box::new(Directed { rows, most, turn: 0, basis: None }))
}

impl Source for Directed {
    fn next(&mut self, search: &mut Search<'_, '_>) -> Result<Option<Start>, SolveError> {
        let rows = Problem { x: &self.rows.0, y: &self.rows.1 };
        if self.turn.is_multiple_of(STARTS) || self.basis.is_none() {
            let Some(directions) = Directions::new(&rows) else { return Ok(None) };
            let quadratic = || directions.quadratic(self.most);
            self.basis = if self.turn == 0 { quadratic() } else { None };
            if self.basis.is_none() && self.turn <= STARTS {
                self.turn = STARTS;
                self.basis = directions.cubic(self.most);
            }
        }
        let Some(mut basis) = self.basis.clone() else { return Ok(None) };
        self.turn += 1;
        let mut known = f64::INFINITY;
        loop {
            let mut descent = Descent::new(on_few(search, &rows, &basis)?);
            for ridge in [RIDGE, super::RIDGE] {
                for _ in 0..STEPS / 3 {
                    let before = descent.loss;
                    if descent.step(&search.sketch, ridge).is_none() || descent.loss > PACE * before {
                        break;
                    }
                }
            }
            let (network, loss) = (descent.network, descent.loss);
            if loss >= GAIN * known || search.exact(loss) {
                return Ok(Some(Start { network, vouched: true, widened: false }));
            }
            known = loss;
            basis = directions::of(&network);
            if loss > SMALL * search.sketch.square() {
                basis = directions::beyond(&rows, &network, &basis);
            }
        }
    }
}

/// The best network that sees x through the columns of `basis`.
fn on_few(
    outer: &mut Search<'_, '_>,
    rows: &Problem<'_>,
    basis: &DMatrix<f64>,
) -> Result<Network, SolveError> {
    let z = Entered::new(rows.x, basis);
    let few = Problem { x: &z, y: rows.y };
    let direct = direct::solution(&few, outer.params.degree, MONOMIALS);
    let rows = match direct.as_ref().and_then(|direct| direct.moments.as_ref()) {
        Some(moments) => Rows::condensed(moments),
        None => Rows::new(&few, 1),
    };
    outer.starts += 1;
    let seed = outer.params.seed.wrapping_add(outer.starts as u64);
    let params = SolveParams { restarts: RESTARTS, seed, ..outer.params.clone() };
    let candidates = search(&few, &rows, direct.as_ref(), &params, outer.log)?;
    let best = candidates.last().expect("a search has candidates");
    Ok(change_slices(&best.network, basis))
}
