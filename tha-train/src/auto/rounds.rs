//! Which settings the search tries, in which order. Some methods list settings that depend only on the results so far; those named
//! `try_...` go on from the result of each step.
//!
//! The next setting never depends on time or threads, so a search that was cut short is the beginning of the longer one.

use super::bases::{fades, longest};
use super::blend::{Blend, Case, Member, Way};
use super::deliver::size_alone;
use super::ground::{Part, SHORT};
use super::polynomial;
use super::search::Search;
use super::setting::{MANY, PIECES, Setting};
use super::trial::{RIDGES, WEAK};
use crate::fit::FitError;
use crate::solve::mean_and_error;
use crate::stage::Basis;
use std::mem;

/// Rank at which settings are compared first.
const RANK: usize = 4;
/// Weights of products against linear terms that are tried.
const GAMMAS: [f64; 2] = [0.3, 3.0];
/// Pieces of maps, weight of products and degree with which a basis is looked at closely, at the first rank.
const SHAPES: [(Option<usize>, f64, usize); 5] = [
    (Some(PIECES), GAMMAS[0], 2),
    (None, GAMMAS[1], 2),
    (Some(PIECES), 1.0, 1),
    (None, GAMMAS[0], 3),
    (Some(PIECES), GAMMAS[1], 2),
];
/// Most columns of x of a linear model, and how many it may have in the first pass.
pub(super) const LINEAR: usize = 800;
const FEW: usize = 250;
/// Lags from which a linear model is also tried with priors that decay over them.
const DECAYS: usize = 20;
/// A step helps if the error falls to this part of what it was; settings are level if they differ by less.
pub(super) const HELPS: f64 = 0.99;
/// Rounds, where there is time, and bases and settings in one of them that are looked at closely.
const ROUNDS: usize = 6;
pub(super) const CLOSER: usize = 3;
/// Bases from whose best settings steps are tried at the end. A short recording cannot tell so many settings apart (cascaded_tanks: nested
/// 0.227 without, 0.258 with; a resonator of 65 000 rows: 0.278 and 0.247).
const LEADING: usize = 4;
/// Bases that are worse than the best by this factor are far behind.
const FAR: f64 = 1.25;
/// Bases that are tried with products in the first round.
const QUADRATIC: usize = 8;
/// The heaviest heads that get smaller settings beside them where there is no room, and how many of these each gets. With three and three
/// in the place of eight: cascaded_tanks 0.262 for 0.250, bosch_engine2 0.252 for 0.238, gas_turbine 0.595 for 0.591 on blocks within 16 KiB.
const HEAVIEST: usize = 8;
const SMALLER: usize = 8;
/// Room for so many of the best setting is enough: smaller ones wait until the other settings were tried.
const TIGHT: f64 = 3.0;
/// With half of the inputs a setting may be worse by this factor before a quarter of them is tried.
const FEWER: f64 = 1.05;

