//! Pieces that are done, and the fit that they make: what is missing or damaged is named, and so are processors that differ.

use super::{Plan, Work, open, refuse};
use crate::auto::AutoOutcome;
use crate::checkpoint;
use crate::fit::{FitError, Outcome};
use crate::linalg::portably;
use crate::progress::{Event, Progress, Silent};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// What there is to say of a piece of work that was done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HeadDone {
    /// Its number, from 0.
    pub head: usize,
    /// The processor, or `portable`, and the last bits that its kernels give.
    pub processor: String,
    /// Wall-clock time, files that were there already included.
    pub seconds: f64,
    /// Why it has to be left out, where it has.
    pub failed: Option<String>,
    /// The files that the merge needs.
    pub files: Vec<String>,
}

/// A merged fit.
#[derive(Clone, Debug)]
pub struct Merged {
    /// What the fit made.
    pub made: Made,
    /// The numbers of the pieces that each kind of processor did.
    pub processors: BTreeMap<String, Vec<usize>>,
}

/// What a fit makes.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one in a program")]
pub enum Made {
    /// With given options.
    Fit(Outcome),
    /// With options it chose.
    Auto(AutoOutcome),
}

impl Made {
    /// The model.
    pub fn model(&self) -> &crate::model::Model {
        match self {
            Self::Fit(outcome) => &outcome.model,
            Self::Auto(outcome) => &outcome.model,
        }
    }
}

impl Plan {
    /// The pieces that a folder has nothing of; what it has is checked by the merge.
    pub fn missing(&self, folder: &Path) -> Result<Vec<usize>, FitError> {
        let checkpoint = open(folder, &self.identity, &Silent)?;
        let mut missing = Vec::new();
        for k in 0..self.heads() {
            if !checkpoint.place(&done(k), &())?.exists() {
                missing.push(k);
            }
        }
        Ok(missing)
    }

    /// The model of all pieces. Those that are missing or damaged are named, all of them.
    pub fn merge(&self, folder: &Path, progress: &dyn Progress) -> Result<Merged, FitError> {
        portably(self.portable(), || self.merged(folder, progress))
    }

    fn merged(&self, folder: &Path, progress: &dyn Progress) -> Result<Merged, FitError> {
        let checkpoint = open(folder, &self.identity, progress)?;
        let (mut missing, mut damaged) = (Vec::new(), Vec::new());
        let mut processors: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for k in 0..self.heads() {
            let Some(done): Option<HeadDone> = checkpoint.get(&checkpoint.place(&done(k), &())?)? else {
                missing.push(k);
                continue;
            };
            let sound = |name: &String| {
                std::fs::read(folder.join(name)).is_ok_and(|bytes| checkpoint::whole(&bytes).is_ok())
            };
            if !done.files.iter().all(sound) {
                damaged.push(k);
            }
            processors.entry(done.processor).or_default().push(k);
        }
        if !missing.is_empty() || !damaged.is_empty() {
            let parts =
                [("missing", &missing), ("damaged", &damaged)].into_iter().filter(|(_, k)| !k.is_empty());
            let parts: Vec<String> =
                parts.map(|(what, heads)| format!("{what}: {}", ranges(heads))).collect();
            let count = self.heads();
            let reason = format!("of {count} heads {}; fit these with tha-train head", parts.join("; "));
            return Err(refuse(folder, reason));
        }
        let here = checkpoint::processor();
        if processors.keys().any(|processor| *processor != here) {
            let list =
                |(processor, heads): (&String, &Vec<usize>)| format!("{processor}: heads {}", ranges(heads));
            let list: Vec<String> = processors.iter().map(list).collect();
            progress.report(&Event::Warning(format!(
                "heads come from processors whose kernels differ in the last bits, so the model may differ from that of fit in them \
                 ({}; here: {here})",
                list.join("; ")
            )));
        }
        let made = match &self.work {
            Work::Heads(heads) => Made::Fit(heads.merge(self.sets(), &checkpoint, progress)?),
            Work::Settings { params, .. } => {
                Made::Auto(params.fit_with(&self.data, Some(&checkpoint), progress)?)
            }
        };
        Ok(Merged { made, processors })
    }
}

/// The name of what is said of piece `k`.
pub(super) fn done(k: usize) -> String {
    format!("done-{k:05}")
}

/// Increasing numbers as people write them: 0, 3-7, 12.
pub fn ranges(numbers: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let text = |&(first, last): &(usize, usize)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    runs.iter().map(text).collect::<Vec<_>>().join(", ")
}
