//! Where a data set is read from.

use super::{Columns, DataError, Dataset, csv_file, npy_file};
use std::fs::File;
use std::path::{Path, PathBuf};

/// A data set on disk.
///
/// ```
/// use tha_train::{Columns, Source};
///
/// let path = std::env::temp_dir().join(format!("doc-{}.csv", std::process::id()));
/// std::fs::write(&path, "u1,u2,y1\n0,1,0.5\n1,1,0.7\n")?;
/// let data = Source::from_path(&path)?.read(&Columns::default())?;
/// # std::fs::remove_file(&path)?;
/// assert_eq!((data.inputs.len(), data.outputs.len(), data.len()), (2, 1, 2));
/// assert!(data.check_memory(3).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Comma-separated values with a header line.
    Csv(PathBuf),
    /// NumPy archive with arrays `u`, `y` and optionally `record`.
    Npz(PathBuf),
    /// NumPy arrays, one file each.
    Npy {
        /// Inputs, N x p.
        u: PathBuf,
        /// Outputs, N x l; not needed for prediction.
        y: Option<PathBuf>,
    },
}

impl Source {
    /// Tells the kind of a file from its extension.
    pub fn from_path(path: &Path) -> Result<Self, DataError> {
        let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
        match extension.as_str() {
            "csv" => Ok(Self::Csv(path.into())),
            "npz" => Ok(Self::Npz(path.into())),
            _ => Err(DataError::new(
                path.display().to_string(),
                "unknown kind of data file; use .csv or .npz, or .npy arrays as `u` and `y`",
            )),
        }
    }

    /// The file `data`, or the arrays `u` and `y` where there is no such file.
    pub fn given(
        data: &Option<PathBuf>,
        u: &Option<PathBuf>,
        y: &Option<PathBuf>,
    ) -> Result<Self, DataError> {
        match (data, u) {
            (None, Some(u)) => Ok(Self::Npy { u: u.clone(), y: y.clone() }),
            (data, _) => Self::from_path(data.as_deref().unwrap_or(Path::new(""))),
        }
    }

    /// Reads the chosen columns.
    pub fn read(&self, columns: &Columns) -> Result<Dataset, DataError> {
        match self {
            Self::Csv(path) => {
                let name = path.display().to_string();
                csv_file::read(&name, open(path)?, columns)
            }
            Self::Npz(path) => npy_file::read_npz(path, columns),
            Self::Npy { u, y } => npy_file::read_npy(u, y.as_deref(), columns),
        }
    }
}

/// Opens a data file.
pub(super) fn open(path: &Path) -> Result<File, DataError> {
    File::open(path).map_err(|error| DataError::unreadable(path.display().to_string(), &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_by_extension() {
        assert_eq!(Source::from_path(Path::new("a/b.CSV")).unwrap(), Source::Csv("a/b.CSV".into()));
        assert_eq!(Source::from_path(Path::new("b.npz")).unwrap(), Source::Npz("b.npz".into()));
        assert!(Source::from_path(Path::new("b.xlsx")).unwrap_err().to_string().contains("unknown kind"));
    }
}
