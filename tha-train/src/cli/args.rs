//! Arguments that several commands share.

use super::error::CliError;
use crate::data::{Columns, Source};
use clap::Args;
use std::path::{Path, PathBuf};

/// How a command speaks.
#[derive(Args, Clone, Copy, Debug)]
pub struct Speech {
    /// Print one JSON object on standard output and nothing else there.
    #[arg(long)]
    pub json: bool,
    /// No progress, no warnings, no summary.
    #[arg(long, short)]
    pub quiet: bool,
}

/// How many threads.
#[derive(Args, Clone, Copy, Debug)]
pub struct Threads {
    /// Threads to use; all processors when not given. The result is the same for any number.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
}

impl Threads {
    /// Sizes the thread pool of the process.
    pub fn apply(self) {
        if let Some(threads) = self.threads {
            // An error means the pool exists already: then its size is what it is, and so is the result.
            let _ = rayon::ThreadPoolBuilder::new().num_threads(threads.into()).build_global();
        }
    }
}

/// Where the data is.
#[derive(Args, Clone, Debug)]
pub struct DataArgs {
    /// Data file: .csv or .npz.
    #[arg(value_name = "DATA")]
    pub data: Option<PathBuf>,
    /// Inputs as a .npy array, samples x channels, in place of DATA.
    #[arg(long, value_name = "FILE", conflicts_with = "data")]
    pub u: Option<PathBuf>,
    /// Outputs as a .npy array, beside --u.
    #[arg(long, value_name = "FILE", requires = "u")]
    pub y: Option<PathBuf>,
}

impl DataArgs {
    /// The files that are named.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        [&self.data, &self.u, &self.y].into_iter().flatten().map(PathBuf::as_path)
    }

    /// The data set that is meant.
    pub fn source(&self) -> Result<Source, CliError> {
        match (&self.data, &self.u) {
            (Some(path), _) => Ok(Source::from_path(path)?),
            (None, Some(u)) => Ok(Source::Npy { u: u.clone(), y: self.y.clone() }),
            (None, None) => Err(CliError::Usage("no data given; name a DATA file, or --u and --y".into())),
        }
    }
}

/// Which columns are inputs and outputs.
#[derive(Args, Clone, Debug)]
pub struct ColumnArgs {
    /// Input columns: names or globs, separated by commas, in the order of the file [default: u*].
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub inputs: Vec<String>,
    /// Output columns, likewise [default: y*].
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub outputs: Vec<String>,
}

impl ColumnArgs {
    /// The choice of columns.
    pub fn columns(&self) -> Columns {
        let given = |names: &[String], default: &str| {
            if names.is_empty() { vec![default.to_owned()] } else { names.to_vec() }
        };
        Columns::Patterns { inputs: given(&self.inputs, "u*"), outputs: given(&self.outputs, "y*") }
    }
}
