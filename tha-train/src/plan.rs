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
mod settings;
mod store;

use crate::auto::{AutoOutcome, AutoParams};
use crate::checkpoint::{self, Checkpoint, Identity, PROCESSOR, PROGRAM};
use crate::data::Dataset;
use crate::fit::{FitError, FitParams, Outcome, Validation};
use crate::progress::{Event, Progress, Silent};
use heads::Heads;
use serde::{Deserialize, Serialize};
use settings::Settings;
use std::collections::BTreeMap;
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
/// let plan = Plan::new(params.clone(), data.clone(), &folder, false, &Silent)?;
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
    Settings(Settings),
}

/// What there is to say of a piece of work that was done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HeadDone {
    /// Its number, from 0.
    pub head: usize,
    /// The processor and the last bits that its kernels give.
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
    /// Plans a fit in a folder, which is made where it does not exist; [`Plan::write`] puts the plan there. A `portable` plan takes heads only from machines whose
    /// kernels give the bits of this one.
    pub fn new(
        params: FitParams<'_>,
        data: Dataset,
        folder: &Path,
        portable: bool,
        progress: &dyn Progress,
    ) -> Result<Self, FitError> {
        let (heads, mut identity) = Heads::new(&params, &data, folder)?;
        bind(&mut identity, portable);
        let other = match params.judge() {
            Validation::Data(other) => Some(other.clone()),
            _ => None,
        };
        let heads = heads.divide((&data, other.as_ref()), &open(folder, &identity, progress)?)?;
        Ok(Self { data, other, work: Work::Heads(Box::new(heads)), identity })
    }

    /// Plans an automatic fit, or goes on where the pieces of an earlier plan for it are done.
    pub fn auto(
        params: AutoParams,
        data: Dataset,
        folder: &Path,
        portable: bool,
        progress: &dyn Progress,
    ) -> Result<Self, FitError> {
        let mut identity = Settings::identity(&params, &data)?;
        bind(&mut identity, portable);
        let checkpoint = open(folder, &identity, progress)?;
        let before = match Self::read(folder, Some(&[])) {
            Ok(Self { work: Work::Settings(before), identity: same, .. }) if same == identity => {
                before.wanted
            }
            _ => Vec::new(),
        };
        let settings = Settings::new(params, before, &data, &checkpoint, progress)?;
        Ok(Self { data, other: None, work: Work::Settings(settings), identity })
    }

    /// Pieces of work.
    pub fn heads(&self) -> usize {
        match &self.work {
            Work::Heads(heads) => heads.count,
            Work::Settings(settings) => settings.wanted.len(),
        }
    }

    /// Whether there may be several pieces; otherwise the fit is one.
    pub fn divided(&self) -> bool {
        match &self.work {
            Work::Heads(heads) => heads.divided,
            Work::Settings(_) => true,
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
            Work::Settings(_) => None,
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
            Work::Settings(settings) => settings.try_one(k, &self.data, &checkpoint, progress)?,
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
            Work::Settings(settings) => {
                Made::Auto(settings.params.fit_with(&self.data, Some(&checkpoint), progress)?)
            }
        };
        Ok(Merged { made, processors })
    }
}

/// The name of what is said of piece `k`.
fn done(k: usize) -> String {
    format!("done-{k:05}")
}

fn refuse(folder: &Path, reason: String) -> FitError {
    FitError::Plan { folder: folder.display().to_string(), reason }
}

/// Whether the processor is a part of the identity; otherwise every piece says where it was done.
fn bind(identity: &mut Identity, portable: bool) {
    if !portable {
        identity.remove(PROCESSOR);
    }
}

/// Opens the folder of a plan with this program.
fn open<'a>(
    folder: &Path,
    identity: &Identity,
    progress: &'a dyn Progress,
) -> Result<Checkpoint<'a>, FitError> {
    let here = checkpoint::processor();
    if let Some(level) = identity.get(PROCESSOR).filter(|level| **level != here) {
        let reason = format!(
            "the plan is portable and its kernels are {level}; those of this machine, {here}, give other last bits; \
             use machines of the first kind, or plan without --portable"
        );
        return Err(refuse(folder, reason));
    }
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
