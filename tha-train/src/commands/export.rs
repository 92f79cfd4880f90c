//! `tha-train export`: a model as source code for another firmware project.

use super::error::CliError;
use serde_json::json;
use std::path::PathBuf;
use tha_cli::{Replace, Speech, summary};
use tha_train::export::{self, SourceFile};
use tha_train::{Model, output};

/// Write a model as source code to put into a firmware project.
///
/// rust: a module with the model's bytes as an aligned static and the state that fits it as a type, for tha-core. c:
/// a C99 header and source that need no library and allocate nothing. Both give the same outputs to the bit. A model of 16-bit integers
/// (`quantize`) takes counts in either language; its C has no float but in a function that can be left out.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  tha-train export engine.tha --to c --out firmware/src")]
pub(super) struct Args {
    /// Model file.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// The language.
    #[arg(long, value_enum, value_name = "LANGUAGE")]
    to: Language,
    /// Directory for the files; it is made where it does not exist.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Name of the files and prefix of the symbols in C [default: the name of the model file].
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    replace: Replace,
    #[command(flatten)]
    speech: Speech,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Language {
    Rust,
    C,
}

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let model = Model::read(&args.model)?;
    let stem = args.model.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = export::identifier(&args.name.clone().or(stem).unwrap_or_default()).map_err(|error| {
        let place = args.name.as_ref().map_or(args.model.display().to_string(), |_| "--name".into());
        CliError::Usage(format!("{place}: {error}"))
    })?;
    let files: Vec<SourceFile> = match args.to {
        Language::Rust => vec![export::rust(&name, model.spec(), &model.to_bytes()?)],
        Language::C => export::c(&name, &model).into(),
    };
    let files: Vec<(String, String)> = files.into_iter().map(|file| (file.name, file.text)).collect();
    let files = output::write_folder(&args.out, &files, args.replace.force)?;
    summary(args.speech, &json!({ "name": name, "files": files }), || files.join("\n"));
    Ok(())
}
