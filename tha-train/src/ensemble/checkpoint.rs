//! Checkpoints: every finished head in a file of its own, so that a run that was killed goes on where it was.
//!
//! A folder belongs to one run: `run.json` says to which data and options. Everything is deterministic, so what is
//! loaded is what would have been computed, and the model comes out with the same bytes.

use crate::fit::judged::HeldOut;
use crate::fit::{FitError, Judge};
use crate::host::refusal;
use crate::output::Staging;
use crate::solve::Fit;
use crate::tt::{Core, TensorTrain};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// An open checkpoint folder.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    folder: PathBuf,
    /// Before the name of every stage: which rows of the data it belongs to.
    scope: String,
}

/// What `run.json` says: settings by name, among them the hash of the data.
pub(crate) type Identity = BTreeMap<String, String>;

/// A judge in an identity.
pub(crate) fn judge_in_words(judge: Judge<'_>) -> String {
    match judge {
        Judge::End(fraction) => format!("the last {fraction} of each record"),
        Judge::Folds(count) => format!("{count} folds"),
        Judge::Data(other) => format!("data {:016x}", other.fingerprint()),
    }
}

#[derive(Serialize, Deserialize)]
struct StoredCore {
    left: usize,
    q: usize,
    right: usize,
    data: Vec<f64>,
}

#[derive(Serialize, Deserialize)]
struct StoredFit {
    cores: Vec<StoredCore>,
    ridge: f64,
    decay: Option<f64>,
    sweeps: usize,
    train_residual: f64,
    validation_residual: Option<f64>,
}

/// The contents of a file: what it is of, and the fits.
#[derive(Serialize, Deserialize)]
struct Entry {
    inputs: Vec<usize>,
    fits: Vec<StoredFit>,
}

