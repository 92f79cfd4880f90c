//! The tables of the stage: sections in runs, features with positions.

use alloc::{vec, vec::Vec};

use super::super::{BuildError, Feature, Filter, Resonator, Signal, Source, Stage};
use crate::facts::Shape;
use crate::stage::{FeatureRecord, Run};

/// Where a section stands: the position of its first row, and how long the rows are.
pub(super) type Place = (usize, usize);

impl Stage {
    /// Features that are not mapped, which must come first.
    pub(super) fn plain(&self) -> Result<usize, BuildError> {
        let plain = self.features.iter().take_while(|feature| feature.nodes.is_empty()).count();
        match self.features.iter().skip(plain).position(|feature| feature.nodes.is_empty()) {
            Some(at) => Err(BuildError::FeatureOrder { feature: plain + at }),
            None => Ok(plain),
        }
    }

    /// Neighbours with equal filters and consecutive sources, and where every section stands.
    pub(super) fn runs(&self, inputs: usize, window: usize) -> Result<(Vec<Run>, Vec<Place>), BuildError> {
        let mut runs: Vec<Run> = Vec::new();
        // For each section its run and its place in it; positions are known when a run is complete.
        let mut members: Vec<(usize, usize)> = Vec::new();
        let mut starts: Vec<usize> = Vec::new();
        let mut feeding = vec![false; self.sections.len()];
        for section in &self.sections {
            if let Source::Section(earlier) = section.source
                && let Some(feeds) = feeding.get_mut(earlier)
            {
                *feeds = true;
            }
        }
        // The run that feeds the last one.
        let mut from = None;
        for (index, section) in self.sections.iter().enumerate() {
            let missing = BuildError::Source { what: "section", index };
            let (kind, coefficients) = match section.filter {
                Filter::Average { alpha } => (Run::AVERAGE, [alpha, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
                Filter::Resonator(Resonator { state: [a, b, c, d], gain, all_pass: [e, f, g] }) => {
                    let feeds = feeding.get(index).copied().unwrap_or(false);
                    (if feeds { Run::FEEDING } else { Run::RESONATOR }, [a, b, c, d, gain, e, f, g])
                }
            };
            let (source, run) = match section.source {
                Source::Input(input) if input < inputs => (input, None),
                Source::Section(earlier) if earlier < index => {
                    let (run, own) = members.get(earlier).copied().unwrap_or_default();
                    let (start, of) = (starts.get(run).copied().unwrap_or(0), runs.get(run));
                    let last = of.map_or(0, |of| of.values() - of.count as usize);
                    (window + start + last + own, Some(run))
                }
                _ => return Err(missing),
            };
            let last = runs.len().wrapping_sub(1);
            match runs.last_mut() {
                // A run that is still growing cannot feed itself: then the next one begins.
                Some(growing)
                    if (growing.kind, growing.coefficients) == (kind, coefficients)
                        && growing.source as usize + growing.count as usize == source
                        && from == run
                        && run != Some(last) =>
                {
                    members.push((last, growing.count as usize));
                    growing.count += 1;
                }
                _ => {
                    starts.push(runs.iter().map(Run::values).sum());
                    members.push((runs.len(), 0));
                    runs.push(Run { kind, source: source as u32, count: 1, coefficients });
                    from = run;
                }
            }
        }
        let place = |&(run, own): &(usize, usize)| {
            let count = runs.get(run).map_or(0, |run| run.count as usize);
            (window + starts.get(run).copied().unwrap_or(0) + own, count)
        };
        let places = members.iter().map(place).collect();
        Ok((runs, places))
    }

    pub(super) fn records(
        &self,
        shape: Shape,
        window: usize,
        places: &[Place],
    ) -> Result<Vec<FeatureRecord>, BuildError> {
        let position = |signal: Signal| match signal {
            Signal::Lag { input, lag } if input < shape.inputs && lag < shape.memory => {
                Some(lag * shape.inputs + input).filter(|&position| position < window)
            }
            Signal::Lag { .. } => None,
            Signal::Section { section, output } => {
                let &(place, count) = places.get(section)?;
                match self.sections.get(section)?.filter {
                    Filter::Average { .. } if output == 0 => Some(place),
                    Filter::Resonator(_) if output < 2 => Some(place + output * count),
                    _ => None,
                }
            }
        };
        let record = |(index, feature): (usize, &Feature)| {
            let missing = BuildError::Source { what: "feature", index };
            let minus = match feature.minus {
                None => FeatureRecord::NONE as usize,
                Some(minus) => position(minus).ok_or(missing.clone())?,
            };
            let plus = position(feature.plus).ok_or(missing)?;
            let (low, high) = (feature.low, feature.high);
            Ok(FeatureRecord { plus: plus as u32, minus: minus as u32, low, high })
        };
        self.features.iter().enumerate().map(record).collect()
    }
}
