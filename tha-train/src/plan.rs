//! Work that is divided among machines: a plan holds the data and the parameters, each piece is done by whoever takes it, and the
//! merged model has the bytes of a fit in one piece.
//!
//! | fit | pieces |
//! |---|---|
//! | ensemble whose heads are fitted apart from each other | its heads |
//! | full model, additive heads, adaptive subsets | one |
//! | automatic fit | settings that its search is known to want; planned again when they are there, those that it wants next |
//!
//! A folder that all machines see holds everything. The plan lies there so that a head reads the columns of its own inputs alone
//! (`store`); what was computed is kept as a checkpoint keeps it, one file per step, each with a checksum; `done-K` lists the files
//! of piece K. Pieces come in any order and any number of times: what is there already is not computed again. Merging is the fit
//! itself, which finds every piece in the folder.

mod heads;
mod merged;
mod store;

pub use merged::{HeadDone, Made, Merged, ranges};

use crate::auto::{AutoParams, Wanted};
use crate::checkpoint::{self, Checkpoint, Identity, PROCESSOR, PROGRAM};
use crate::data::Dataset;
use crate::fit::{FitError, FitParams, Validation};
use crate::linalg::portably;
use crate::progress::{Event, Progress};
use heads::Heads;
use merged::done;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Instant;

/// Data and parameters of a fit, and how many pieces of work it is.
///
/// ```
/// use tha_train::{FitParams, Made, Plan, Silent, SynthKind, SynthParams, generate};
///
/// let data = generate(&SynthParams { samples: 200, ..SynthParams::new(SynthKind::Volterra) })?.train;
/// let params = FitParams::new().memory(2).degree(2).max_rank(2).heads(2).subset_size(1);
/// let folder = std::env::temp_dir().join(format!("plan-{}", std::process::id()));
/// let plan = Plan::new(params.clone(), data.clone(), &folder, &Silent)?;
/// plan.write(&folder)?;
/// for k in (0..plan.heads()).rev() {
///     Plan::read(&folder, Some(&[k]))?.fit_head(&folder, k, &Silent)?;
/// }
/// let merged = Plan::read(&folder, None)?.merge(&folder, &Silent)?;
/// # std::fs::remove_dir_all(&folder)?;
/// let fitted = params.check(&data)?.fit(&data, &Silent)?;
/// assert_eq!(merged.made.model().to_bytes()?, fitted.model.to_bytes()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// In a part of a plan, inputs that none of its pieces looks at have empty columns.
    data: Dataset,
    /// Validation data, where they are data of their own.
    other: Option<Dataset>,
    work: Work,
    identity: Identity,
}

/// What is to be done.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Work {
    Heads(Box<Heads>),
    /// An automatic fit: each piece tries one setting of those that the search is known to want. What they leave are the checkpoints of
    /// `fit --auto`, so that the search itself merges them, and tries what is not there.
    Settings {
        params: Box<AutoParams>,
        wanted: Vec<Wanted>,
    },
}

impl Plan {
    /// Plans a fit in a folder, which is made where it does not exist; [`Plan::write`] puts the plan there. With portable parameters
    /// the heads have the same bytes on every processor.
    pub fn new(
        params: FitParams<'_>,
        data: Dataset,
        folder: &Path,
        progress: &dyn Progress,
    ) -> Result<Self, FitError> {
        let portable = params.portable;
        portably(portable, || {
            let (heads, identity) = Heads::new(&params, &data, folder)?;
            let identity = bound(identity, portable);
            let other = match params.validation {
                Validation::Data(other) => Some(other.clone()),
                _ => None,
            };
            let heads = heads.divide((&data, other.as_ref()), &open(folder, &identity, progress)?)?;
            Ok(Self { data, other, work: Work::Heads(Box::new(heads)), identity })
        })
    }

