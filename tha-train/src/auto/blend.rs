//! Tensor Head Averaging over what was tried: heads that differ in their filters, maps, networks and inputs, with convex weights
//! from their predictions for rows they have not seen (Algorithm 1).
//!
//! Weights from few blocks are noisy, so the way of combining is itself judged on blocks, with weights from the other blocks:
//! the best setting alone, the best settings, or these and heads on subsets of the inputs; weights shared by the outputs or
//! not. The weights are the mean over the ways that are level with the best. One head alone is taken only where it is clearly better,
//! by three per cent and by a standard error: averages hedge.

use super::ground::{Ground, Part};
use super::judge::{Judge, Kind, Weighing};
use super::trial::Trial;
use crate::solve;
pub(super) use crate::solve::mean_and_error;

/// Settings on all inputs that take part, of so many that are the best by themselves. Under drift many settings are better than few, at the
/// same error on blocks: 4, 8 and 16 of the best gave 0.91, 0.83 and 0.76 on the last months of a house, 0.611, 0.610 and 0.600 on
/// gas_turbine, 0.60, 0.60 and 0.61 on robot_kr300.
const SETTINGS: usize = 16;
const CANDIDATES: usize = 80;
/// One head alone must be better than the best average by this factor.
const CLEARLY: f64 = 1.03;
/// Heads from which an average hedges; more of them are no reason to take one that is worse.
const HEDGE: usize = 3;
/// Ways that are worse than the best by no more than this factor are level with it.
const LEVEL: f64 = 1.02;
/// The linear part goes on outside of the range unless most of the best settings are worse by this factor then.
const WORSE: f64 = 1.02;

/// Of the heads that are too many for the budgets, one of so many goes before the weights of the others are found again.
const AT_ONCE: usize = 10;

/// Parts of the budgets that one setting may take.
const PARTS: [f64; 3] = [1.0, 0.5, 0.25];

/// A head of a blend.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Member {
    /// The number of its trial.
    pub(super) trial: usize,
    /// For each output, the number of its ridge and its weight.
    pub(super) ridges: Vec<usize>,
    pub(super) weights: Vec<f64>,
}

/// What is delivered.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Blend {
    /// The linear part goes on outside of the training range.
    pub(super) extend: bool,
    pub(super) members: Vec<Member>,
}

impl Blend {
    /// One trial by itself, with a ridge for each output.
    pub(super) fn alone(trial: usize, ridges: Vec<usize>, extend: bool) -> Self {
        Self { extend, members: vec![Member { trial, weights: vec![1.0; ridges.len()], ridges }] }
    }
}

/// Which trials may take part, and how.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Way {
    /// Whatever is best on blocks.
    Best,
    /// One setting alone, the simplest that is level with the best.
    Single,
    /// A linear model of lags alone.
    Linear,
}

/// How heads come to be as few as there is room for.
#[derive(Clone, Copy, PartialEq)]
enum Fewer {
    /// Those of the least weight go.
    Least,
    /// Those of the least weight for their size go.
    LeastForSize,
    /// Heads are added for as long as there is room.
    Add,
}

/// What is decided on: trials by what they predict for some blocks, and the part of the budgets that a blend takes.
#[derive(Clone, Copy)]
pub(super) struct Case<'a> {
    pub(super) ground: &'a Ground<'a>,
    pub(super) trials: &'a [Trial<'a>],
    pub(super) blocks: &'a [usize],
    pub(super) room: &'a dyn Fn(&Blend) -> f64,
}

