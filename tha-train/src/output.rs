//! Files that appear whole or not at all: everything is written to temporary files beside the targets and renamed at
//! the end. What is no file, such as a FIFO or standard output, is written into once all the files are in place.

mod check;
mod kind;
mod place;

pub use check::{check, check_folder};
pub use kind::{Kind, LISTING, MARK};
pub use place::{is_standard_output, same};

use crate::host::refusal;
use check::check_replaceable;
use place::Place;
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::{NamedTempFile, SpooledTempFile};

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
    fn new(path: &Path, error: &io::Error) -> Self {
        Self::because(path, &refusal(error))
    }

    fn because(path: &Path, reason: &str) -> Self {
        Self { path: path.display().to_string(), reason: reason.into() }
    }
}

/// Bytes for a stream that are kept in memory; more of them wait in a temporary file.
const SPOOL: usize = 64 << 20;

static WRITING: Mutex<()> = Mutex::new(());

/// Waits until no output file is half written, and keeps it so. Ending the process meanwhile leaves nothing behind.
pub fn writing() -> MutexGuard<'static, ()> {
    WRITING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Output files in the making. Dropped without [`Staging::commit`], nothing of it remains.
pub struct Staging {
    files: Vec<(NamedTempFile, PathBuf)>,
    /// What goes into something that is no file: standard output without a path.
    streams: Vec<(SpooledTempFile, Option<PathBuf>)>,
    /// Directories that were made for them, outermost first.
    made: Vec<PathBuf>,
    /// Replaces whatever is there.
    force: bool,
    /// Given back before streams are written: a reader may keep us waiting for as long as it likes.
    guard: Option<MutexGuard<'static, ()>>,
}

impl Staging {
    /// No files yet, for a folder that the program keeps to itself: what is there is replaced.
    pub(crate) fn new() -> Self {
        Self::among_others(true)
    }

    /// No files yet, in places that people choose: only earlier outputs are replaced, unless told by `force`.
    pub fn among_others(force: bool) -> Self {
        let guard = Some(writing());
        Self { files: Vec::new(), streams: Vec::new(), made: Vec::new(), force, guard }
    }

    /// Makes a directory for the files to come, and those above it that are missing.
    pub fn folder(&mut self, path: &Path) -> Result<(), OutputError> {
        let mut missing: Vec<&Path> = path.ancestors().take_while(|folder| !exists(folder)).collect();
        while let Some(folder) = missing.pop() {
            fs::create_dir(folder).map_err(|error| OutputError::new(path, &error))?;
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
        content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), OutputError> {
        let refused = |error: io::Error| OutputError::new(path, &error);
        let stream = match Place::of(path)? {
            Place::StandardOutput => None,
            Place::Stream(stream) => Some(stream),
            Place::File(file) => {
                let temporary = temporary_beside(&file).map_err(refused)?;
                let mut writer = BufWriter::with_capacity(1 << 18, temporary);
                content(&mut writer).map_err(refused)?;
                let temporary = writer.into_inner().map_err(|error| refused(error.into_error()))?;
                let kind = Kind::marked(temporary.path()).unwrap_or(Kind::Data);
                check_replaceable(path, &file, kind, self.force)?;
                self.files.push((temporary, file));
                return Ok(());
            }
        };
        let mut spool = SpooledTempFile::new(SPOOL);
        content(&mut spool).and_then(|()| spool.rewind()).map_err(refused)?;
        self.streams.push((spool, stream));
        Ok(())
    }

    /// Checksums of the files so far, by name: for the listing that [`Kind::Data`] is recognised by.
    pub fn checksums(&self) -> Result<BTreeMap<String, String>, OutputError> {
        let checksum = |(file, path): &(NamedTempFile, PathBuf)| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let sum = kind::checksum(file.path()).map_err(|error| OutputError::new(path, &error))?;
            Ok((name, sum))
        };
        self.files.iter().map(checksum).collect()
    }

    /// Puts all files in place, once every one of them is safe on the disk.
    pub fn commit(mut self) -> Result<(), OutputError> {
        for (file, path) in &self.files {
            file.as_file().sync_all().map_err(|error| OutputError::new(path, &error))?;
        }
        for (file, path) in std::mem::take(&mut self.files) {
            let refused = |error: io::Error| OutputError::new(&path, &error);
            if let Ok(replaced) = fs::metadata(&path) {
                file.as_file().set_permissions(replaced.permissions()).map_err(refused)?;
            }
            file.persist(&path).map_err(|error| refused(error.error))?;
        }
        self.made.clear();
        self.guard = None;
        for (mut content, path) in std::mem::take(&mut self.streams) {
            let Some(path) = path else {
                let mut out = io::stdout().lock();
                match io::copy(&mut content, &mut out).and_then(|_| out.flush()) {
                    // A reader that hangs up early is no failure.
                    Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                        return Err(OutputError::new(Path::new("standard output"), &error));
                    }
                    _ => continue,
                }
            };
            let opened = OpenOptions::new().write(true).open(&path);
            opened
                .and_then(|mut stream| io::copy(&mut content, &mut stream))
                .map_err(|error| OutputError::new(&path, &error))?;
        }
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        self.files.clear();
        for folder in self.made.iter().rev() {
            // Only an empty directory goes: somebody else may have put something there.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Writes files, all or nothing; only earlier outputs are replaced, unless told by `force`.
pub fn write<'a>(
    files: impl IntoIterator<Item = (&'a Path, &'a [u8])>,
    force: bool,
) -> Result<(), OutputError> {
    let mut staging = Staging::among_others(force);
    for (path, content) in files {
        staging.write(path, |to| to.write_all(content))?;
    }
    staging.commit()
}

/// Writes texts under their names into a folder, all or nothing; gives their paths.
pub fn write_folder(
    folder: &Path,
    files: &[(String, String)],
    force: bool,
) -> Result<Vec<String>, OutputError> {
    let mut staging = Staging::among_others(force);
    staging.folder(folder)?;
    let mut paths = Vec::new();
    for (name, text) in files {
        let path = folder.join(name);
        staging.write(&path, |to| to.write_all(text.as_bytes()))?;
        paths.push(path.display().to_string());
    }
    staging.commit()?;
    Ok(paths)
}

/// The empty path is the current directory.
fn exists(path: &Path) -> bool {
    path.as_os_str().is_empty() || path.exists()
}

/// A temporary file in the directory of the target: a rename within a directory is atomic.
fn temporary_beside(path: &Path) -> io::Result<NamedTempFile> {
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
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(directory)
}