impl Search<'_> {
    /// Tries settings on all inputs, round by round. With many inputs, bases of many features take long, so the first pass leaves them out.
    /// The rounds after it look closely at the next best bases.
    pub(super) fn rounds(&mut self, bases: &[Setting]) -> Result<(), FitError> {
        for (most, round) in std::iter::once((FEW, 1)).chain((1..=ROUNDS).map(|round| (LINEAR, round))) {
            self.attempt_all(self.linear(bases, most))?;
            self.attempt_all(self.quadratic(if round == 1 { QUADRATIC } else { usize::MAX }))?;
            if round == 1 {
                self.try_longer_averages()?;
                self.try_fewer_inputs()?;
            }
            self.attempt_all(self.closer(round))?;
            self.attempt_all(self.more_rank())?;
            if most == FEW {
                self.try_few_lags(bases)?;
                if self.is_settled() {
                    return Ok(());
                }
            }
            if round == 1 {
                self.try_steps(None)?;
            }
            if self.is_tight() {
                self.try_smaller()?;
            }
        }
        if self.ground.rows.len() >= SHORT {
            for basis in self.leading_bases() {
                self.try_steps(Some(basis))?;
            }
        }
        self.decided()?;
        self.try_weaker_ridges()?;
        self.try_smaller()
    }

    /// Linear models of all bases, those of long lags also with priors that decay.
    fn linear(&self, bases: &[Setting], most: usize) -> Vec<Setting> {
        let mut linear = Vec::new();
        for setting in bases.iter().filter(|setting| setting.columns(self.inputs()) <= most) {
            linear.push(setting.clone());
            let memory = setting.memory();
            if memory >= DECAYS {
                let taus = [memory as f64 / 10.0, memory as f64 / 4.0];
                linear.extend(taus.map(|tau| Setting { decay: Some(tau), ..setting.clone() }));
            }
        }
        linear
    }

    /// Quadratic models of the best bases.
    fn quadratic(&self, count: usize) -> Vec<Setting> {
        let bases = self.best_bases(count).into_iter();
        let quadratic = bases.map(|basis| Setting::polynomial(basis, None, GAMMAS[0], 2, RANK));
        quadratic.filter(|setting| setting.is_small(self.inputs())).collect()
    }

    /// Averages over more samples than the common history has, as long as they are clearly better. Where they are only level they are
    /// dropped, because they follow the drift of the blocks beside the one that is left out.
    fn try_longer_averages(&mut self) -> Result<(), FitError> {
        while let Some((_, best)) = self.best(|setting| setting.longer().is_some())
            && let Some(next) = best.longer()
            && next.is_small(self.inputs())
            && next.basis.bank(1).is_ok_and(|bank| bank.history() <= longest(self.ground.data))
            && !self.tried(&next)
        {
            let best = best.clone();
            self.attempt_all(vec![next.clone()])?;
            if self.is_clearly_better(&next, &best) {
                continue;
            }
            if let Some(k) = self.trials.iter().position(|trial| trial.setting == next) {
                self.trials.remove(k);
                self.failures.push((next, "averages over half as many samples are about as good".into()));
            }
            break;
        }
        Ok(())
    }

    /// The best setting with half of the inputs, a quarter and so on, as long as that does not hurt.
    fn try_fewer_inputs(&mut self) -> Result<(), FitError> {
        let p = self.inputs();
        let mut keep = if p >= MANY { p } else { 1 };
        while let Some((least, best)) = self.best(|_| true)
            && keep > 2
        {
            keep = keep.div_ceil(2);
            let next = Setting { keep: Some(keep), decay: None, ..best.clone() };
            if !next.is_small(p) {
                break;
            }
            self.attempt_all(vec![next])?;
            let found = self.best(|setting| setting.keep == Some(keep));
            if found.is_none_or(|(found, _)| found > FEWER * least) {
                break;
            }
        }
        Ok(())
    }

    /// The best bases that earlier rounds did not look at, with maps, other weights of products and one degree more.
    fn closer(&self, round: usize) -> Vec<Setting> {
        let keep = self.kept();
        let setting = |basis, (maps, gamma, degree)| {
            let all = Setting::polynomial(basis, maps, gamma, degree, RANK);
            if all.is_small(self.inputs()) { all } else { Setting { keep, ..all } }
        };
        let bases = self.best_bases(round * CLOSER).into_iter().skip((round - 1) * CLOSER);
        let all = bases.flat_map(|basis| SHAPES.map(|shape| setting(basis, shape)));
        all.filter(|setting| setting.is_small(self.inputs())).collect()
    }

    /// How many inputs stand for all of them where these are too many, if the best setting has only some. Of the numbers that are level
    /// this is the largest, because maps and other filters may see more in the inputs.
    fn kept(&self) -> Option<usize> {
        let (least, _) = self.best(|_| true).filter(|(_, best)| best.keep.is_some())?;
        let some = self.ranked(|setting| setting.keep.is_some()).into_iter();
        let level = some.filter(|&k| HELPS * self.error(&self.trials[k]) <= least);
        level.filter_map(|k| self.trials[k].setting.keep).max()
    }

    /// The best networks with more rank and, where there are several outputs, with one network for all of them.
    fn more_rank(&self) -> Vec<Setting> {
        let best = self.ranked(|setting| setting.degree > 1).into_iter().take(CLOSER);
        let own = best.map(|k| Setting { rank: 2 * RANK, ..self.trials[k].setting.clone() });
        let ways = self.outputs().min(2);
        own.flat_map(|own| [own.clone(), Setting { separate: false, ..own }].into_iter().take(ways)).collect()
    }

    /// Polynomials of few lags, whatever their linear models promise: where one of them is the truth, all other bases only come near it.
    fn try_few_lags(&mut self, bases: &[Setting]) -> Result<(), FitError> {
        let p = self.inputs();
        let few = |setting: &&Setting| setting.is_plain() && setting.columns(p) <= polynomial::COLUMNS;
        let cubic = |basis| Setting::polynomial(basis, None, GAMMAS[0], 3, 2 * RANK);
        let quadratic = |setting: &Setting| Setting::polynomial(setting.basis, None, GAMMAS[0], 2, RANK);
        self.attempt_all(bases.iter().filter(few).map(quadratic).collect())?;
        let best = self.best(|setting| setting.degree == 2 && polynomial::is_one(setting, p));
        if let Some(basis) = best.map(|(_, best)| best.basis) {
            self.attempt_all(vec![cubic(basis)])?;
            self.find_polynomial();
        }
        Ok(())
    }

    /// One step in every direction from the best setting, or the best one of a basis, as long as that helps.
    fn try_steps(&mut self, basis: Option<Basis>) -> Result<(), FitError> {
        let mut before = f64::INFINITY;
        while self.ground.without != Some(Part::Steps)
            && let Some((error, best)) = self.best(|setting| basis.is_none_or(|basis| setting.basis == basis))
            && error < HELPS * before
        {
            before = error;
            let mut next = best.neighbours(self.inputs(), self.outputs());
            next.retain(|setting| fades(self.ground.data, &setting.basis));
            self.attempt_all(next)?;
        }
        Ok(())
    }

    /// Whether the best setting by itself takes so much of the budgets that there is no room for several.
    fn is_tight(&self) -> bool {
        self.best(|_| true).is_some_and(|(_, best)| TIGHT * self.part(best) > 1.0)
    }

    fn try_smaller(&mut self) -> Result<(), FitError> {
        self.smaller().into_iter().try_for_each(|setting| self.attempt(setting))
    }

    /// Smaller settings beside the heaviest heads that exceed the budgets, or an equal share of them, so that there is room for others.
    fn smaller(&self) -> Vec<Setting> {
        let wanted = self.wanted();
        let within = |(setting, share): (&Setting, f64)| {
            let mut smaller = setting.smaller(self.inputs(), self.outputs());
            smaller.retain(|setting| setting.is_small(self.inputs()) && self.part(setting) <= share);
            smaller.sort_by(|a, b| self.part(b).total_cmp(&self.part(a)));
            smaller.into_iter().take(SMALLER)
        };
        let shares = [1.0, 1.0 / wanted.len() as f64];
        let heads = wanted.iter().take(HEAVIEST).flat_map(|setting| shares.map(|share| (setting, share)));
        heads.filter(|(setting, share)| self.part(setting) > *share).flat_map(within).collect()
    }

    /// Weaker ridges for the best settings that were tried before it was known that they are wanted.
    fn try_weaker_ridges(&mut self) -> Result<(), FitError> {
        for k in self.ranked(|_| true).into_iter().take(CLOSER) {
            let trial = &self.trials[k];
            if trial.ridges == RIDGES && self.wants_weaker(trial) {
                self.attempt_with(trial.setting.clone(), &WEAK)?;
            }
        }
        Ok(())
    }

    /// The bases of the best trials, each once, in turns of one of each kind that is not far behind: the best are often nearly the same.
    /// Among those that are level with the best, the ones with the fewest features come first: maps and higher degrees of them take a
    /// fraction of the time.
    fn best_bases(&self, count: usize) -> Vec<Basis> {
        let ranked = self
            .ranked(|setting| setting.degree <= 2 && setting.maps.is_none() && setting.gamma != GAMMAS[1]);
        let mut bases: Vec<(f64, Basis)> = Vec::new();
        for k in ranked {
            let basis = self.trials[k].setting.basis;
            if bases.iter().all(|(_, other)| *other != basis) {
                bases.push((self.error(&self.trials[k]), basis));
            }
        }
        let least = bases.first().map_or(0.0, |(error, _)| *error);
        let level = bases.iter().take_while(|(error, _)| HELPS * error <= least).count();
        bases[..level].sort_by_key(|(_, basis)| basis.features());
        let kind = |basis: &Basis| mem::discriminant(basis);
        let turn = |k: usize| bases[..k].iter().filter(|(_, other)| kind(other) == kind(&bases[k].1)).count();
        let mut order: Vec<usize> = (0..bases.len()).collect();
        order.sort_by_key(|&k| (bases[k].0 > FAR * least, turn(k)));
        order.into_iter().map(|k| bases[k].1).take(count).collect()
    }

    /// The bases of the best settings.
    fn leading_bases(&self) -> Vec<Basis> {
        let mut bases: Vec<Basis> = Vec::new();
        for k in self.ranked(|_| true) {
            let basis = self.trials[k].setting.basis;
            if bases.len() < LEADING && !bases.contains(&basis) {
                bases.push(basis);
            }
        }
        bases
    }

    /// Whether a setting is better than another by more than a standard error of their difference over the blocks.
    fn is_clearly_better(&self, one: &Setting, other: &Setting) -> bool {
        let find = |setting: &Setting| self.trials.iter().find(|trial| trial.setting == *setting);
        let (Some(one), Some(other)) = (find(one), find(other)) else { return false };
        let gain = |block: usize| self.error_on(other, &[block]) - self.error_on(one, &[block]);
        let (gain, deviation) =
            mean_and_error(&self.ground.all.iter().copied().map(gain).collect::<Vec<f64>>());
        gain > deviation && self.error(one) < HELPS * self.error(other)
    }

    /// The heads that would be delivered if there were room for all, the heaviest first.
    fn wanted(&self) -> Vec<Setting> {
        let (ground, room) = (self.ground, &|_: &Blend| 0.0);
        let case = Case { ground, trials: &self.trials, blocks: &ground.all, room };
        let made = case.blend(Way::Best);
        let mut members = made.map_or(Vec::new(), |made| made.members);
        let weight = |member: &Member| member.weights.iter().sum::<f64>();
        members.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
        members.iter().map(|member| self.trials[member.trial].setting.clone()).collect()
    }

    /// The part of the budgets that a setting takes by itself.
    fn part(&self, setting: &Setting) -> f64 {
        let (bytes, operations) = size_alone(setting, true, self.ground.data);
        let (flash, macs) = self.effort.budgets;
        (bytes as f64 / flash as f64).max(operations as f64 / macs as f64)
    }
}
