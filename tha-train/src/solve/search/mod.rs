//! The search for a network that fits all but exactly: starts descend, come down in rank, and the best is taken.
//!
//! At the true rank the landscape is full of local minima; one or two ranks above, most starts fit. So a start descends, then
//! every bond gives up the direction it can best spare ([`lower`]) and the network descends again, for as long as the
//! loss rises by no more than chance. Starts come from [`SOURCES`], one source after the other. The rules, all of them:
//!
//! - A descent takes at most [`lower::STEPS`] steps and ends once a step leaves more than [`lower::PACE`] of the loss.
//! - A lower rank is kept while the rise of the loss is within three deviations of what noise makes of the spared dimensions.
//! - The search ends with a winner: a network without a residual; or one that the direct solution fits better by no more than
//!   chance, at the cap only if two starts agree; or, where that is not known, that came down without a loss from above its rank (or that its
//!   source vouches for) and leaves less than [`SMALL`].
//! - It ends without one when starts agree at the cap: two at the direct solution, or where that is not known two that
//!   leave less than [`SMALL`]; or when the sources are exhausted. Then the best of every rank is a candidate.
//!
//! A rank of which nearly every polynomial is (one dimension in [`TELLING`] left) tells nothing and is passed over.

mod directed;
mod grown;
mod lower;
mod random;
mod rule;
mod subspaces;

pub use rule::Rule;

use super::direct::DirectFit;
use super::levenberg::Descent;
use super::log::StepKind;
use super::rows::Rows;
use super::{Problem, Run, SolveError, SolveParams};
use crate::network::{Network, Normal, dimension};
use crate::progress::Progress;
use nalgebra::DMatrix;

/// Rows of the sketch per dimension of the largest model tried.
const ROWS_PER_DIMENSION: f64 = 3.0;
/// Mean squared residual, of outputs of mean square one, below which there is none. Where the direct solution leaves less, it
/// is what that leaves, down to what its moments can tell.
pub(super) const EXACT: f64 = 1e-10;
const DIGITS: f64 = 1e-14;
/// Keeps the gauge from drifting during a descent.
const RIDGE: f64 = 1e-13;
/// Relative squared residual that local minima do not reach by misfit alone.
pub(super) const SMALL: f64 = 1e-3;
/// The direct solution confirms a rank if it has one dimension in so many more.
const TELLING: usize = 10;
/// A network to descend from.
struct Start {
    network: Network,
    /// A small residual is enough: it has come through rounds of its own.
    vouched: bool,
    /// It was widened: that it comes down again proves nothing.
    widened: bool,
}

/// Where starts come from: one network after the other, until there are no more.
trait Source {
    fn next(&mut self, search: &mut Search<'_>) -> Result<Option<Start>, SolveError>;
}

/// The source for a search, where it suits.
type Open = fn(&mut Search<'_>) -> Option<Box<dyn Source>>;

/// All sources, cheapest first.
const SOURCES: [(Rule, Open); 4] = [
    (Rule::Subspaces, subspaces::open),
    (Rule::Directed, directed::open),
    (Rule::Grown, grown::open),
    (Rule::Random, random::open),
];

/// A network and its squared residual on the sketch.
#[derive(Clone)]
pub(super) struct Candidate {
    pub(super) network: Network,
    loss: f64,
}

impl Candidate {
    /// The largest rank.
    fn level(&self) -> usize {
        self.network.ranks().into_iter().max().unwrap_or(1)
    }

    fn dimension(&self) -> usize {
        dimension(&self.network.ranks(), self.network.outputs(), self.network.q())
    }
}

struct Search<'a> {
    problem: &'a Problem<'a>,
    all: &'a Rows<'a>,
    /// Rows enough for the largest model tried, or the moments of all.
    sketch: Rows<'a>,
    /// Rows of the sketch.
    x: DMatrix<f64>,
    y: DMatrix<f64>,
    direct: Option<&'a DirectFit>,
    /// Mean squared residual below which there is none.
    limit: f64,
    params: &'a SolveParams,
    draws: Normal,
    /// The best candidate of each rank, and how many starts reached it.
    best: Vec<Option<Candidate>>,
    agreeing: Vec<usize>,
    starts: usize,
    progress: &'a dyn Progress,
}

/// Candidates by rank, lowest first, for `problem`, whose rows are `all`; the last is the winner where there is one.
pub(super) fn search<'a>(
    problem: &'a Problem<'a>,
    all: &'a Rows,
    direct: Option<&'a DirectFit>,
    run: Run<'a>,
) -> Result<Vec<Candidate>, SolveError> {
    Search::new(problem, all, direct, run).candidates(&SOURCES)
}

