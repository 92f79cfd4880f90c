//! Arguments that several commands share.

use super::error::CliError;
use crate::model_file::ModelFile;
use clap::Args;
use std::path::PathBuf;
use tha_train::data::{Columns, Dataset, Source};

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

/// A model and a recording.
#[derive(Args, Clone, Debug)]
pub struct Files {
    /// Model file.
    #[arg(value_name = "MODEL")]
    pub model: PathBuf,
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

impl Files {
    /// Reads the model and the columns of the data that it needs.
    pub fn read(&self, with_outputs: bool) -> Result<(ModelFile, Dataset), CliError> {
        let model = ModelFile::read(&self.model)?;
        let source = match (&self.data, &self.u) {
            (Some(path), _) => Source::from_path(path)?,
            (None, Some(u)) => Source::Npy { u: u.clone(), y: self.y.clone() },
            (None, None) => {
                return Err(CliError::Usage("no data given; name a DATA file, or --u FILE".into()));
            }
        };
        let columns: Columns = model.batch().columns(with_outputs);
        let data = source.read(&columns)?;
        data.check_memory(model.shape().memory)?;
        Ok((model, data))
    }
}
