//! Files that appear whole or not at all: everything is written to temporary files beside the targets and renamed at
//! the end.

use crate::host::refusal;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A file that could not be written; the message is one line.
#[derive(Debug, thiserror::Error)]
#[error("{path}: cannot be written: {reason}")]
pub struct OutputError {
    /// The file.
    pub path: String,
    /// The operating system's words.
    pub reason: String,
}

impl OutputError {
    fn new(path: &Path, error: &std::io::Error) -> Self {
        Self::because(path, &refusal(error))
    }

    fn because(path: &Path, reason: &str) -> Self {
        Self { path: path.display().to_string(), reason: reason.into() }
    }
}

/// Output files in the making. Dropped without [`Staging::commit`], nothing of it remains.
#[derive(Default)]
pub struct Staging {
    files: Vec<(NamedTempFile, PathBuf)>,
    /// Directories that were made for them, outermost first.
    made: Vec<PathBuf>,
}

impl Staging {
    /// No files yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a directory for the files to come, and those above it that are missing.
    pub fn folder(&mut self, path: &Path) -> Result<(), OutputError> {
        let mut missing: Vec<&Path> = path.ancestors().take_while(|folder| !exists(folder)).collect();
        while let Some(folder) = missing.pop() {
            std::fs::create_dir(folder).map_err(|error| OutputError::new(path, &error))?;
            self.made.push(folder.into());
        }
        if path.is_dir() {
            Ok(())
        } else {
            Err(OutputError::because(path, "it is not a directory; name one"))
        }
    }

    /// Writes one more file through `content`.
    pub fn write(
        &mut self,
        path: &Path,
        content: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
    ) -> Result<(), OutputError> {
        refuse_directory(path)?;
        let refused = |error: std::io::Error| OutputError::new(path, &error);
        let temporary = temporary_beside(path).map_err(refused)?;
        let mut writer = BufWriter::with_capacity(1 << 18, temporary);
        content(&mut writer).map_err(refused)?;
        let temporary = writer.into_inner().map_err(|error| refused(error.into_error()))?;
        self.files.push((temporary, path.into()));
        Ok(())
    }

    /// Puts all files in place, once every one of them is safe on the disk.
    pub fn commit(mut self) -> Result<(), OutputError> {
        for (file, path) in &self.files {
            file.as_file().sync_all().map_err(|error| OutputError::new(path, &error))?;
        }
        for (file, path) in std::mem::take(&mut self.files) {
            file.persist(&path).map_err(|error| OutputError::new(&path, &error.error))?;
        }
        self.made.clear();
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        self.files.clear();
        for folder in self.made.iter().rev() {
            // Only an empty directory goes: somebody else may have put something there.
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// Says early that a file cannot be written, before hours of work go into it.
pub fn check_writable(path: &Path) -> Result<(), OutputError> {
    refuse_directory(path)?;
    temporary_beside(path).map(drop).map_err(|error| OutputError::new(path, &error))
}

/// Refuses to write over a file that the command reads.
pub fn check_not_read<'a>(path: &Path, read: impl IntoIterator<Item = &'a Path>) -> Result<(), OutputError> {
    let same = |other: &Path| matches!((path.canonicalize(), other.canonicalize()), (Ok(a), Ok(b)) if a == b);
    if read.into_iter().any(same) {
        return Err(OutputError::because(path, "it is read by this command; give another name"));
    }
    Ok(())
}

/// Says early that no file can be written into a directory, which need not exist yet.
pub fn check_folder(path: &Path) -> Result<(), OutputError> {
    let mut probe = Staging::new();
    probe.folder(path)?;
    temporary_beside(&path.join("file")).map(drop).map_err(|error| OutputError::new(path, &error))
}

fn refuse_directory(path: &Path) -> Result<(), OutputError> {
    if path.is_dir() {
        return Err(OutputError::because(path, "it is a directory; name a file"));
    }
    Ok(())
}

/// The empty path is the current directory.
fn exists(path: &Path) -> bool {
    path.as_os_str().is_empty() || path.exists()
}

/// A temporary file in the directory of the target: a rename within a directory is atomic.
fn temporary_beside(path: &Path) -> std::io::Result<NamedTempFile> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".tha-");
    #[cfg(unix)]
    {
        // An ordinary file, not a private one: the process's umask narrows this as it does for any new file.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_or_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let entries = || std::fs::read_dir(folder.path()).unwrap().count();
        let mut staging = Staging::new();
        staging.write(&folder.path().join("a"), |w| w.write_all(b"1")).unwrap();
        staging.write(&folder.path().join("b"), |_| Err(std::io::Error::other("full"))).unwrap_err();
        drop(staging);
        assert_eq!(entries(), 0);

        let mut staging = Staging::new();
        staging.write(&folder.path().join("a"), |w| w.write_all(b"1")).unwrap();
        staging.write(&folder.path().join("b"), |w| w.write_all(b"2")).unwrap();
        staging.commit().unwrap();
        assert_eq!(std::fs::read(folder.path().join("b")).unwrap(), b"2");
        assert_eq!(entries(), 2);
    }

    #[test]
    fn directories_come_and_go_with_their_files() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b");
        let mut staging = Staging::new();
        staging.folder(&deep).unwrap();
        staging.write(&deep.join("file"), |w| w.write_all(b"1")).unwrap();
        drop(staging);
        assert!(!folder.path().join("a").exists());
        check_folder(&deep).unwrap();
        assert!(!folder.path().join("a").exists());

        let mut staging = Staging::new();
        staging.folder(&deep).unwrap();
        staging.write(&deep.join("file"), |w| w.write_all(b"1")).unwrap();
        staging.commit().unwrap();
        assert_eq!(std::fs::read(deep.join("file")).unwrap(), b"1");
        assert!(check_folder(&deep.join("file")).is_err() && check_folder(&deep.join("file/c")).is_err());
    }

    #[test]
    fn unwritable_places_are_found_early() {
        let folder = tempfile::tempdir().unwrap();
        check_writable(&folder.path().join("new.tha")).unwrap();
        assert!(check_writable(folder.path()).is_err());
        assert!(check_writable(&folder.path().join("no/such/place.tha")).is_err());
    }
}
