//! Checkpoints come back to the bit, find every damage and know their run.

use super::*;
use crate::data::tests::counting;
use crate::network::{Network, Normal};
use crate::solve::{Fit, Settings};
use std::sync::Mutex;

/// A folder, what runs in it depend on, and what it warned of.
struct Folder {
    place: tempfile::TempDir,
    identity: Identity,
    warnings: Mutex<Vec<String>>,
}

impl Folder {
    fn new() -> Self {
        let identity = identity(&counting(&[20]), Validation::Folds(3), [("max_rank", "3".to_owned())]);
        Self { place: tempfile::tempdir().unwrap(), identity, warnings: Mutex::default() }
    }

    fn open(&self) -> Checkpoint<'_> {
        let warn = |text| self.warnings.lock().unwrap().push(text);
        Checkpoint::open(self.place.path(), self.identity.clone(), warn).unwrap()
    }

    /// The one warning since the last call.
    fn warning(&self) -> Option<String> {
        let mut warnings = self.warnings.lock().unwrap();
        assert!(warnings.len() < 2, "{warnings:?}");
        warnings.pop()
    }

    fn file(&self, start: &str) -> PathBuf {
        let mut files = std::fs::read_dir(self.place.path()).unwrap().map(|entry| entry.unwrap());
        let found = files.find(|file| {
            let name = file.file_name().into_string().unwrap();
            name.starts_with(start) && !name.contains("damaged")
        });
        found.unwrap().path()
    }
}

/// What a stage that started from `start` gives, and whether it had to be computed.
fn stage(checkpoint: &Checkpoint<'_>, start: &[usize]) -> (Vec<usize>, bool) {
    let mut computed = false;
    let value = keep(Some(checkpoint), "stage", &start, || {
        computed = true;
        Ok([start, &[7]].concat())
    });
    (value.unwrap(), computed)
}

#[test]
fn fits_come_back_to_the_bit() {
    let folder = Folder::new();
    let checkpoint = folder.open();
    let fit = Fit {
        network: Network::random(2, 5, &[2, 3], &mut Normal::new(1)),
        settings: Settings { ranks: vec![2, 3], gamma: 0.3, ridge: 1e-7, decay: Some(3.0), exact: false },
        sweeps: 4,
        train_residual: 0.1,
    };
    keep(Some(&checkpoint), "head", &(), || Ok(fit.clone())).unwrap();
    let back: Fit = keep(Some(&checkpoint), "head", &(), || Err(FitError::Stopped)).unwrap();
    assert_eq!(back.network, fit.network);
    assert_eq!((back.settings, back.sweeps), (fit.settings, 4));
}

#[test]
fn a_value_belongs_to_what_its_stage_started_from() {
    let folder = Folder::new();
    let checkpoint = folder.open();
    for (start, computed) in [([1, 2], true), ([1, 3], true), ([1, 2], false), ([1, 3], false)] {
        assert_eq!(stage(&checkpoint, &start), ([&start[..], &[7]].concat(), computed), "{start:?}");
    }
    // One whole file in the place of another.
    let taken = folder.file("stage");
    let bytes = std::fs::read(&taken).unwrap();
    std::fs::remove_file(&taken).unwrap();
    std::fs::write(folder.file("stage"), bytes).unwrap();
    assert_eq!(
        (stage(&checkpoint, &[1, 2]).0, stage(&checkpoint, &[1, 3]).0),
        (vec![1, 2, 7], vec![1, 3, 7])
    );
    assert!(folder.warning().unwrap().contains("it holds something else"));
}

#[test]
fn every_flipped_bit_is_found_and_every_cut() {
    let folder = Folder::new();
    stage(&folder.open(), &[1, 2]);
    // Every bit of a value; of the longer list of settings one in every byte.
    for (name, step) in [("stage", 1), ("run.json", 9)] {
        let path = folder.file(name);
        let whole = std::fs::read(&path).unwrap();
        let flipped = (0..8 * whole.len()).step_by(step).map(|bit| {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            bytes
        });
        let cut = (0..whole.len()).step_by(step).map(|length| whole[..length].to_vec());
        for bytes in flipped.chain(cut) {
            std::fs::write(&path, &bytes).unwrap();
            let (value, computed) = stage(&folder.open(), &[1, 2]);
            assert_eq!((value, computed), (vec![1, 2, 7], name == "stage"));
            let warning = folder.warning().expect("a warning");
            assert!(warning.contains(path.to_str().unwrap()) && !warning.contains('\n'), "{warning}");
            assert_eq!(std::fs::read(&path).unwrap(), whole, "made again");
            let aside = path.with_added_extension("damaged-1");
            assert_eq!(std::fs::read(&aside).unwrap(), bytes);
            std::fs::remove_file(aside).unwrap();
        }
    }
}

#[test]
fn directories_in_the_place_of_files_are_moved_away() {
    let folder = Folder::new();
    stage(&folder.open(), &[1, 2]);
    for name in ["stage", "run.json", "stage", "run.json"] {
        let path = folder.file(name);
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert_eq!(stage(&folder.open(), &[1, 2]).0, [1, 2, 7]);
        assert!(folder.warning().unwrap().contains("not a regular file"));
        assert_eq!(stage(&folder.open(), &[1, 2]), (vec![1, 2, 7], false));
        assert_eq!(folder.warning(), None);
    }
}

#[test]
fn another_run_is_refused_with_the_difference() {
    let folder = Folder::new();
    folder.open();
    folder.open();
    for name in ["max_rank", "data", "validation on", "program", "processor"] {
        let mut other = folder.identity.clone();
        let before = other.insert(name.into(), "another".into()).unwrap();
        let error = Checkpoint::open(folder.place.path(), other, |_| {}).err().unwrap().to_string();
        let expected = format!("it belongs to a run with `{name}` {before}, this one has another; ");
        assert!(error.contains(&expected) && !error.contains('\n'), "{error}");
    }
    assert_eq!(folder.warning(), None);
}
