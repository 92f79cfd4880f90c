//! Many inputs: starts on the few directions that the outputs are seen to depend on.
//!
//! There the search is a small problem. It looks for a network one rank above the cap, where local minima are fewer; the
//! residual of that network shows directions beyond its own, in which it goes on descending for as long as that pays. A
//! network at the cap, searched for in the most important directions, then descends in all of them.

use super::super::direct;
use super::super::directions::{self, Directions};
use super::super::frame::change_slices;
use super::super::levenberg::Descent;
use super::super::rows::Rows;
use super::super::{Problem, Run, SolveError, SolveParams};
use super::lower::{FAR, STEPS};
use super::{Rule, SMALL, Search, Source, Start, search};
use crate::linalg::product;
use crate::network::{Network, dimension};
use nalgebra::DMatrix;

/// Columns of x for each direction of a network at the cap from which they are many: random starts take 3.8 CPU s at 25 inputs and
/// 18.7 at 50, these 6.6 and 8.4 (ablation benchmark); 100 inputs random starts do not find.
const MANY: usize = 4;
/// Rows in which directions are looked for, per dimension of the largest model.
const ROWS_PER_DIMENSION: usize = 50;
/// Monomials of few directions, at most, for which the direct solution is worth its cost.
const MONOMIALS: usize = 2000;
/// Starts at most for each kind of moments, and of each search on few directions; and of the one at the cap where much is left: there the
/// least loss arrives (200 inputs: with 6 that end once two agree, the first start fails on two of four seeds).
const STARTS: usize = 6;
const THOROUGH: usize = 12;
/// Searches above the cap for a start, while much is left; how often the directions of each grow, and steps each time.
const ROUNDS: usize = 3;
const GROWTHS: usize = 12;
const GROWING: usize = 10;
/// Directions beyond those of a network at the cap that a search on few sees.
const SPARE: usize = 2;
/// A growth, and a step of a descent, that leave more of the loss than this gain nothing.
const GAIN: f64 = 0.98;
const PACE: f64 = 0.97;

struct Directed {
    /// Every n-th row, where all are too many.
    rows: Option<(DMatrix<f64>, DMatrix<f64>)>,
    /// Directions of a network at the cap.
    most: usize,
    turn: usize,
    /// What the second moments show, later the third, which are far more expensive.
    basis: Option<DMatrix<f64>>,
}

pub(super) fn open(search: &mut Search<'_>) -> Option<Box<dyn Source>> {
    let (q, cap) = (search.q(), search.params.max_rank);
    let bonds = [&[search.outputs()], search.ranks(cap).as_slice(), &[1]].concat();
    let most: usize = bonds.windows(2).map(|b| b[0] * b[1]).sum();
    // Of quadratic networks random starts find nearly all.
    let suits = search.direct.is_none() && search.params.ranks.is_none() && search.params.degree > 2;
    if !suits || q < MANY * (most + 5) {
        return None;
    }
    let size = dimension(&search.ranks(cap), search.outputs(), q);
    let stride = (search.problem.y.len() / (ROWS_PER_DIMENSION * size)).max(1);
    let rows = (stride > 1).then(|| {
        let indices: Vec<usize> = (0..search.problem.x.nrows()).step_by(stride).collect();
        (search.problem.x.select_rows(&indices), search.problem.y.select_rows(&indices))
    });
    Some(Box::new(Directed { rows, most, turn: 0, basis: None }))
}

impl Source for Directed {
    fn next(&mut self, search: &mut Search<'_>) -> Result<Option<Start>, SolveError> {
        let rows = self.rows.as_ref().map_or(*search.problem, |(x, y)| Problem { x, y });
        if self.turn.is_multiple_of(STARTS) || self.basis.is_none() {
            let Some(directions) = Directions::new(&rows) else { return Ok(None) };
            let quadratic = || directions.quadratic(self.most);
            self.basis = if self.turn == 0 { quadratic() } else { None };
            if self.basis.is_none() && self.turn <= STARTS {
                self.turn = STARTS;
                self.basis = directions.cubic(self.most);
            }
        }
        let Some(mut basis) = self.basis.take() else { return Ok(None) };
        self.turn += 1;
        let cap = search.params.max_rank;
        let mut far = true;
        for _ in 0..ROUNDS {
            let above = cap + usize::from(search.has(Rule::Above));
            let mut found = on_few(search, &rows, &basis, above, false)?;
            let Some((important, left)) = grow(search, &rows, &mut found, &mut basis, self.most) else {
                return Ok(None);
            };
            let constant = DMatrix::identity(search.q(), 1);
            let count = (self.most + SPARE).min(important.ncols());
            basis = directions::joined(&constant, &important.columns(0, count).into_owned());
            far = left > FAR;
            if !far {
                break;
            }
        }
        let mut found = on_few(search, &rows, &basis, cap, far)?;
        self.basis = Some(basis.clone());
        if far && grow(search, &rows, &mut found, &mut basis, self.most).is_none() {
            return Ok(None);
        }
        let mut descent = Descent::new(change_slices(&found, &basis));
        descend(&mut descent, &search.sketch, STEPS);
        Ok(Some(Start { network: descent.network, vouched: true, widened: false }))
    }
}

