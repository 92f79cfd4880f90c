//! Whether a file can be written, before the work that goes into it.

use super::place::{Place, same};
use super::{Kind, OutputError, Staging, temporary_beside};
use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

/// Says early that a file cannot be written, before hours of work go into it: because of its place, because the command
/// reads it, or because it is there and no earlier output of this kind.
pub fn check<'a>(
    path: &Path,
    kind: Kind,
    force: bool,
    read: impl IntoIterator<Item = &'a Path>,
) -> Result<(), OutputError> {
    if read.into_iter().any(|other| same(path, other)) {
        return Err(OutputError::because(path, "it is read by this command; give another name"));
    }
    let Place::File(file) = Place::of(path)? else { return Ok(()) };
    temporary_beside(&file).map(drop).map_err(|error| OutputError::new(path, &error))?;
    check_replaceable(path, &file, kind, force)
}

/// Says early that files cannot be written into a directory, which need not exist yet.
pub fn check_folder(path: &Path, files: &[(&str, Kind)], force: bool) -> Result<(), OutputError> {
    let mut probe = Staging::new();
    probe.folder(path)?;
    temporary_beside(&path.join("file")).map(drop).map_err(|error| OutputError::new(path, &error))?;
    files.iter().try_for_each(|(name, kind)| check(&path.join(name), *kind, force, []))
}

/// Refuses to replace a read-only file and, unless told by `force`, what is no earlier output. `path` is what the user
/// calls the file.
pub(super) fn check_replaceable(
    path: &Path,
    file: &Path,
    kind: Kind,
    force: bool,
) -> Result<(), OutputError> {
    let refused = |error: io::Error| OutputError::new(path, &error);
    let Ok(found) = fs::metadata(file) else { return Ok(()) };
    // The mode counts for the superuser too, who could write into any file.
    if found.permissions().readonly() {
        return Err(OutputError::because(path, "it is read-only; make it writable or give another name"));
    }
    OpenOptions::new().write(true).open(file).map_err(refused)?;
    if force || found.len() == 0 || Kind::of(file) == Some(kind) {
        return Ok(());
    }
    let reason =
        "it is there and is no earlier output of this kind; give another name, or `force` to replace it";
    Err(OutputError::because(path, reason))
}
