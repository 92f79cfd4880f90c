//! Networks that fit all but exactly: found by a search, polished without a penalty.
//!
//! A descent with a penalty ends in one of many local minima. Where the system is a network of the rank asked for and noise is
//! small, one of them is far below all others, and it pays to look for it: the search of [`super::search`], on rows that
//! leave one block out, which then says whether it was found.

use super::direct::{self, MONOMIALS};
use super::frame::Frame;
use super::levenberg::{Descent, EXPLICIT};
use super::log::{Step, StepKind, record};
use super::moments::Moments;
use super::rows::Rows;
use super::search::{EXACT, SMALL, search};
use super::{Problem, Run, SolveError};
use crate::network::{Features, Network, dimension, monomials};

/// Below [`EXACT`] moments have lost digits that the rows still have: the part of the loss that a step has to gain there to be
/// followed by another.
const WORTHWHILE: f64 = 0.01;

/// A network that may fit exactly, or nothing where that is known to be impossible or was not tried. `floor` is the relative
/// squared residual of the direct solution, where it is known.
pub(super) fn find(
    problem: &Problem<'_>,
    judge: &Problem<'_>,
    floor: Option<f64>,
    run: Run<'_>,
) -> Result<Option<Network>, SolveError> {
    if floor.is_some_and(|floor| floor > SMALL) {
        // Nothing of this degree fits well.
        return Ok(None);
    }
    let (options, q, outputs) = (run.options, problem.x.ncols(), problem.y.ncols());
    let known = monomials(q, options.degree) <= MONOMIALS;
    let smallest = options.start_ranks(problem, options.max_rank.min(2));
    if !known && (options.degree == 2 || problem.y.len() < dimension(&smallest, outputs, q)) {
        // Random starts find quadratic networks, and rows that do not determine a network of rank two find none.
        return Ok(None);
    }
    let frame = Frame::new(problem)?;
    let (x, y) = frame.enter(problem);
    let inside = Problem { x: &x, y: &y };
    let direct = direct::solution(&inside, options.degree, MONOMIALS);
    if direct.as_ref().is_some_and(|direct| direct.variance > SMALL) {
        return Ok(None);
    }
    let ranks = options.start_ranks(problem, options.max_rank);
    let largest = Network::zeros(y.ncols(), x.ncols(), &ranks).parameters();
    let moments = direct.as_ref().and_then(|direct| direct.moments.as_ref());
    let rows = match moments.filter(|_| largest <= EXPLICIT) {
        Some(moments) => Rows::condensed(moments),
        None => Rows::new(&inside, 1),
    };
    let candidates = search(&inside, &rows, direct.as_ref(), run)?;
    let (x, y) = frame.enter(judge);
    let loss = |network: &Network| (network.evaluate(&x) - &y).norm_squared();
    let candidates = candidates.into_iter().map(|candidate| candidate.network);
    let Some(mut network) = candidates.min_by(|a, b| loss(a).total_cmp(&loss(b))) else { return Ok(None) };
    descend(&mut network, &rows, &inside, run)?;
    Ok(Some(frame.leave(&network)))
}

/// Descends without a penalty on all cores together, on the moments of the rows where there are some; gives the number of
/// steps too.
pub(super) fn polish(
    problem: &Problem<'_>,
    moments: Option<&Moments>,
    network: &Network,
    run: Run<'_>,
) -> Result<(Network, usize), SolveError> {
    let frame = Frame::new(problem)?;
    let (x, y) = frame.enter(problem);
    let inside = Problem { x: &x, y: &y };
    let mut network = frame.enter_network(network);
    network.balance();
    let entered = moments.map(|moments| moments.entered(&frame.map, frame.scale));
    let rows = match entered.as_ref().filter(|_| network.parameters() <= EXPLICIT) {
        Some(moments) => Rows::condensed(moments),
        None => Rows::new(&inside, 1),
    };
    let steps = descend(&mut network, &rows, &inside, run)?;
    Ok((frame.leave(&network), steps))
}

/// Descends on `rows`, and on those of the problem where moments have no digits left.
fn descend(
    network: &mut Network,
    rows: &Rows<'_>,
    problem: &Problem<'_>,
    run: Run<'_>,
) -> Result<usize, SolveError> {
    let Run { options, progress } = run;
    let unit = rows.square;
    if rows.are_condensed() && rows.loss(network) <= EXACT * unit {
        return descend(network, &Rows::new(problem, 1), problem, run);
    }
    let mut descent = Descent::new(network.clone());
    let mut done = options.sweeps;
    for step in 0..options.sweeps {
        let gain = descent.step(rows, 0.0).unwrap_or(0.0);
        let (loss, ranks) = (descent.loss, descent.network.ranks());
        let kind = StepKind::AllCores;
        record(progress, Step { kind, loss: loss / unit, gain: gain / unit, truncation: 0.0, ranks })?;
        let least = if loss <= EXACT * unit { WORTHWHILE } else { options.tolerance };
        if gain <= least * (loss + gain) || loss <= 1e-28 * unit {
            done = step + 1;
            break;
        }
    }
    *network = descent.network;
    if rows.are_condensed() && descent.loss <= EXACT * unit {
        done += descend(network, &Rows::new(problem, 1), problem, run)?;
    }
    Ok(done)
}
