//! Arguments that several commands share.

use crate::model_file::ModelFile;
use clap::Args;
use std::error::Error;
use std::path::PathBuf;
use tha_cli::DataArgs;
use tha_train::{Dataset, Source};

/// A model and a recording.
#[derive(Args, Clone, Debug)]
pub struct Files {
    /// Model file.
    #[arg(value_name = "MODEL")]
    pub model: PathBuf,
    #[command(flatten)]
    pub data: DataArgs,
}

impl Files {
    /// Reads the model and the columns of the data that it needs.
    pub fn read(&self, with_outputs: bool) -> Result<(ModelFile, Dataset), Box<dyn Error>> {
        let model = ModelFile::read(&self.model)?;
        let data = Source::given(&self.data.data, &self.data.u, &self.data.y)?
            .read(&model.batch().columns(with_outputs))?;
        data.check_memory(model.model().settled())?;
        Ok((model, data))
    }
}
