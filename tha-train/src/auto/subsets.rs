//! Heads on subsets of the inputs, behind the settings on all of them.

use super::rounds::{CLOSER, HELPS};
use super::search::Search;
use super::setting::{MANY, Setting};
use crate::fit::FitError;
use crate::network::Normal;

/// Subsets of the inputs for heads.
const SUBSETS: usize = 12;
/// Draws for each of them: few inputs have few distinct subsets.
const DRAWS: usize = 20;

/// Half of the inputs, but no fewer than three.
fn half(inputs: usize) -> usize {
    (inputs / 2).max(3).min(inputs)
}

impl Search<'_> {
    /// The best setting and those that are level with it.
    fn level(&self) -> Vec<usize> {
        let ranked = self.ranked(|_| true);
        let Some(&best) = ranked.first() else { return Vec::new() };
        let least = self.error(&self.trials[best]);
        let level = |k: &usize| *k == best || HELPS * self.error(&self.trials[*k]) <= least;
        ranked.into_iter().take(CLOSER).filter(level).collect()
    }

    /// Heads on subsets of the inputs with so many settings.
    fn heads(&self, settings: usize) -> usize {
        let usual = if self.inputs() < MANY { 0 } else { SUBSETS * settings };
        self.effort.heads.unwrap_or(usual)
    }

    /// The work that is left to do for them.
    pub(super) fn work_of_heads(&self) -> f64 {
        let level = self.level();
        let inputs = (0..half(self.inputs())).collect();
        let one = |inputs: &Vec<usize>, k: &usize| {
            self.work(&Setting { inputs: Some(inputs.clone()), ..self.trials[*k].setting.clone() })
        };
        let sum: f64 = level.iter().map(|k| one(&inputs, k)).sum();
        sum / level.len().max(1) as f64 * self.heads(level.len()) as f64
    }

    /// Heads on half of the inputs, with the best setting and those that are level with it: which of these is the best is chance.
    pub(super) fn subsets(&mut self) -> Result<(), FitError> {
        self.decided()?;
        let level = self.level();
        let level: Vec<(Setting, Vec<f64>)> =
            level.iter().map(|&k| (self.trials[k].setting.clone(), self.trials[k].ridges.clone())).collect();
        let (p, count) = (self.inputs(), self.heads(level.len()));
        let subsets = count.div_ceil(level.len().max(1));
        let size = half(p);
        let mut normal = Normal::new(self.ground.seed.wrapping_add(1));
        let mut drawn: Vec<Vec<usize>> = Vec::new();
        for _ in 0..DRAWS * subsets {
            let mut order: Vec<(f64, usize)> = (0..p).map(|input| (normal.draw(), input)).collect();
            order.sort_by(|a, b| a.0.total_cmp(&b.0));
            let mut inputs: Vec<usize> = order[..size].iter().map(|(_, input)| *input).collect();
            inputs.sort_unstable();
            if drawn.len() == subsets || drawn.contains(&inputs) {
                continue;
            }
            drawn.push(inputs);
        }
        // Subset by subset, so that fewer heads are the first of more.
        let heads = drawn.iter().flat_map(|inputs| level.iter().map(move |level| (level, inputs)));
        for ((setting, ridges), inputs) in heads.take(count) {
            let setting = Setting { inputs: Some(inputs.clone()), ..setting.clone() };
            self.attempt_with(setting, ridges)?;
        }
        Ok(())
    }
}
