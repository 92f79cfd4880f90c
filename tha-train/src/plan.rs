//! Work that is divided among machines: a plan holds the data and the parameters, each head is fitted by whoever takes it, and the
//! merged model has the bytes of a fit in one piece.
//!
//! A folder that all machines see holds everything. `plan.kept` is the plan; what a head needs to compute is kept as a
//! checkpoint keeps it, one file per step, each with a checksum; `done-K` lists the files of head K. Heads come
//! in any order and any number of times: what is there already is not computed again.
//!
//! Merging is the fit itself, which finds every head in the folder. Heads that depend on each other (additive ones, adaptive subsets)
//! and full models are one piece of work, head 0.

use crate::checkpoint::{self, Checkpoint, Identity, PROCESSOR, PROGRAM};
use crate::data::Dataset;
use crate::ensemble::{self, Apart, Strategy};
use crate::fit::{FitError, FitParams, Outcome, ValidFitParams, Validation};
use crate::host::refusal;
use crate::output::Staging;
use crate::progress::{Event, Progress};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

/// The first bytes of a plan.
const MAGIC: [u8; 8] = *b"THA-PLAN";
const FILE: &str = "plan.kept";

/// Data and parameters of a fit, and how many pieces of work it is.
///
/// ```
/// use tha_train::{FitParams, Plan, Silent, SynthKind, SynthParams, generate};
///
/// let data = generate(&SynthParams { samples: 200, ..SynthParams::new(SynthKind::Volterra) })?.train;
/// let params = FitParams::new().memory(2).degree(2).max_rank(2).heads(2).subset_size(1);
/// let folder = std::env::temp_dir().join(format!("plan-{}", std::process::id()));
/// let plan = Plan::new(params.clone(), data.clone(), &folder, &Silent)?;
/// for k in (0..plan.heads()).rev() {
///     Plan::read(&folder)?.fit_head(&folder, k, &Silent)?;
/// }
/// let merged = Plan::read(&folder)?.merge(&folder, &Silent)?;
/// # std::fs::remove_dir_all(&folder)?;
/// let fitted = params.check(&data)?.fit(&data, &Silent)?;
/// assert_eq!(merged.outcome.model.to_bytes()?, fitted.model.to_bytes()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    params: FitParams<'static>,
    data: Dataset,
    judge: Judge,
    identity: Identity,
    heads: usize,
    divided: bool,
    /// The inputs of each head, where they are known: a head then looks at their columns alone.
    subsets: Option<Vec<Vec<usize>>>,
}

/// [`Validation`] with the data it is about.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Judge {
    End(f64),
    Folds(usize),
    Data(Dataset),
}

/// What there is to say of a head that was fitted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HeadDone {
    /// Its number, from 0.
    pub head: usize,
    /// The processor and the last bits that its kernels give.
    pub processor: String,
    /// Wall-clock time, files that were there already included.
    pub seconds: f64,
    /// Why it has to be left out of the ensemble, where it has.
    pub failed: Option<String>,
    /// The files that the merge needs.
    pub files: Vec<String>,
}

/// A merged fit.
#[derive(Clone, Debug)]
pub struct Merged {
    /// The outcome of the fit.
    pub outcome: Outcome,
    /// The numbers of the heads that each kind of processor fitted.
    pub processors: BTreeMap<String, Vec<usize>>,
}

impl Plan {
    /// Plans a fit in a folder, which is made where it does not exist.
    pub fn new(
        params: FitParams<'_>,
        data: Dataset,
        folder: &Path,
        progress: &dyn Progress,
    ) -> Result<Self, FitError> {
        let judge = match params.judge() {
            Validation::End(fraction) => Judge::End(fraction),
            Validation::Folds(count) => Judge::Folds(count),
            Validation::Data(other) => Judge::Data(other.clone()),
        };
        let unstorable =
            |error: postcard::Error| refuse(folder, format!("the plan cannot be stored: {error}"));
        // The way through bytes leaves the borrowed validation data behind.
        let stored = postcard::to_allocvec(&params).map_err(unstorable)?;
        let params = postcard::from_bytes(&stored).map_err(unstorable)?;
        let identity = Identity::new();
        let mut plan = Self { params, data, judge, identity, heads: 1, divided: false, subsets: None };
        let valid = plan.valid(&plan.params, &plan.data)?;
        let mut identity = valid.identity(&plan.data);
        // Every head says where it was fitted.
        identity.remove(PROCESSOR);
        // What is kept does not depend on these, but a folder holds one plan.
        identity.insert("range".into(), format!("{:?}", valid.range));
        identity.insert("refit".into(), valid.refit.to_string());
        identity.insert("coverage".into(), valid.coverage.to_string());
        if let Some(ensemble) = &valid.ensemble {
            let budgets = format!("{:?} {:?}", ensemble.budget_flash, ensemble.budget_macs);
            identity.insert("budgets".into(), budgets);
        }
        let apart = match &valid.ensemble {
            None => Apart::None,
            Some(ensemble) => {
                let checkpoint = open(folder, &identity, progress)?;
                ensemble::apart(&plan.data, &valid, ensemble, &checkpoint)?
            }
        };
        plan.identity = identity;
        (plan.heads, plan.divided, plan.subsets) = match apart {
            Apart::None => (1, false, None),
            Apart::Count(count) => (count, true, None),
            Apart::Subsets(subsets) => (subsets.len(), true, Some(subsets)),
        };
        open(folder, &plan.identity, progress)?;
        let bytes = plan.to_bytes()?;
        let mut staging = Staging::new();
        let written = staging.write(&folder.join(FILE), |to| to.write_all(&bytes));
        written.and_then(|()| staging.commit()).map_err(|error| FitError::Plan {
            folder: folder.display().to_string(),
            reason: error.to_string(),
        })?;
        Ok(plan)
    }