impl<'a> Search<'a> {
    fn new(problem: &'a Problem<'a>, all: &'a Rows, direct: Option<&'a DirectFit>, run: Run<'a>) -> Self {
        let Run { options: params, progress } = run;
        let cap = params.max_rank;
        let most = dimension(&params.start_ranks(problem, cap), problem.y.ncols(), problem.x.ncols());
        let stride = ((problem.y.len() as f64 / (ROWS_PER_DIMENSION * most as f64)) as usize).max(1);
        let stride = if params.without == Some(Rule::Sketch) { 1 } else { stride };
        let (mut sketch, x, y) = sampled(problem, stride);
        // Where all rows are condensed to no more than a third of the sketch, they are the sketch; also where misfit would
        // mislead few rows.
        let few = direct.is_some_and(|direct| 3 * direct.dimension <= y.len() || direct.variance > SMALL);
        if few && all.are_condensed() || stride == 1 && !all.are_condensed() {
            sketch = all.clone();
        }
        let limit = direct.map_or(EXACT, |direct| direct.variance.clamp(DIGITS, EXACT));
        let (best, agreeing) = (vec![None; cap + 1], vec![0; cap + 1]);
        let draws = Normal::new(params.seed);
        Self { problem, all, sketch, x, y, direct, limit, params, draws, best, agreeing, starts: 0, progress }
    }

    /// The best of every rank below that of the winner, and the winner; without one, the best of every rank.
    fn candidates(mut self, sources: &[(Rule, Open)]) -> Result<Vec<Candidate>, SolveError> {
        let winner = self.run(sources)?;
        let level = winner.as_ref().map_or(self.best.len(), Candidate::level);
        Ok(self.best.drain(..level).flatten().chain(winner).collect())
    }

    fn run(&mut self, sources: &[(Rule, Open)]) -> Result<Option<Candidate>, SolveError> {
        for &(kind, open) in sources {
            if !self.has(kind) || self.settled() {
                continue;
            }
            let Some(mut source) = open(self) else { continue };
            while !self.settled()
                && let Some(start) = source.next(self)?
            {
                if let Some(winner) = self.follow(start)? {
                    return Ok(Some(winner));
                }
            }
        }
        Ok(None)
    }

    /// Descends from a start and comes down in rank; the candidate if it is a winner.
    fn follow(&mut self, start: Start) -> Result<Option<Candidate>, SolveError> {
        self.starts += 1;
        let start_kind = StepKind::Start(self.starts - 1);
        let first = self.descended(start.network, start_kind)?;
        let (candidate, came_down) = self.lowered(first)?;
        let small = candidate.loss <= SMALL * self.sketch.square;
        let confirmed = match self.direct {
            _ if self.exact(candidate.loss) => true,
            Some(direct) => {
                let cap = self.params.max_rank;
                let settled = direct.variance <= EXACT || self.agreeing[cap] > 1;
                (candidate.level() < cap || settled) && self.confirms(direct, &candidate)
            }
            None => small && (came_down && !start.widened || start.vouched && self.determined(&candidate)),
        };
        Ok((confirmed && candidate.level() <= self.params.max_rank).then_some(candidate))
    }

