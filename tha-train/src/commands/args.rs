//! Arguments that several commands share.

use super::error::CliError;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::path::{Path, PathBuf};
use tha_cli::{DataArgs, Replace, Speech};
use tha_train::{Columns, Dataset, Source, Validation, output};

/// Leaves standard output to a file that goes there: words step aside, and JSON is refused.
pub fn beside<'a>(speech: Speech, files: impl IntoIterator<Item = &'a PathBuf>) -> Result<Speech, CliError> {
    let aside = files.into_iter().any(|path| output::is_standard_output(path));
    if aside && speech.json {
        let found = "--json: standard output takes a file already; name a file for it, or leave --json out";
        return Err(CliError::Usage(found.into()));
    }
    Ok(Speech { aside, ..speech })
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

/// How a command that writes goes about its work.
#[derive(Args, Clone, Copy, Debug)]
pub struct Manner {
    #[command(flatten)]
    pub replace: Replace,
    #[command(flatten)]
    pub threads: Threads,
    #[command(flatten)]
    pub speech: Speech,
}

/// One of some values, by its name.
pub fn choice<T: Clone + Send + Sync + 'static>(
    choices: &'static [(&'static str, T)],
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(choices.iter().map(|(name, _)| *name)).try_map(|chosen| {
        let found = choices.iter().find(|(name, _)| *name == chosen);
        found.map(|(_, value)| value.clone()).ok_or(format!("there is no {chosen}"))
    })
}

/// The name of a file, without its folder.
pub fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// Reads the data set that is named.
pub fn read(data: &DataArgs, columns: &Columns) -> Result<Dataset, CliError> {
    Ok(Source::given(&data.data, &data.u, &data.y)?.read(columns)?)
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

/// What the result is validated on; no choice is made there.
#[derive(Args, Clone, Debug)]
pub struct ValidationArgs {
    /// Validation data in a file of its own, which chooses nothing: choices are made on blocks of DATA.
    #[arg(long, value_name = "DATA", conflicts_with_all = ["val_fraction", "folds"])]
    pub val: Option<PathBuf>,
    /// The last part of each record is for validation [default: 0.2]. Choices are made on blocks of what is left, so the
    /// validation samples choose nothing.
    #[arg(long, value_name = "F", conflicts_with = "folds")]
    pub val_fraction: Option<f64>,
    /// Contiguous blocks over all records, each validated by a choice and a fit on the others.
    #[arg(long, value_name = "N")]
    pub folds: Option<usize>,
}

impl ValidationArgs {
    /// Reads the validation file, if there is one, with the channels of the data.
    pub fn read(&self, data: &Dataset) -> Result<Option<Dataset>, CliError> {
        let columns = Columns::Named { inputs: data.inputs.clone(), outputs: data.outputs.clone() };
        match &self.val {
            None => Ok(None),
            Some(path) => Ok(Some(Source::from_path(path)?.read(&columns)?)),
        }
    }

    /// What is odd about the data, and about validating on it.
    pub fn warnings(&self, data: &Dataset, validation: Option<&Dataset>) -> Vec<String> {
        let mut warnings = [data.warnings(), data.device_warnings()].concat();
        if let Some(validation) = validation.filter(|other| other.fingerprint() == data.fingerprint()) {
            warnings.push(format!(
                "--val {}: these are the training samples, so the validation figures say nothing about others; \
                 give another recording, or leave --val out",
                validation.origin
            ));
        }
        warnings
    }

    /// What is meant, with the data that [`ValidationArgs::read`] gave.
    pub fn meant<'a>(&self, validation: Option<&'a Dataset>) -> Validation<'a> {
        match (validation, self.folds) {
            (Some(data), _) => Validation::Data(data),
            (None, Some(count)) => Validation::Folds(count),
            (None, None) => self.val_fraction.map_or_else(Validation::default, Validation::End),
        }
    }
}
