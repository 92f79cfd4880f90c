//! Where an output path leads: to a file behind any links, to something that takes a stream, or to standard output.

use super::OutputError;
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The end of a path.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// `-`, or a name of what standard output is.
    StandardOutput,
    /// A FIFO or a device: it is written into, never replaced.
    Stream(PathBuf),
    /// A regular file, or a name that is free, behind all links.
    File(PathBuf),
}

impl Place {
    pub(super) fn of(path: &Path) -> Result<Self, OutputError> {
        if path == Path::new("-") {
            return Ok(Self::StandardOutput);
        }
        let refused = |error| OutputError::new(path, &error);
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => Err(OutputError::because(path, "it is a directory; name a file")),
            Ok(found) if is_ours(&found) => Ok(Self::StandardOutput),
            Ok(found) if !found.is_file() => Ok(Self::Stream(path.into())),
            Ok(_) => path.canonicalize().map(Self::File).map_err(refused),
            Err(error) if error.kind() == ErrorKind::NotFound => free(path).map(Self::File).map_err(refused),
            Err(error) => Err(refused(error)),
        }
    }
}

/// Whether a path leads to standard output.
pub fn is_standard_output(path: &Path) -> bool {
    matches!(Place::of(path), Ok(Place::StandardOutput))
}

/// Whether two paths lead to the same file. A stream can take several outputs, one after the other.
pub fn same(a: &Path, b: &Path) -> bool {
    let identity = |path: &Path| fs::metadata(path).ok().and_then(|found| identity(&found));
    match (Place::of(a), Place::of(b)) {
        (Ok(Place::File(a)), Ok(Place::File(b))) => {
            a == b || identity(&a).is_some_and(|id| Some(id) == identity(&b))
        }
        (a, b) => matches!((a, b), (Ok(Place::StandardOutput), Ok(Place::StandardOutput))),
    }
}

/// The place of a name that leads nowhere yet: its own, or the one that the last link on the way has.
fn free(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_path_buf();
    loop {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.canonicalize()?,
            _ => Path::new(".").canonicalize()?,
        };
        path = folder.join(path.file_name().ok_or(ErrorKind::NotFound)?);
        match fs::read_link(&path) {
            Ok(target) => path = folder.join(target),
            Err(_) => return Ok(path),
        }
    }
}

/// Whether this is what standard output was opened on: a new handle on it would begin at its beginning again. A device is
/// a stream in any case.
#[cfg(unix)]
fn is_ours(found: &Metadata) -> bool {
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileTypeExt;
    let own = io::stdout().as_fd().try_clone_to_owned().and_then(|own| fs::File::from(own).metadata());
    own.is_ok_and(|own| !own.file_type().is_char_device() && identity(&own) == identity(found))
}

#[cfg(not(unix))]
fn is_ours(_: &Metadata) -> bool {
    false
}

/// What two names of one file have in common.
#[cfg(unix)]
fn identity(found: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> Option<(u64, u64)> {
    None
}
