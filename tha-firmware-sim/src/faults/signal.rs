//! Faults of the signal: what comes from the sensors and the clock, and the loss of power.

use super::driver::{Answer, Driver, Event};
use super::{Bench, Kind, Trial};
use crate::random::Random;

impl Bench<'_> {
    /// One fault of the signal in the middle of a stretch.
    pub(super) fn signal(&self, kind: Kind, random: &mut Random) -> Trial {
        let channel = random.below(self.width);
        // Long enough for a stuck channel to be noticed, where the recording has room for that.
        let room = self.len() - self.before() - self.after();
        let length = match kind {
            Kind::Stuck => (self.runs[channel] + 1 + random.below(2 * self.memory)).min(room),
            Kind::Spike | Kind::TimeGap | Kind::PowerLoss => 1,
            _ => 1 + random.below(8.min(room)),
        };
        let stretch = self.stretch(length, random);
        let clean: Vec<Event> =
            stretch.chunks_exact(self.width).map(|row| Event::Sample(row.to_vec())).collect();
        let fault = self.before()..(self.before() + length).min(clean.len());
        let mut faulty = clean.clone();
        let scaling = self.file.model().inputs()[channel];
        let span =
            (scaling.high - scaling.low).max(scaling.high.abs().max(scaling.low.abs()) * 1e-3).max(1e-6);
        let far = span * (0.05 + random.signed().abs() as f32 * 10.0);
        let rail = if random.bits() & 1 == 0 { scaling.high + far } else { scaling.low - far };
        let stuck = stretch[(fault.start - 1) * self.width + channel];
        let sign = if random.bits() & 1 == 0 { f32::INFINITY } else { f32::NEG_INFINITY };
        for event in &mut faulty[fault.clone()] {
            let Event::Sample(row) = event else { continue };
            match kind {
                Kind::Dropped => *event = Event::Missing,
                Kind::NaN => row[channel] = f32::NAN,
                Kind::Infinite => row[channel] = sign,
                Kind::Stuck => row[channel] = stuck,
                Kind::TimeGap => *event = Event::AfterGap(row.clone()),
                Kind::PowerLoss => *event = Event::AfterPowerLoss(row.clone()),
                _ => row[channel] = rail,
            }
        }
        let run = |events: &[Event]| {
            let mut driver = Driver::new(self.file, &self.runs);
            events.iter().map(|event| driver.handle(event)).collect::<Vec<Answer>>()
        };
        judge(&run(&clean), &run(&faulty), fault.start, fault.end)
    }
}

/// Compares a faulty run with the clean one: the fault begins at `start` and is over at `end`.
pub(super) fn judge(clean: &[Answer], faulty: &[Answer], start: usize, end: usize) -> Trial {
    let mut trial = Trial::default();
    for (t, (clean, faulty)) in clean.iter().zip(faulty).enumerate().skip(start) {
        let affected = clean.outputs != faulty.outputs;
        // What the device says of the same output in the clean run too is no report of the fault.
        if trial.report.is_none() && (affected || faulty.report != clean.report) {
            trial.report = faulty.report.map(str::to_owned);
        }
        if affected {
            trial.affected += 1;
            trial.late += usize::from(trial.report.is_none());
            trial.recovery = (t + 1).saturating_sub(end);
        }
    }
    trial
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
        for (outputs, reports, affected, late, recovery, reported) in [
            ("abXXXfgh", "..!!!...", 3, 0, 1, true),
            ("abXXXfgh", "...!!...", 3, 1, 1, true),
            ("abXXXfgh", "........", 3, 3, 1, false),
            ("ab--efgX", "..!!....", 3, 0, 4, true),
            ("abcdefgh", "...!....", 0, 0, 0, true),
        ] {
            let trial = judge(&clean, &run(outputs, reports), 2, 4);
            let found = (trial.affected, trial.late, trial.recovery, trial.report.is_some());
            assert_eq!(found, (affected, late, recovery, reported), "{outputs} {reports}");
        }
    }

    #[test]
    fn an_output_that_was_flagged_anyway_is_not_silent() {
        let trial = judge(&run("abcd", ".!!."), &run("abXd", ".!!."), 2, 3);
        assert_eq!((trial.affected, trial.late, trial.report.is_some()), (1, 0, true));
    }
}