/// Descents of a network that sees x through `basis`, in its own directions and those in which its residual goes on, at most `most`
/// more at a time: the directions in which it then varies, the most important ones first, and the part of the squares that it leaves.
fn grow(
    search: &Search<'_>,
    rows: &Problem<'_>,
    network: &mut Network,
    basis: &mut DMatrix<f64>,
    most: usize,
) -> Option<(DMatrix<f64>, f64)> {
    let mut z = directions::entered(rows.x, basis);
    let mut left = f64::INFINITY;
    let growths = if search.has(Rule::Growth) { GROWTHS } else { 1 };
    for growth in 0..=growths {
        let few = Problem { x: &z, y: rows.y };
        let inner = Rows::new(&few, 1);
        let before = left;
        let mut descent = Descent::new(network.clone());
        descend(&mut descent, &inner, if growth == 0 { 0 } else { GROWING });
        (*network, left) = (descent.network, descent.loss / inner.square);
        let own = directions::of(&inner, network)?;
        let known = product(basis, &own);
        if growth == growths || left > GAIN * before || left <= SMALL {
            return Some((known, left));
        }
        let rest = rows.y - network.evaluate(&z);
        let wider =
            directions::beyond(rows.x, &rest, (&known, &product(&z, &own)), network.degree() - 1, most);
        *network = change_slices(network, &wider.tr_mul(basis));
        z = directions::entered(rows.x, &wider);
        *basis = wider;
    }
    unreachable!("the last growth returns")
}

/// Descends with a ridge that is the variance of the residual against that of the coefficients: it holds back what would be
/// fitted to noise while much is not yet found, and fades with the residual.
fn descend(descent: &mut Descent, rows: &Rows<'_>, steps: usize) {
    descent.loss = rows.loss(&descent.network);
    for step in 0..steps {
        let before = descent.loss;
        let coefficients = descent.network.coefficients();
        let square: f64 = coefficients.iter().map(|v| v * v).sum();
        let ridge = before / (rows.entries() as f64).powi(2) * coefficients.len() as f64 / square;
        let moved = descent.step(rows, ridge);
        let slow = step > 2 && descent.loss > PACE * before;
        if moved.is_none() || slow || descent.loss <= SMALL * rows.square {
            break;
        }
    }
}

/// The best network of rank `level` at most over the values of the columns of `basis`; `thorough`: of many starts, whether they agree or not.
fn on_few(
    outer: &mut Search<'_>,
    rows: &Problem<'_>,
    basis: &DMatrix<f64>,
    level: usize,
    thorough: bool,
) -> Result<Network, SolveError> {
    let z = directions::entered(rows.x, basis);
    let few = Problem { x: &z, y: rows.y };
    let direct = direct::solution(&few, outer.params.degree, MONOMIALS);
    let rows = match direct.as_ref().and_then(|direct| direct.moments.as_ref()) {
        Some(moments) => Rows::condensed(moments),
        None => Rows::new(&few, 1),
    };
    outer.starts += 1;
    let seed = outer.params.seed.wrapping_add(outer.starts as u64);
    // Without random starts there would be nothing to start from.
    let without = outer.params.without.filter(|rule| *rule != Rule::Random);
    let (restarts, without) = if thorough { (THOROUGH, Some(Rule::Agreement)) } else { (STARTS, without) };
    let params = SolveParams { max_rank: level, restarts, seed, without, ..outer.params.clone() };
    let run = Run { options: &params, progress: outer.progress };
    let candidates = search(&few, &rows, direct.as_ref(), run)?;
    let best = candidates.last().expect("a search has candidates");
    Ok(best.network.clone())
}
