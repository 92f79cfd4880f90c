//! Arguments that both programs have.

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
    /// The summary goes to standard error.
    #[arg(skip)]
    pub aside: bool,
}

/// What happens to files that are there.
#[derive(Args, Clone, Copy, Debug)]
pub struct Replace {
    /// Replace files whatever they are. Without it only earlier outputs of the same kind are replaced.
    #[arg(long)]
    pub force: bool,
}

/// Where the data is.
#[derive(Args, Clone, Debug)]
pub struct DataArgs {
    /// Data file: .csv or .npz.
    #[arg(value_name = "DATA", required_unless_present = "u")]
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
}

/// A model and the data for it.
#[derive(Args, Clone, Debug)]
pub struct ModelAndData {
    /// Model file.
    #[arg(value_name = "MODEL")]
    pub model: PathBuf,
    /// The data.
    #[command(flatten)]
    pub data: DataArgs,
}

impl ModelAndData {
    /// The files that are named.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.data.files().chain([self.model.as_path()])
    }
}