impl Case<'_> {
    /// Decides everything on the given blocks alone.
    ///
    /// Where heads must go because there is no room for all of them, a blend of smaller settings may be better than what is left of
    /// a blend of large ones: that is judged on the blocks too. Of those that are about level the best with several heads is taken.
    pub(super) fn blend(&self, way: Way) -> Option<Blend> {
        if way != Way::Best {
            let (ranked, extend) = self.ranked(way, PARTS[0]);
            return Some(self.alone(self.simplest(&ranked, extend)?, extend));
        }
        let mut found: Vec<(f64, Blend)> = Vec::new();
        'parts: for part in PARTS {
            let Some(pool) = Pool::new(self, part) else { break };
            for fewer in [Fewer::Least, Fewer::LeastForSize, Fewer::Add] {
                let Some((score, made, whole)) = pool.blend(self.room, fewer) else { break 'parts };
                found.push((score, made));
                if whole {
                    break 'parts;
                }
            }
        }
        let least = found.iter().map(|(score, _)| *score).min_by(f64::total_cmp)?;
        found.retain(|(score, _)| *score <= CLEARLY * least);
        let hedge = |made: &Blend| made.members.len().min(HEDGE);
        let order = |(a, one): &(f64, Blend), (b, other): &(f64, Blend)| {
            hedge(other).cmp(&hedge(one)).then(a.total_cmp(b))
        };
        found.into_iter().min_by(order).map(|(_, made)| made)
    }

    /// One trial by itself, with the ridges that are best on the blocks.
    fn alone(&self, k: usize, extend: bool) -> Blend {
        Blend::alone(k, self.trials[k].best_ridges(extend, self.blocks), extend)
    }

    /// The settings on all inputs that take a part of the budgets at most, with their errors, the best first; and whether the linear part
    /// goes on outside of the range.
    fn ranked(&self, way: Way, part: f64) -> (Vec<(f64, usize)>, bool) {
        let usable = |k: &usize| match way {
            Way::Linear => self.trials[*k].setting.is_plain(),
            _ => self.trials[*k].setting.inputs.is_none(),
        };
        let ranked = |extend: bool| {
            let usable = (0..self.trials.len()).filter(usable);
            let fitting = usable.filter(|&k| (self.room)(&self.alone(k, extend)) <= part);
            let mut ranked: Vec<(f64, usize)> =
                fitting.map(|k| (self.trials[k].error(extend, self.blocks), k)).collect();
            ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
            ranked
        };
        let (clamped, extended) = (ranked(false), ranked(true));
        let extend = goes_on(&clamped, &extended);
        (if extend { extended } else { clamped }, extend)
    }

    /// The simplest setting within one standard error of the best, and not worse by more than two per cent.
    fn simplest(&self, ranked: &[(f64, usize)], extend: bool) -> Option<usize> {
        let by_block = |&(_, k): &(f64, usize)| self.trials[k].by_block(extend, self.blocks);
        let by_block: Vec<Vec<f64>> = ranked.iter().map(by_block).collect();
        let cost = |k: usize| self.trials[k].setting.cost();
        let scores: Vec<_> =
            ranked.iter().zip(&by_block).map(|(&(error, k), blocks)| (error, &blocks[..], cost(k))).collect();
        ranked.get(solve::simplest(&scores).unwrap_or(0)).map(|(_, k)| *k)
    }
}

/// The heads that may take part, where each setting takes a part of the budgets at most.
struct Pool<'a> {
    ground: &'a Ground<'a>,
    extend: bool,
    /// The best setting by itself, and its error.
    best: (f64, Blend),
    /// The numbers of the trials: settings on all inputs from the best on, so many of them, then heads on subsets.
    trials: Vec<usize>,
    settings: usize,
    /// Of each, the best ridge of every output.
    ridges: Vec<Vec<usize>>,
    judge: Judge<'a>,
}

impl<'a> Pool<'a> {
    fn new(case: &Case<'a>, part: f64) -> Option<Self> {
        let Case { ground, trials, blocks, .. } = *case;
        let (ranked, extend) = case.ranked(Way::Best, part);
        let &(error, first) = ranked.first()?;
        let best = (error, case.alone(first, extend));
        let mut pool: Vec<usize> = ranked.iter().take(CANDIDATES).map(|&(_, k)| k).collect();
        let settings = pool.len();
        pool.extend((0..trials.len()).filter(|&k| trials[k].setting.inputs.is_some()));
        let ridges: Vec<Vec<usize>> = pool.iter().map(|&k| trials[k].best_ridges(extend, blocks)).collect();
        let judge = Judge::new(case, &pool, &ridges, extend);
        Some(Self { ground, extend, best, trials: pool, settings, ridges, judge })
    }

