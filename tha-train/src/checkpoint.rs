//! Checkpoints: every finished piece of work in a file of its own, so that a run that was killed goes on where it was.
//!
//! A folder belongs to one run: `run.json` names its data, its options, the program and the processor. A file is named by its
//! stage and by a hash of all that its value depends on: the run, the stage, and what the stage started from. Everything
//! is deterministic, so what is loaded is what would have been computed, and the model comes out with the same bytes.
//!
//! Every file has a checksum. A damaged one is renamed, said in a warning, and computed again.

use crate::data::{CRC, Dataset};
use crate::fit::{FitError, Validation};
use crate::host::refusal;
use crate::linalg;
use crate::output::Staging;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

/// What `run.json` says: settings by the names their user knows.
pub(crate) type Identity = BTreeMap<String, String>;

/// The entry of `run.json` that holds the checksum of the others.
const CHECKSUM: &str = "checksum";
/// The entries of the program and of the processor.
pub(crate) const PROGRAM: &str = "program";
pub(crate) const PROCESSOR: &str = "processor";
/// What stands in the place of the processor where the kernels give the same bits on all of them.
const PORTABLE: &str = "portable";
/// The first bytes of a stored value; the hash in its name, the value and the checksum follow.
const MAGIC: [u8; 8] = *b"THA-KEPT";

const FOREIGN: &str = "it holds something else";

/// An open checkpoint folder.
pub(crate) struct Checkpoint<'a> {
    folder: PathBuf,
    /// Hash of the identity.
    run: u64,
    warn: Box<dyn Fn(String) + Sync + 'a>,
    /// Where only some inputs of the data are there, what numbers they have among all.
    columns: Option<Vec<usize>>,
    /// Names of the files that were read or written.
    touched: Mutex<Vec<String>>,
}

/// The identity of a run with these settings: they, the data, and whatever else may change a bit of the result.
pub(crate) fn identity(
    data: &Dataset,
    judge: Validation<'_>,
    settings: impl IntoIterator<Item = (&'static str, String)>,
) -> Identity {
    let judge = match judge {
        Validation::End(fraction) => format!("the last {fraction} of each record"),
        Validation::Folds(count) => format!("{count} folds"),
        Validation::Data(other) => format!("data {}", hexadecimal(other.fingerprint())),
    };
    let common = [
        ("data", hexadecimal(data.fingerprint())),
        ("validation on", judge),
        (PROGRAM, program()),
        (PROCESSOR, if linalg::portable() { PORTABLE.to_owned() } else { processor() }),
    ];
    settings.into_iter().chain(common).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The program and the libraries it was built from.
pub(crate) fn program() -> String {
    format!("{} {}", env!("CARGO_PKG_VERSION"), env!("THA_CODE"))
}

/// The processor and the last bits that the kernels chosen for it give; in portable fits, those that portable kernels give, so that a
/// machine on which they give others is seen.
pub(crate) fn processor() -> String {
    // A worker fits many heads.
    static KNOWN: [OnceLock<String>; 2] = [OnceLock::new(), OnceLock::new()];
    let portable = linalg::portable();
    let name = if portable { PORTABLE } else { std::env::consts::ARCH };
    let find = || format!("{name} {}", hexadecimal(linalg::fingerprint()));
    KNOWN[usize::from(portable)].get_or_init(find).clone()
}

/// The value of a stage: what is stored of it, or else what `compute` gives, which is then stored. `start` is everything
/// that the value depends on beside the identity of the run and the stage's name.
pub(crate) fn keep<T: Serialize + DeserializeOwned>(
    checkpoint: Option<&Checkpoint<'_>>,
    stage: &str,
    start: &impl Serialize,
    compute: impl FnOnce() -> Result<T, FitError>,
) -> Result<T, FitError> {
    let Some(checkpoint) = checkpoint else { return compute() };
    let place = checkpoint.place(stage, start)?;
    let value = match checkpoint.get(&place)? {
        Some(value) => value,
        None => {
            let value = compute()?;
            checkpoint.put(&place, &value)?;
            value
        }
    };
    let name = place.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    checkpoint.touched.lock().unwrap_or_else(PoisonError::into_inner).push(name);
    Ok(value)
}

/// Numbers of inputs among all inputs of the run.
pub(crate) fn numbered(checkpoint: Option<&Checkpoint<'_>>, inputs: &[usize]) -> Vec<usize> {
    match checkpoint.and_then(|checkpoint| checkpoint.columns.as_ref()) {
        Some(columns) => inputs.iter().map(|&input| columns[input]).collect(),
        None => inputs.to_vec(),
    }
}

/// Where a value is stored, and the hash that it begins with.
pub(crate) struct Place {
    path: PathBuf,
    hash: u64,
}

impl Place {
    pub(crate) fn exists(&self) -> bool {
        self.path.exists()
    }

    fn head(&self) -> Vec<u8> {
        [MAGIC, self.hash.to_le_bytes()].concat()
    }

    fn decode<T: DeserializeOwned>(&self, bytes: &[u8]) -> Result<T, &'static str> {
        let value = whole(bytes)?.strip_prefix(&self.head()[..]).ok_or(FOREIGN)?;
        postcard::from_bytes(value).map_err(|_| FOREIGN)
    }
}

/// What stands before the checksum of a stored value, if it is right.
pub(crate) fn whole(bytes: &[u8]) -> Result<&[u8], &'static str> {
    let (rest, checksum) = bytes.split_last_chunk().ok_or("it is cut short")?;
    (CRC.checksum(rest) == u64::from_le_bytes(*checksum)).then_some(rest).ok_or("its checksum is wrong")
}