impl Checkpoint {
    /// Opens or makes the folder for a run; one that belongs to another run is refused with the difference.
    pub(crate) fn open(folder: &Path, identity: &Identity) -> Result<Self, FitError> {
        let refuse = |reason: String| FitError::Checkpoint { folder: folder.display().to_string(), reason };
        std::fs::create_dir_all(folder)
            .map_err(|error| refuse(format!("cannot be made: {}; use another folder", refusal(&error))))?;
        let path = folder.join("run.json");
        match std::fs::read(&path) {
            Ok(bytes) => {
                let found: Identity = serde_json::from_slice(&bytes).map_err(|error| {
                    refuse(format!("run.json cannot be read ({error}); use another folder"))
                })?;
                let names = identity.keys().chain(found.keys());
                let other = names.into_iter().find(|name| identity.get(*name) != found.get(*name));
                if let Some(name) = other {
                    let text =
                        |identity: &Identity| identity.get(name).cloned().unwrap_or_else(|| "nothing".into());
                    return Err(refuse(format!(
                        "it belongs to a run with {name} {}, this one has {}; use another folder",
                        text(&found),
                        text(identity)
                    )));
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let text = serde_json::to_vec_pretty(identity).map_err(|error| refuse(error.to_string()))?;
                let mut staging = Staging::new();
                staging.write(&path, |to| to.write_all(&text)).map_err(|error| refuse(error.to_string()))?;
                staging.commit().map_err(|error| refuse(error.to_string()))?;
            }
            Err(error) => return Err(refuse(format!("run.json cannot be read: {}", refusal(&error)))),
        }
        Ok(Self { folder: folder.into(), scope: String::new() })
    }

    /// The same folder for a choice among some rows: with folds there are several in one run.
    pub(super) fn within(&self, rows: &[usize], held_out: HeldOut) -> Self {
        let mut hasher = DefaultHasher::new();
        (rows, format!("{held_out:?}")).hash(&mut hasher);
        Self { folder: self.folder.clone(), scope: format!("{:016x}-", hasher.finish()) }
    }

    fn path(&self, stage: &str) -> PathBuf {
        self.folder.join(format!("{}{stage}.postcard", self.scope))
    }

    /// What was stored for a stage, if it is there, whole and of the same inputs.
    pub(super) fn load(&self, stage: &str, inputs: &[usize]) -> Option<Vec<Fit>> {
        self.find(stage).filter(|(found, _)| found == inputs).map(|(_, fits)| fits)
    }

    /// What was stored for a stage, if it is there and whole, with its inputs.
    pub(super) fn find(&self, stage: &str) -> Option<(Vec<usize>, Vec<Fit>)> {
        let entry: Entry = self.load_value(stage)?;
        let fit = |fit: StoredFit| {
            let core =
                |core: StoredCore| Core { left: core.left, q: core.q, right: core.right, data: core.data };
            Fit {
                train: TensorTrain { cores: fit.cores.into_iter().map(core).collect() },
                ridge: fit.ridge,
                decay: fit.decay,
                sweeps: fit.sweeps,
                train_residual: fit.train_residual,
                validation_residual: fit.validation_residual,
                log: Vec::new(),
            }
        };
        let sound = entry
            .fits
            .iter()
            .all(|fit| fit.cores.iter().all(|core| core.data.len() == core.left * core.q * core.right));
        sound.then(|| (entry.inputs, entry.fits.into_iter().map(fit).collect()))
    }

    /// Stores the fits of a stage; the file appears whole or not at all.
    pub(super) fn store(&self, stage: &str, inputs: &[usize], fits: &[Fit]) -> Result<(), FitError> {
        let core = |core: &Core| StoredCore {
            left: core.left,
            q: core.q,
            right: core.right,
            data: core.data.clone(),
        };
        let fit = |fit: &Fit| StoredFit {
            cores: fit.train.cores.iter().map(core).collect(),
            ridge: fit.ridge,
            decay: fit.decay,
            sweeps: fit.sweeps,
            train_residual: fit.train_residual,
            validation_residual: fit.validation_residual,
        };
        self.store_value(stage, &Entry { inputs: inputs.to_vec(), fits: fits.iter().map(fit).collect() })
    }

    /// What was stored under a name, if it is there and whole.
    pub(crate) fn load_value<T: DeserializeOwned>(&self, stage: &str) -> Option<T> {
        postcard::from_bytes(&std::fs::read(self.path(stage)).ok()?).ok()
    }

    /// Stores a value under a name; the file appears whole or not at all.
    pub(crate) fn store_value(&self, stage: &str, value: &impl Serialize) -> Result<(), FitError> {
        let refuse =
            |reason: String| FitError::Checkpoint { folder: self.folder.display().to_string(), reason };
        let bytes = postcard::to_allocvec(value).map_err(|error| refuse(error.to_string()))?;
        let mut staging = Staging::new();
        staging
            .write(&self.path(stage), |to| to.write_all(&bytes))
            .map_err(|error| refuse(error.to_string()))?;
        staging.commit().map_err(|error| refuse(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tt::Normal;

    fn identity(rank: &str) -> Identity {
        [("data".to_owned(), "17".to_owned()), ("--max-rank".to_owned(), rank.to_owned())].into()
    }

    #[test]
    fn fits_come_back_to_the_bit() {
        let folder = tempfile::tempdir().unwrap();
        let checkpoint = Checkpoint::open(&folder.path().join("new"), &identity("3")).unwrap();
        let train = TensorTrain::random(2, 5, &[2, 3], &mut Normal::new(1));
        let fit = Fit {
            train,
            ridge: 1e-7,
            decay: Some(3.0),
            sweeps: 4,
            train_residual: 0.1,
            validation_residual: None,
            log: vec![],
        };
        checkpoint.store("head-00001", &[1, 2], std::slice::from_ref(&fit)).unwrap();
        let back = checkpoint.load("head-00001", &[1, 2]).unwrap();
        assert_eq!(back[0].train, fit.train);
        assert_eq!((back[0].ridge, back[0].decay, back[0].sweeps), (1e-7, Some(3.0), 4));
        assert!(checkpoint.load("head-00001", &[1, 3]).is_none(), "other inputs");
        assert!(checkpoint.load("head-00002", &[1, 2]).is_none(), "not there");
        std::fs::write(checkpoint.path("head-00001"), b"junk").unwrap();
        assert!(checkpoint.load("head-00001", &[1, 2]).is_none(), "a broken file is computed again");
    }

    #[test]
    fn another_run_is_refused_with_the_difference() {
        let folder = tempfile::tempdir().unwrap();
        Checkpoint::open(folder.path(), &identity("3")).unwrap();
        Checkpoint::open(folder.path(), &identity("3")).unwrap();
        let message = Checkpoint::open(folder.path(), &identity("4")).unwrap_err().to_string();
        assert!(
            message.contains("--max-rank 3") && message.contains("has 4") && !message.contains('\n'),
            "{message}"
        );
    }
}