    /// The blend, its error on the blocks, and whether nothing had to go.
    fn blend(&self, room: &dyn Fn(&Blend) -> f64, fewer: Fewer) -> Option<(f64, Blend, bool)> {
        let Self { ground, extend, settings: candidates, .. } = *self;
        let Self { best, trials: pool, ridges, judge, .. } = self;
        let mut taken = if fewer == Fewer::Add {
            let one = |at: usize| {
                let weights = vec![1.0; ridges[at].len()];
                Member { trial: pool[at], ridges: ridges[at].clone(), weights }
            };
            let fits = |taken: &[usize], k: usize| {
                let members = taken.iter().chain([&k]).map(|&at| one(at)).collect();
                room(&Blend { extend, members }) <= 1.0
            };
            judge.together(pool.len(), SETTINGS, &fits)
        } else {
            // The settings that are best together, then the heads on subsets.
            judge.together(candidates, SETTINGS, &|_, _| true)
        };
        let settings = taken.len();
        if fewer != Fewer::Add {
            taken.extend(candidates..pool.len());
        }
        let judge = judge.of(&taken);
        let pool: Vec<usize> = taken.iter().map(|&at| pool[at]).collect();
        let ridges: Vec<Vec<usize>> = taken.iter().map(|&at| ridges[at].clone()).collect();
        let counts = std::iter::once(settings).chain((pool.len() > settings).then_some(pool.len()));
        let kinds = [Kind::Equal, Kind::Shared, Kind::Own];
        let mut ways: Vec<Weighing> =
            counts.flat_map(|heads| kinds.map(|kind| Weighing { heads, kind })).collect();
        if let Some(Part::Ways(only)) = ground.without {
            ways = vec![ways.swap_remove(only % ways.len())];
        }
        let whole_pool: Vec<usize> = (0..pool.len()).collect();
        let scored: Vec<(f64, Vec<f64>)> =
            ways.iter().map(|way| judge.nested(&whole_pool[..way.heads], &[*way])).collect();
        let (least, of_least) = scored.iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
        if *least > CLEARLY * best.0 && !matches!(ground.without, Some(Part::Ways(_))) {
            let (_, of_best) = judge.nested(&[0], &[Weighing { heads: 1, kind: Kind::Equal }]);
            let differences: Vec<f64> = of_least.iter().zip(&of_best).map(|(a, b)| a - b).collect();
            let (mean, error) = mean_and_error(&differences);
            if mean > error {
                return Some((best.0, best.1.clone(), true));
            }
        }
        // Which of the ways that are level is the best is chance: their mean is taken.
        let level = |(_, scored): &(&Weighing, &(f64, Vec<f64>))| scored.0 <= LEVEL * least;
        let ways: Vec<Weighing> = ways.iter().zip(&scored).filter(level).map(|(way, _)| *way).collect();
        let count = ways.iter().map(|way| way.heads).max()?;
        let mut kept = whole_pool[..count].to_vec();
        // What is too large loses its least heads until it fits.
        loop {
            let weights = judge.weights(&kept, &ways, None);
            let member = |(at, &k): (usize, &usize)| Member {
                trial: pool[k],
                ridges: ridges[k].clone(),
                weights: weights.iter().map(|of_output| of_output[at]).collect(),
            };
            let mut members: Vec<Member> = kept.iter().enumerate().map(member).collect();
            members.retain(|member| member.weights.iter().any(|weight| *weight > 0.0));
            let made = Blend { extend, members };
            let whole = room(&made);
            if whole <= 1.0 {
                let complete = kept.len() == count && fewer != Fewer::Add;
                return Some((judge.nested(&kept, &ways).0, made, complete));
            }
            if kept.len() <= 1 {
                return Some((best.0, best.1.clone(), false));
            }
            let mut order: Vec<(f64, f64, usize)> = Vec::with_capacity(kept.len());
            for at in 0..kept.len() {
                let sum = weights.iter().map(|of_output| of_output[at]).sum::<f64>();
                // The room that its going makes: heads share features, and those of degree one stand in the file as their sum.
                let others = made.members.iter().filter(|member| member.trial != pool[kept[at]]).cloned();
                let without = || room(&Blend { extend, members: others.collect() });
                let freed = if fewer == Fewer::LeastForSize {
                    (whole - without()).max(f64::MIN_POSITIVE)
                } else {
                    1.0
                };
                order.push((sum / freed, sum, at));
            }
            order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
            order.truncate(kept.len().div_ceil(AT_ONCE));
            let mut at = 0..;
            kept.retain(|_| at.next().is_some_and(|at| !order.iter().any(|(.., gone)| *gone == at)));
        }
    }
}

/// Whether the linear part goes on outside of the range: what that does to most of the best settings decides, not to the best alone, which may
/// be the one that it helps by chance (on one of the two trajectories of robot_kr300; on the other it doubles all errors).
fn goes_on(clamped: &[(f64, usize)], extended: &[(f64, usize)]) -> bool {
    let of = |k: usize| clamped.iter().find(|(_, other)| *other == k).map(|(error, _)| *error);
    let both = extended.iter().filter_map(|&(error, k)| Some((error, of(k)?)));
    let mut both: Vec<(f64, f64)> = both.collect();
    both.sort_by(|a, b| a.0.min(a.1).total_cmp(&b.0.min(b.1)));
    let mut ratios: Vec<f64> = both.iter().take(SETTINGS).map(|(with, without)| with / without).collect();
    ratios.sort_by(f64::total_cmp);
    ratios.get(ratios.len() / 2).is_some_and(|median| *median <= WORSE)
}
