//! Networks along the ridges, for a search that scores many settings: short fits, each starting where the last one ended.

use super::canonical::{Effort, sweeps};
use super::choose::Settings;
use super::log::go_on;
use super::path::Fitted;
use super::precondition::Covariance;
use super::rows::Rows;
use super::{Problem, SolveError};
use crate::network::{Hats, Network, Normal, useful_ranks};
use crate::progress::{Progress, Silent};
use std::ops::Range;

/// How far to go at the first ridge, at the next ones, and at the last one of a final fit.
const FIRST: Effort = Effort { sweeps: 3, steps: 8 };
const NEXT: Effort = Effort { sweeps: 1, steps: 8 };
const FINAL: Effort = Effort { sweeps: 6, steps: 20 };
/// From a network that is near already.
const NEAR: Effort = Effort { sweeps: 3, steps: 12 };

/// What the networks have in common.
#[derive(Clone, Debug)]
pub(crate) struct Course<'a> {
    /// Settings but for ranks and ridge.
    pub(crate) settings: Settings,
    /// Cores, and the largest rank between them.
    pub(crate) degree: usize,
    pub(crate) rank: usize,
    /// Lags of each input in the columns of x, where they are lags.
    pub(crate) memory: usize,
    pub(crate) seed: u64,
    /// From strong to weak.
    pub(crate) ridges: &'a [f64],
    /// One network for each output, not one for all.
    pub(crate) separate: bool,
}

/// The last ridge is where the fit ends: go further there, perhaps from a network that was fitted with it to other rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Last<'a> {
    pub(crate) from: Option<&'a Network>,
}

/// Fits along the ridges, output by output or all together, and shows every network: the number of its ridge and the outputs
/// it serves.
pub(crate) fn along(
    problem: &Problem<'_>,
    course: &Course<'_>,
    last: Option<Last<'_>>,
    progress: &dyn Progress,
    mut visit: impl FnMut(usize, Range<usize>, Network),
) -> Result<(), SolveError> {
    problem.check_all_but_x()?;
    let fitted = Fitted::rows(problem);
    if fitted.second.iter().any(|v| !v.is_finite()) {
        problem.check()?;
    }
    let frame = fitted.frame(&course.settings, course.memory)?;
    let covariance = Covariance::new(&frame.second(&fitted.second))?;
    let (hats, y) =
        (Hats::scaled(problem.x.hats(), |column| frame.map[(column, column)]), problem.y / frame.scale);
    let x = hats.is_empty().then(|| frame.enter(problem).0);
    let (q, outputs) = (frame.map.ncols(), y.ncols());
    // Of degree one there is nothing that outputs could share.
    let each = if course.separate && course.degree > 1 { 1 } else { outputs };
    for first in (0..outputs).step_by(each) {
        let y = y.columns(first, each).into_owned();
        let rows = match &x {
            Some(x) => Rows::new(&Problem { x, y: &y }, 1),
            None => Rows::mapped(&hats, &y),
        };
        let ranks = useful_ranks(course.degree, each, q, course.rank);
        let mut network = match last.and_then(|last| last.from) {
            Some(network) => frame.enter_network(network),
            None => Network::random(each, q, &ranks, &mut Normal::new(course.seed)),
        };
        for (k, &ridge) in course.ridges.iter().enumerate() {
            let effort = match k {
                _ if k + 1 == course.ridges.len() && last.is_some_and(|last| last.from.is_some()) => NEAR,
                _ if k + 1 == course.ridges.len() && last.is_some() => FINAL,
                0 => FIRST,
                _ => NEXT,
            };
            sweeps(&mut network, &rows, &covariance, ridge, effort, &Silent)?;
            go_on(progress)?;
            visit(k, first..first + each, frame.leave(&network));
        }
    }
    Ok(())
}