    /// Plans an automatic fit, or goes on where the pieces of an earlier plan for it are done.
    pub fn auto(
        params: AutoParams,
        data: Dataset,
        folder: &Path,
        progress: &dyn Progress,
    ) -> Result<Self, FitError> {
        if !params.repeats() {
            let expected = "a number: what a search of some `minutes` tries depends on the machine".into();
            return Err(FitError::Option { option: "trials", found: "none".into(), expected });
        }
        let portable = params.portable;
        portably(portable, || {
            // Known as the checkpoints of an automatic fit are, whatever its budgets and trials.
            let identity = bound(params.identity(&data)?, portable);
            let checkpoint = open(folder, &identity, progress)?;
            let mut wanted = match Self::read(folder, Some(&[])) {
                Ok(Self { work: Work::Settings { wanted, .. }, identity: same, .. }) if same == identity => {
                    wanted
                }
                _ => Vec::new(),
            };
            let next = params.wanted(&data, &checkpoint, progress)?.into_iter();
            let fresh: Vec<Wanted> = next.filter(|next| !wanted.contains(next)).collect();
            wanted.extend(fresh);
            let work = Work::Settings { params: Box::new(params), wanted };
            Ok(Self { data, other: None, work, identity })
        })
    }

    /// Whether the model has the same bytes on every processor.
    pub fn portable(&self) -> bool {
        match &self.work {
            Work::Heads(heads) => heads.params.portable,
            Work::Settings { params, .. } => params.portable,
        }
    }

    /// Pieces of work.
    pub fn heads(&self) -> usize {
        match &self.work {
            Work::Heads(heads) => heads.count,
            Work::Settings { wanted, .. } => wanted.len(),
        }
    }

    /// Whether there may be several pieces; otherwise the fit is one.
    pub fn divided(&self) -> bool {
        match &self.work {
            Work::Heads(heads) => heads.divided,
            Work::Settings { .. } => true,
        }
    }

    /// Whether a piece needs the columns of its own inputs alone.
    pub fn apart(&self) -> bool {
        matches!(&self.work, Work::Heads(heads) if heads.subsets.is_some())
    }

    /// The parameters of a fit that is not automatic.
    pub fn params(&self) -> Option<&FitParams<'static>> {
        match &self.work {
            Work::Heads(heads) => Some(&heads.params),
            Work::Settings { .. } => None,
        }
    }

    /// The data of the fit.
    pub fn data(&self) -> &Dataset {
        &self.data
    }

    fn sets(&self) -> (&Dataset, Option<&Dataset>) {
        (&self.data, self.other.as_ref())
    }

    /// Does piece `k`, or finds that it is done already.
    pub fn fit_head(&self, folder: &Path, k: usize, progress: &dyn Progress) -> Result<HeadDone, FitError> {
        portably(self.portable(), || self.head_done(folder, k, progress))
    }

    fn head_done(&self, folder: &Path, k: usize, progress: &dyn Progress) -> Result<HeadDone, FitError> {
        let start = Instant::now();
        if k >= self.heads() {
            let expected = match self.heads() {
                0 => "nothing: all is done, merge it".into(),
                count => format!("0 to {}", count - 1),
            };
            return Err(FitError::Option { option: "head", found: k.to_string(), expected });
        }
        let mut checkpoint = open(folder, &self.identity, progress)?;
        let failed = match &self.work {
            Work::Heads(heads) => heads.fit(k, self.sets(), &mut checkpoint, progress)?,
            Work::Settings { params, wanted } => {
                params.try_one(&self.data, &wanted[k], &checkpoint, progress)?
            }
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
}

fn refuse(folder: &Path, reason: String) -> FitError {
    FitError::Folder { folder: folder.display().to_string(), reason }
}

/// The identity of a plan: only a portable one says its kernels, for the others every piece says where it was done.
fn bound(mut identity: Identity, portable: bool) -> Identity {
    if !portable {
        identity.remove(PROCESSOR);
    }
    identity
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
