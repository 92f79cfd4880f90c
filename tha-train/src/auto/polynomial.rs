//! Systems that are polynomials of their last samples: where one was nearly found, the search of plain [`FitParams`] for networks
//! that fit all but exactly has the last word.

use super::ground::Ground;
use super::search::Search;
use super::setting::Setting;
use crate::fit::FitParams;
use crate::progress::{Progress, Until};
use crate::solve::{self, Problem, SolveParams};
use crate::stage::Scaling;

/// Errors on blocks from which a polynomial may be the truth.
const NEARLY: f64 = 0.7;
/// A polynomial of lags is behind the best if it is not worse by more than this factor.
const BESIDE: f64 = 1.1;
/// It must be better than everything else by this factor.
const CLEARLY: f64 = 0.9;
/// One that fits all but exactly and leaves less than this is the truth, and noise: nothing else needs to be tried.
const NOTHING: f64 = 0.05;
/// A shorter memory is taken if it is not worse by more than this factor, or leaves less than this.
const LEVEL: f64 = 1.02;
const EQUAL: f64 = 1e-4;
/// Degrees that are tried in any case, one above that of the best setting at most; and how far the degree goes on rising for as long as the error
/// falls to this part of what it was.
const USUAL: usize = 4;
const HIGHEST: usize = 10;
const FALLS: f64 = 0.7;
/// Columns of x up to which polynomials are looked for.
pub(super) const COLUMNS: usize = 60;

/// A polynomial network and its errors on blocks.
#[derive(Clone, Debug)]
pub(super) struct Polynomial {
    pub(super) memory: usize,
    pub(super) degree: usize,
    /// Fits all but exactly.
    exact: bool,
    pub(super) error: f64,
    pub(super) blocks: Vec<f64>,
}

impl Polynomial {
    /// Whether it is the truth.
    pub(super) fn leaves_nothing(&self) -> bool {
        self.exact && self.error < NOTHING
    }

    /// The plain fit of it.
    pub(super) fn params(&self, seed: u64) -> FitParams<'static> {
        FitParams::new().memory(self.memory).degree(self.degree).seed(seed)
    }
}

/// Whether a setting is a polynomial of few lags.
pub(super) fn is_one(setting: &Setting, inputs: usize) -> bool {
    setting.degree > 1 && setting.maps.is_none() && setting.memory() > 0 && setting.columns(inputs) <= COLUMNS
}

/// The polynomial behind the best that was tried, if there is one.
pub(super) fn polynomial(search: &Search<'_>, progress: &dyn Progress) -> Option<Polynomial> {
    let ground = search.ground;
    let (least, _) = search.best(|_| true)?;
    let inputs = ground.data.inputs.len();
    let (error, setting) = search.best(|setting| is_one(setting, inputs))?;
    if error > NEARLY.min(BESIDE * least) {
        return None;
    }
    let memory = setting.memory();
    // With all ranks at the cap, at most.
    let fits = |degree: usize| {
        let (rank, columns) = (FitParams::MAX_RANK, setting.columns(inputs));
        let sums = rank * (ground.data.outputs.len() + 1) + rank * rank * (degree - 2);
        let bytes = 4 * sums * columns + 1024 + 64 * (inputs + ground.data.outputs.len());
        let (flash, macs) = search.effort.budgets;
        bytes <= flash && sums * columns <= macs
    };
    let mut best: Option<Polynomial> = None;
    let mut falls = true;
    for degree in 2..=HIGHEST {
        if degree > USUAL.min(setting.degree + 1) && !falls {
            break;
        }
        if !fits(degree) {
            continue;
        }
        // What was found of lower degrees stands where there is no time for higher ones.
        let Some(found) = score(ground, memory, degree, progress) else { break };
        falls = best.as_ref().is_none_or(|best| found.error < FALLS * best.error);
        if best.as_ref().is_none_or(|best| found.error < CLEARLY * best.error) {
            best = Some(found);
        }
    }
    // One that fits all but exactly is the truth also where others are level with it.
    let good =
        |found: &Polynomial| found.error < CLEARLY * least || (found.exact && found.error < LEVEL * least);
    let mut best = best.filter(good)?;
    // With the truth at hand nothing else will be tried: all the time that is left is for its memory.
    let whole = Until(search.progress, search.effort.end);
    let progress = if best.leaves_nothing() { &whole } else { progress };
    while best.memory > 1 {
        match score(ground, best.memory - 1, best.degree, progress) {
            Some(shorter) if shorter.error <= LEVEL * best.error.max(EQUAL) => best = shorter,
            _ => break,
        }
    }
    Some(best)
}

fn score(ground: &Ground<'_>, memory: usize, degree: usize, progress: &dyn Progress) -> Option<Polynomial> {
    let scaling = Scaling::from_rows(ground.data, &ground.rows).ok()?;
    let samples = ground.data.lagged(memory, &scaling, ground.rows.clone());
    let options = SolveParams {
        degree,
        max_rank: FitParams::MAX_RANK,
        memory,
        seed: ground.seed,
        ..SolveParams::default()
    };
    let problem = Problem { x: &samples, y: &samples.y };
    let choice = solve::choose(&problem, &ground.blocks, &options, progress).ok()?;
    let exact = choice.settings.exact;
    Some(Polynomial { memory, degree, exact, error: choice.error, blocks: choice.blocks })
}
