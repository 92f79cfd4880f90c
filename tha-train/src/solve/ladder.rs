//! The ladder: race on a sketch, polish on all rows, choose ridge and rank on rows that were not fitted.

use super::count::dimension;
use super::directions::linear_forms;
use super::levenberg::{Descent, EXPLICIT};
use super::log::{Log, Step, StepKind};
use super::normal::Rows;
use super::search::{Candidate, SMALL, race};
use super::{Options, Problem, Ridge, SolveError, direct};
use crate::tt::{Normal, TensorTrain};
use nalgebra::DMatrix;

/// Largest number of monomials for which the direct solution is worth its cost as a judge.
const JUDGE: usize = 600;
/// Relative loss below which the moments have lost digits that the rows still have.
const CONDENSED: f64 = 1e-10;
/// Ridge parameters from strong to weak.
const RIDGES: [f64; 9] = [1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8];

/// What the ladder chose.
pub(super) struct Chosen {
    pub(super) train: TensorTrain,
    pub(super) ridge: f64,
    pub(super) steps: usize,
}

/// Fits `problem`, choosing on `judge`.
pub(super) fn fit(
    problem: &Problem,
    judge: Option<&Problem>,
    options: &Options,
    log: &mut Log,
) -> Result<Chosen, SolveError> {
    let reference = direct::judge(problem, options.degree, JUDGE);
    let ranks = options.start_ranks(problem.y.ncols(), problem.x.ncols(), options.max_rank);
    let largest = TensorTrain::zeros(problem.y.ncols(), problem.x.ncols(), &ranks).parameters();
    let moments = reference.as_ref().and_then(|reference| reference.moments.as_ref());
    let rows = match moments.filter(|_| largest <= EXPLICIT) {
        Some(moments) => Rows::condensed(moments),
        None => Rows::new(problem, 1),
    };
    let chosen = choose(problem, &rows, reference.as_ref(), judge, options, log)?;
    if rows.are_condensed() && rows.loss(&chosen.train) <= CONDENSED * rows.square() {
        let refined = refit(chosen.train, problem, chosen.ridge, options, log)?;
        return Ok(Chosen { steps: chosen.steps + refined.steps, ..refined });
    }
    Ok(chosen)
}

fn choose(
    problem: &Problem,
    rows: &Rows,
    reference: Option<&direct::Judge>,
    judge: Option<&Problem>,
    options: &Options,
    log: &mut Log,
) -> Result<Chosen, SolveError> {
    let race = race(problem, rows, reference, options, log)?;
    let mut ladder = Ladder { options, log, descent: Descent::new(TensorTrain::zeros(1, 1, &[])) };
    if let Ridge::Fixed(ridge) = options.ridge {
        let mut best: Option<(f64, Chosen)> = None;
        for candidate in race.candidates {
            let chosen = ladder.polish(candidate.train, rows, ridge)?;
            let score = match judge {
                Some(judge) => loss(&chosen.train, judge),
                None => criterion(&chosen.train, rows),
            };
            if best.as_ref().is_none_or(|(b, _)| score < *b) {
                best = Some((score, chosen));
            }
        }
        return Ok(best.expect("a race has candidates").1);
    }
    // What predicts new rows as well as its residual promises needs no penalty, where that is small or has many rows.
    let best = match judge {
        Some(judge) if race.certain => {
            let by_loss =
                |a: &&Candidate, b: &&Candidate| loss(&a.train, judge).total_cmp(&loss(&b.train, judge));
            race.candidates.iter().min_by(by_loss).expect("a race has candidates")
        }
        _ => race.best(),
    };
    let chosen = ladder.polish(best.train.clone(), rows, 0.0)?;
    let many = 20 * best.dimension < rows.entries();
    let small = rows.loss(&chosen.train) <= SMALL * rows.square();
    let trusted = match judge {
        Some(judge) => (many || small) && generalises(&chosen.train, rows, judge),
        None => race.certain || many,
    };
    if trusted {
        return Ok(chosen);
    }
    // What noise or few rows leave of a network is often little more than its linear part: that is a start too.
    let mut starts: Vec<TensorTrain> = race.candidates.into_iter().map(|candidate| candidate.train).collect();
    let mut levels = vec![1, options.max_rank];
    levels.dedup();
    for level in levels.into_iter().filter(|_| options.ranks.is_none()) {
        let ranks = options.start_ranks(problem.y.ncols(), problem.x.ncols(), level);
        starts.push(linear(problem, &ranks, options)?);
    }
    match judge {
        Some(judge) => ladder.choose(starts, rows, judge),
        None => {
            // Nothing to judge by: hold the end back, choose, and fit the choice to everything.
            let count = problem.x.nrows();
            let held = (count / 5).max(1).min(count - 1);
            let part = |from: usize, size: usize| -> (DMatrix<f64>, DMatrix<f64>) {
                (problem.x.rows(from, size).into_owned(), problem.y.rows(from, size).into_owned())
            };
            let (x, y) = part(0, count - held);
            let (judge_x, judge_y) = part(count - held, held);
            let judge = Problem { x: &judge_x, y: &judge_y };
            let chosen = ladder.choose(starts, &Rows::new(&Problem { x: &x, y: &y }, 1), &judge)?;
            ladder.polish(chosen.train, rows, chosen.ridge)
        }
    }
}