    /// The plan in a folder.
    pub fn read(folder: &Path) -> Result<Self, FitError> {
        let bytes = std::fs::read(folder.join(FILE)).map_err(|error| {
            let reason = refusal(&error);
            refuse(folder, format!("no plan: {FILE} cannot be read: {reason}; make it with tha-train plan"))
        })?;
        Self::from_bytes(&bytes)
            .map_err(|reason| refuse(folder, format!("{FILE}: {reason}; plan again, into another folder")))
    }

    /// The bytes of the plan, for those who have no folder in common.
    pub fn to_bytes(&self) -> Result<Vec<u8>, FitError> {
        let content = postcard::to_allocvec(&(checkpoint::program(), self))
            .map_err(|error| FitError::Model(error.to_string()))?;
        Ok(checkpoint::sealed([&MAGIC[..], &content].concat()))
    }

    /// The plan in its bytes; the error is the finding.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let content = checkpoint::whole(bytes)?.strip_prefix(&MAGIC[..]).ok_or("it is not a plan")?;
        let foreign = |program: &str| {
            format!(
                "it was made by program {program}, this one is {}; use the same everywhere",
                checkpoint::program()
            )
        };
        // Another program may store its parameters in another way: its name comes first.
        let (program, content): (String, _) =
            postcard::take_from_bytes(content).map_err(|_| "it is not a plan".to_owned())?;
        if program != checkpoint::program() {
            return Err(foreign(&program));
        }
        postcard::from_bytes(content).map_err(|_| "it is not a plan".to_owned())
    }

    /// Pieces of work.
    pub fn heads(&self) -> usize {
        self.heads
    }

    /// Whether the heads of the ensemble are the pieces; otherwise the fit is one piece.
    pub fn divided(&self) -> bool {
        self.divided
    }

    /// The data of the fit.
    pub fn data(&self) -> &Dataset {
        &self.data
    }

    fn valid<'a>(&'a self, params: &FitParams<'a>, data: &Dataset) -> Result<ValidFitParams<'a>, FitError> {
        let validation = match &self.judge {
            Judge::End(fraction) => Validation::End(*fraction),
            Judge::Folds(count) => Validation::Folds(*count),
            Judge::Data(other) => Validation::Data(other),
        };
        params.clone().validation(validation).check(data)
    }

    /// Fits head `k`, or finds that it is fitted already.
    pub fn fit_head(&self, folder: &Path, k: usize, progress: &dyn Progress) -> Result<HeadDone, FitError> {
        let start = Instant::now();
        if k >= self.heads {
            let expected = format!("0 to {}", self.heads - 1);
            return Err(FitError::Option { option: "head", found: k.to_string(), expected });
        }
        let mut checkpoint = open(folder, &self.identity, progress)?;
        let (mut params, mut data) = (self.params.clone(), Cow::Borrowed(&self.data));
        if let Some(subset) = self.subsets.as_ref().map(|subsets| &subsets[k]) {
            // Scaling and filtering the inputs of others would take longer than many a head.
            params = params.subsets(Strategy::Given(vec![(0..subset.len()).collect()]));
            data = Cow::Owned(self.data.with_inputs(subset));
            checkpoint = checkpoint.of_columns(subset.clone());
        }
        let valid = self.valid(&params, &data)?;
        let failed = match &valid.ensemble {
            Some(ensemble) if self.divided => {
                ensemble::fit_head(&data, &valid, ensemble, k, &checkpoint, progress)?
            }
            _ => valid.fit_with(&data, Some(&checkpoint), progress).map(|_| None)?,
        };
        let place = checkpoint.place(&done(k), &())?;
        let mut files = checkpoint.touched();
        files.sort();
        files.dedup();
        let found: Option<HeadDone> = checkpoint.get(&place)?;
        // Whoever comes second changes nothing, not even who was first.
        if let Some(found) = found.filter(|found| found.files == files) {
            return Ok(found);
        }
        let processor = checkpoint::processor();
        let done = HeadDone { head: k, processor, seconds: start.elapsed().as_secs_f64(), failed, files };
        checkpoint.put(&place, &done)?;
        Ok(done)
    }

    /// The model of all heads. Those that are missing or damaged are named, all of them.
    pub fn merge(&self, folder: &Path, progress: &dyn Progress) -> Result<Merged, FitError> {
        let valid = self.valid(&self.params, &self.data)?;
        let checkpoint = open(folder, &self.identity, progress)?;
        let (mut missing, mut damaged) = (Vec::new(), Vec::new());
        let mut processors: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for k in 0..self.heads {
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
            let reason =
                format!("of {} heads {}; fit these with tha-train head", self.heads, parts.join("; "));
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
        Ok(Merged { outcome: valid.fit_with(&self.data, Some(&checkpoint), progress)?, processors })
    }
}

/// The name of what is said of head `k`.
fn done(k: usize) -> String {
    format!("done-{k:05}")
}

fn refuse(folder: &Path, reason: String) -> FitError {
    FitError::Plan { folder: folder.display().to_string(), reason }
}

/// Opens the folder of a plan with this program.
fn open<'a>(
    folder: &Path,
    identity: &Identity,
    progress: &'a dyn Progress,
) -> Result<Checkpoint<'a>, FitError> {
    let mut identity = identity.clone();
    identity.insert(PROGRAM.into(), checkpoint::program());
    Checkpoint::open(folder, identity, |text| progress.report(&Event::Warning(text)))
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
