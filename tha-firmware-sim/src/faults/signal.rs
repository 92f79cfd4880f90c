//! Faults of the signal: what comes from the sensors and the clock, and the loss of power.

use super::driver::{Answer, Event};
use super::{Bench, Kind, Trial};
use crate::model_file::ModelFile;
use rand::RngExt;
use rand::rngs::ChaCha8Rng;
use std::ops::Range;

impl Bench<'_> {
    /// One fault of the signal in the middle of a stretch.
    pub(super) fn signal(&self, kind: Kind, random: &mut ChaCha8Rng) -> Trial {
        let mut channel = random.random_range(0..self.width);
        // A channel may saturate beyond its training range, or just where the range ends because it did so in training too:
        // then only its standing still gives it away, as with a stuck one.
        let stands_still = kind == Kind::Stuck || (kind == Kind::Saturated && random.random());
        let room = self.len() - self.before() - self.after();
        if stands_still && self.runs[channel] >= room {
            // It stood still that long in the recording itself; one that did not is a fairer trial.
            channel = (0..self.width).min_by_key(|&channel| self.runs[channel]).unwrap_or(channel);
        }
        let length = match kind {
            Kind::Spike => 1,
            _ if stands_still => (self.runs[channel] + 1 + random.random_range(0..2 * self.memory)).min(room),
            _ => random.random_range(1..=8.min(room)),
        };
        let stretch = self.stretch(length, random);
        let clean = self.events(stretch);
        let fault = self.before()..(self.before() + length).min(clean.len());
        let batch = self.file.batch();
        let scaling = &batch.spec().inputs[channel];
        let span =
            (scaling.high - scaling.low).max(scaling.high.abs().max(scaling.low.abs()) * 1e-3).max(1e-6);
        let far = if stands_still { 0.0 } else { span * (0.05 + random.random::<f32>() * 10.0) };
        let rail = if random.random() { scaling.high + far } else { scaling.low - far };
        let last = stretch[(fault.start - 1) * self.width + channel];
        let infinity = if random.random() { f32::INFINITY } else { f32::NEG_INFINITY };
        let mut faulty = clean.clone();
        for event in &mut faulty[fault.clone()] {
            let Event::Sample(row) = event else { continue };
            match kind {
                Kind::Dropped => *event = Event::Missing,
                Kind::TimeGap | Kind::PowerLoss => *event = Event::Nothing,
                Kind::NaN => {
                    row.iter_mut().for_each(|value| {
                        if random.random_range(0..4) == 0 {
                            *value = f32::NAN;
                        }
                    });
                    row[channel] = f32::NAN;
                }
                Kind::Infinite => row[channel] = infinity,
                Kind::Stuck => row[channel] = last,
                _ => row[channel] = rail,
            }
        }
        if let Some(event) = faulty.get_mut(fault.end)
            && let Event::Sample(row) = event
        {
            match kind {
                Kind::TimeGap => *event = Event::AfterGap(row.clone()),
                Kind::PowerLoss => *event = Event::AfterPowerLoss(row.clone()),
                _ => {}
            }
        }
        let patience = if stands_still { self.runs[channel] } else { 0 };
        let mut expected = self.run(self.file, &clean);
        if matches!(kind, Kind::TimeGap | Kind::PowerLoss) {
            self.restart(self.file, clean, fault.end, &mut expected);
        }
        judge(&expected, &self.run(self.file, &faulty), fault, patience, &self.tolerance)
    }

    /// Filters that start over never are what they would have been: of a device that restarts with the event `at` its first output and
    /// all later ones are `expected` to be as if it had started then.
    pub(super) fn restart(
        &self,
        file: &ModelFile,
        mut events: Vec<Event>,
        at: usize,
        expected: &mut Vec<Answer>,
    ) {
        if let Some(event) = events.get_mut(at)
            && let Event::Sample(row) = event
        {
            *event = Event::AfterGap(row.clone());
        }
        let first = (at + file.model().settled()).saturating_sub(1).min(events.len());
        expected.truncate(first);
        expected.extend(self.run(file, &events).split_off(first));
    }
}

/// Compares a faulty run with the clean one. At most `patience` wrong outputs may come without a word of the device, and
/// none after the fault.
pub(super) fn judge(
    clean: &[Answer],
    faulty: &[Answer],
    fault: Range<usize>,
    patience: usize,
    tolerance: &[f32],
) -> Trial {
    let mut trial = Trial::default();
    for (t, (clean, faulty)) in clean.iter().zip(faulty).enumerate().skip(fault.start) {
        let affected = differs(clean.outputs.as_deref(), faulty.outputs.as_deref(), tolerance);
        // What the device says of the same output in the clean run too is no report of the fault.
        if trial.report.is_none() && (affected || faulty.report != clean.report) {
            trial.report = faulty.report.map(str::to_owned);
        }
        if affected {
            trial.affected += 1;
            trial.recovery = (t + 1).saturating_sub(fault.end);
            // A missing output deceives nobody.
            if faulty.outputs.is_some() && faulty.report.is_none() {
                trial.late += 1;
                trial.silent |= t >= fault.end;
            }
        }
    }
    trial.silent |= trial.late > patience || (trial.affected > 0 && trial.report.is_none());
    trial
}

/// Whether an output is missing, or differs in a bit and by more than is tolerated.
fn differs(clean: Option<&[u32]>, faulty: Option<&[u32]>, tolerance: &[f32]) -> bool {
    let (Some(clean), Some(faulty)) = (clean, faulty) else { return clean != faulty };
    let far = |((a, b), tolerance): ((&u32, &u32), &f32)| {
        let difference = (f32::from_bits(*a) - f32::from_bits(*b)).abs();
        a != b && (difference > *tolerance || difference.is_nan())
    };
    clean.iter().zip(faulty).zip(tolerance).any(far)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(outputs: &str, reports: &str) -> Vec<Answer> {
        let answer = |(y, report)| Answer {
            outputs: if y == '-' { None } else { Some(vec![u32::from(y)]) },
            report: if report == '!' { Some("held") } else { None },
        };
        outputs.chars().zip(reports.chars()).map(answer).collect()
    }

    #[test]
    fn trials_are_judged() {
        let clean = run("abcdefgh", "........");
        for (outputs, reports, affected, late, recovery, silent) in [
            ("abXXXfgh", "..!!!...", 3, 0, 1, false),
            ("abXXXfgh", "...!!...", 3, 1, 1, false),
            ("abXXXfgh", "....!...", 3, 2, 1, true),
            ("abXXXfgh", "..!!....", 3, 1, 1, true),
            ("abXXefgh", "..!.....", 2, 1, 0, false),
            ("abXXXfgh", "........", 3, 3, 1, true),
            ("ab--efgX", "..!!...!", 3, 0, 4, false),
            ("ab--efgh", "........", 2, 0, 0, true),
            ("abcdefgh", "...!....", 0, 0, 0, false),
        ] {
            let trial = judge(&clean, &run(outputs, reports), 2..4, 1, &[0.0]);
            let found = (trial.affected, trial.late, trial.recovery, trial.silent);
            assert_eq!(found, (affected, late, recovery, silent), "{outputs} {reports}");
        }
    }

    #[test]
    fn an_output_that_was_flagged_anyway_is_not_silent() {
        let trial = judge(&run("abcd", ".!!."), &run("abXd", ".!!."), 2..3, 0, &[0.0]);
        assert_eq!((trial.affected, trial.late, trial.report.is_some(), trial.silent), (1, 0, true, false));
    }
}