/// Descends from a given train at a given ridge.
pub(super) fn refit(
    train: TensorTrain,
    problem: &Problem,
    ridge: f64,
    options: &Options,
    log: &mut Log,
) -> Result<Chosen, SolveError> {
    let mut ladder = Ladder { options, log, descent: Descent::new(TensorTrain::zeros(1, 1, &[])) };
    ladder.polish(train, &Rows::new(problem, 1), ridge)
}

struct Ladder<'a, 'b> {
    options: &'a Options,
    log: &'a mut Log<'b>,
    descent: Descent,
}

impl Ladder<'_, '_> {
    fn descend(&mut self, rows: &Rows, ridge: f64, most: usize, tolerance: f64) -> Result<usize, SolveError> {
        for step in 0..most {
            let gain = self.descent.step(rows, ridge);
            let (loss, gain, unit) = (self.descent.loss, gain.unwrap_or(0.0), rows.square());
            self.log.record(Step {
                kind: StepKind::AllCores,
                loss: loss / unit,
                gain: gain / unit,
                truncation: 0.0,
                ranks: self.descent.train.ranks(),
            })?;
            if gain <= tolerance * (loss + gain) || loss <= 1e-28 * unit {
                return Ok(step + 1);
            }
        }
        Ok(most)
    }

    fn polish(&mut self, train: TensorTrain, rows: &Rows, ridge: f64) -> Result<Chosen, SolveError> {
        self.descent.restart(train);
        let steps = self.descend(rows, ridge, self.options.sweeps, self.options.tolerance)?;
        Ok(Chosen { train: self.descent.train.clone(), ridge, steps })
    }

    /// The best of the starts and of the ridge parameters, judged on other rows.
    fn choose(
        &mut self,
        starts: Vec<TensorTrain>,
        rows: &Rows,
        judge: &Problem,
    ) -> Result<Chosen, SolveError> {
        let mut best: Option<(f64, Chosen)> = None;
        for start in starts {
            self.descent.restart(start);
            let mut worse = 0;
            let mut path = f64::INFINITY;
            let mut steps = 0;
            for ridge in RIDGES {
                steps += self.descend(rows, ridge, 8, 1e-3)?;
                let score = loss(&self.descent.train, judge);
                if best.as_ref().is_none_or(|(b, _)| score < *b) {
                    best = Some((score, Chosen { train: self.descent.train.clone(), ridge, steps }));
                }
                worse = if score < path { 0 } else { worse + 1 };
                path = path.min(score);
                if worse == 2 {
                    break;
                }
            }
        }
        Ok(best.expect("at least one start").1)
    }
}

/// The linear least-squares fit as a train: its coefficients in the first core, the constant one in all others, and
/// small random entries where the ranks leave room.
fn linear(problem: &Problem, ranks: &[usize], options: &Options) -> Result<TensorTrain, SolveError> {
    let (q, outputs) = (problem.x.ncols(), problem.y.ncols());
    let forms =
        linear_forms(problem, RIDGES[0]).ok_or(SolveError::Numerical { what: "linear least squares" })?;
    let mut normal = Normal::new(options.seed);
    let mut train = TensorTrain::random(outputs, q, ranks, &mut normal);
    train.scale(1e-3);
    train.equalize_norms();
    for (k, core) in train.cores.iter_mut().enumerate() {
        for a in 0..core.left {
            for i in 0..q {
                let at = (a * q + i) * core.right;
                match k {
                    0 => core.data[at] = forms[(i, a)],
                    _ if a == 0 => core.data[at] = forms[(i, outputs)],
                    _ => (),
                }
            }
        }
    }
    Ok(train)
}

fn loss(train: &TensorTrain, rows: &Problem) -> f64 {
    (train.evaluate(rows.x) - rows.y).norm_squared()
}

/// RSS / (N l - dimension)^2: generalised cross-validation.
fn criterion(train: &TensorTrain, rows: &Rows) -> f64 {
    let dimension = dimension(&train.ranks(), train.outputs(), train.q());
    let freedom = rows.entries().saturating_sub(dimension).max(1) as f64;
    rows.loss(train) / freedom.powi(2)
}

/// The residual on other rows is what the residual on the fitted rows and their number predict.
fn generalises(train: &TensorTrain, rows: &Rows, judge: &Problem) -> bool {
    let dimension = dimension(&train.ranks(), train.outputs(), train.q()) as f64;
    let entries = rows.entries() as f64;
    let variance = rows.loss(train) / (entries - dimension).max(1.0);
    let expected = variance * (1.0 + dimension / entries);
    let slack = 1.0 + 4.0 * (2.0 / judge.y.len() as f64).sqrt();
    loss(train, judge) <= (slack * expected * judge.y.len() as f64).max(1e-18 * judge.y.norm_squared())
}