    /// Not nearly every polynomial has this rank.
    fn telling(&self, level: usize) -> bool {
        let dimension = dimension(&self.ranks(level), self.outputs(), self.q());
        self.direct
            .is_none_or(|direct| TELLING * direct.dimension.saturating_sub(dimension) >= direct.dimension)
    }

    /// Not left out.
    fn has(&self, rule: Rule) -> bool {
        self.params.without != Some(rule)
    }

    /// More starts would find nothing better.
    fn settled(&self) -> bool {
        let cap = self.params.max_rank;
        let (Some(best), agreeing) = (&self.best[cap], self.agreeing[cap]) else { return false };
        let arrived = match self.direct {
            Some(direct) => {
                direct.variance > SMALL
                    || !self.telling(cap)
                        && best.loss - direct.loss <= direct.variance.max(self.limit)
                        && self.sketch.are_condensed()
            }
            None => self.near(),
        };
        agreeing > 1 && arrived && self.has(Rule::Agreement)
    }

    /// The best at the cap is no local minimum of a misfit.
    fn near(&self) -> bool {
        let best = self.best[self.params.max_rank].as_ref();
        best.is_some_and(|best| best.loss <= SMALL * self.sketch.square)
    }

    fn q(&self) -> usize {
        self.problem.x.ncols()
    }

    fn outputs(&self) -> usize {
        self.problem.y.ncols()
    }

    fn ranks(&self, cap: usize) -> Vec<usize> {
        self.params.start_ranks(self.problem, cap)
    }

    /// A random network whose values are somewhat smaller than the outputs.
    fn random(&mut self, level: usize) -> Network {
        let mut network = Network::random(self.outputs(), self.q(), &self.ranks(level), &mut self.draws);
        let values = network.evaluate(&self.x);
        let size = (values.norm_squared() / values.len() as f64).sqrt();
        network.scale(0.3 / size.max(f64::MIN_POSITIVE));
        network.equalize_norms();
        network
    }

    fn exact(&self, loss: f64) -> bool {
        loss <= self.limit * self.sketch.entries() as f64
    }

    /// The rows are many for the candidate, and what it leaves is small.
    fn determined(&self, candidate: &Candidate) -> bool {
        let entries = self.sketch.entries();
        let freedom = entries.saturating_sub(candidate.dimension());
        3 * freedom > entries
            && candidate.loss / freedom as f64 <= SMALL * self.sketch.square / entries as f64
    }

    /// The direct solution fits all rows better by no more than chance.
    fn confirms(&self, direct: &DirectFit, candidate: &Candidate) -> bool {
        let variance = direct.variance.max(self.limit);
        let spare = chance(direct.dimension.saturating_sub(candidate.dimension()));
        // The sketch is an optimist; only what passes there is worth all rows.
        if !self.telling(candidate.level()) || candidate.loss / self.sketch.entries() as f64 > 1.3 * variance
        {
            return false;
        }
        let mut descent = Descent::new(candidate.network.clone());
        for _ in 0..10 {
            let before = descent.loss;
            let moved = descent.step(self.all, RIDGE);
            let fits = descent.loss - direct.loss <= variance * spare;
            if fits || moved.is_none() || descent.loss > 0.9999 * before {
                return fits;
            }
        }
        false
    }
}

/// Every so many rows of a problem.
fn sampled<'a>(problem: &'a Problem, stride: usize) -> (Rows<'a>, DMatrix<f64>, DMatrix<f64>) {
    let indices: Vec<usize> = (0..problem.x.nrows()).step_by(stride).collect();
    (Rows::new(problem, stride), problem.x.select_rows(&indices), problem.y.select_rows(&indices))
}

/// A sum of `count` squared standard normals hardly ever exceeds this: mean and three deviations.
fn chance(count: usize) -> f64 {
    count as f64 + 3.0 * (2.0 * count as f64).sqrt()
}