/// Bytes with their checksum behind them.
pub(crate) fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.extend(CRC.checksum(&bytes).to_le_bytes());
    bytes
}

fn hexadecimal(hash: u64) -> String {
    format!("{hash:016x}")
}

impl<'a> Checkpoint<'a> {
    /// Opens or makes the folder for a run; one that belongs to another run is refused with the difference. Damaged files
    /// are reported to `warn`.
    pub(crate) fn open(
        folder: &Path,
        mut identity: Identity,
        warn: impl Fn(String) + Sync + 'a,
    ) -> Result<Self, FitError> {
        let touched = Mutex::default();
        let mut checkpoint =
            Self { folder: folder.into(), run: 0, warn: Box::new(warn), columns: None, touched };
        std::fs::create_dir_all(folder).map_err(|error| {
            checkpoint.refuse(format!("cannot be made: {}; use another folder", refusal(&error)))
        })?;
        checkpoint.run = CRC.checksum(&checkpoint.encode(&identity)?);
        let path = folder.join("run.json");
        let decode = |bytes: &[u8]| {
            let mut found: Identity = serde_json::from_slice(bytes).map_err(|_| FOREIGN)?;
            let checksum = found.remove(CHECKSUM);
            let encoded = postcard::to_allocvec(&found).map_err(|_| FOREIGN)?;
            let right = checksum == Some(hexadecimal(CRC.checksum(&encoded)));
            right.then_some(found).ok_or("its checksum is wrong")
        };
        let Some(found) = checkpoint.read(&path, decode)? else {
            identity.insert(CHECKSUM.into(), hexadecimal(checkpoint.run));
            let text =
                serde_json::to_vec_pretty(&identity).map_err(|error| checkpoint.refuse(error.to_string()))?;
            checkpoint.write(&path, &text)?;
            return Ok(checkpoint);
        };
        let mut names = identity.keys().chain(found.keys());
        if let Some(name) = names.find(|name| identity.get(*name) != found.get(*name)) {
            let text = |identity: &Identity| identity.get(name).cloned().unwrap_or_else(|| "nothing".into());
            return Err(checkpoint.refuse(format!(
                "it belongs to a run with `{name}` {}, this one has {}; use another folder",
                text(&found),
                text(&identity)
            )));
        }
        Ok(checkpoint)
    }

    /// From here on the work has only these inputs of the data.
    pub(crate) fn of_columns(&mut self, columns: Vec<usize>) {
        self.columns = Some(columns);
    }

    /// The files that values came from or went to, in no order.
    pub(crate) fn touched(&self) -> Vec<String> {
        self.touched.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where the value of a stage is stored.
    pub(crate) fn place(&self, stage: &str, start: &impl Serialize) -> Result<Place, FitError> {
        let hash = CRC.checksum(&self.encode(&(self.run, stage, start))?);
        Ok(Place { path: self.folder.join(format!("{stage}-{}.kept", hexadecimal(hash))), hash })
    }

    /// A stored value, if it is there and whole.
    pub(crate) fn get<T: DeserializeOwned>(&self, place: &Place) -> Result<Option<T>, FitError> {
        self.read(&place.path, |bytes| place.decode(bytes))
    }

    /// Stores a value.
    pub(crate) fn put(&self, place: &Place, value: &impl Serialize) -> Result<(), FitError> {
        self.write(&place.path, &sealed([place.head(), self.encode(value)?].concat()))
    }

    /// What a file holds, if it is there and whole. A damaged one is renamed, not deleted: it may be somebody's work.
    fn read<T>(
        &self,
        path: &Path,
        decode: impl FnOnce(&[u8]) -> Result<T, &'static str>,
    ) -> Result<Option<T>, FitError> {
        let damage = match std::fs::metadata(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            // Reading a pipe would wait for ever.
            Ok(found) if !found.is_file() => "it is not a regular file".to_owned(),
            _ => match std::fs::read(path) {
                Ok(bytes) => match decode(&bytes) {
                    Ok(value) => return Ok(Some(value)),
                    Err(damage) => damage.to_owned(),
                },
                Err(error) => format!("cannot be read: {error}"),
            },
        };
        let mut names = (1..).map(|number| path.with_added_extension(format!("damaged-{number}")));
        let aside = names.find(|name| name.symlink_metadata().is_err()).expect("the numbers do not end");
        std::fs::rename(path, &aside).map_err(|error| {
            let name = path.file_name().unwrap_or_default().display();
            self.refuse(format!("{name} is damaged: {damage}; it cannot be renamed: {error}; delete it"))
        })?;
        (self.warn)(format!(
            "{} is damaged: {damage}; it was renamed to {} and is made again",
            path.display(),
            aside.file_name().unwrap_or_default().display()
        ));
        Ok(None)
    }

    /// Writes a file; it appears whole or not at all.
    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), FitError> {
        let mut staging = Staging::new();
        staging
            .write(path, |to| to.write_all(bytes))
            .and_then(|()| staging.commit())
            .map_err(|error| self.refuse(error.to_string()))
    }

    fn encode(&self, value: &impl Serialize) -> Result<Vec<u8>, FitError> {
        postcard::to_allocvec(value).map_err(|error| self.refuse(error.to_string()))
    }

    fn refuse(&self, reason: String) -> FitError {
        FitError::Folder { folder: format!("checkpoint {}", self.folder.display()), reason }
    }
}

#[cfg(test)]
mod tests;
