//! The `tha-firmware-sim` command line: arguments in, one library call, words or JSON out. One file per command.

mod boards;
mod faults;
mod run;
mod soak;
mod watch;

use crate::model_file::ModelFile;
use clap::{CommandFactory, Parser, Subcommand};
use std::error::Error;
use std::process::ExitCode;
use tha_cli::{CompletionsArgs, ManArgs, ModelAndData, completions, man, say};
use tha_train::{Dataset, Source, output};

/// Replays recordings through tha-core, on the host and on emulated Cortex-M boards, against the batch prediction.
#[derive(Parser, Debug)]
#[command(name = "tha-firmware-sim", version = tha_train::VERSION, max_term_width = 110, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  tha-firmware-sim run model.tha test.csv --target cortex-m4f
  tha-firmware-sim faults model.tha test.csv --seed 1
  tha-firmware-sim boards model.tha
  tha-firmware-sim watch model.tha test.csv";

#[derive(Subcommand, Debug)]
enum Command {
    Run(run::Args),
    Faults(faults::Args),
    Boards(boards::Args),
    Watch(watch::Args),
    Soak(soak::Args),
    #[command(after_help = "Example:\n  tha-firmware-sim completions zsh > ~/.zfunc/_tha-firmware-sim")]
    Completions(CompletionsArgs),
    #[command(
        after_help = "Examples:\n  tha-firmware-sim man | man -l -\n  tha-firmware-sim man --out ~/.local/share/man/man1"
    )]
    Man(ManArgs),
}

/// What to do first.
const FIRST_STEPS: &str = "try tha-firmware-sim boards";

/// Whether the check held, or the one line why there is no answer.
type Answer = Result<bool, Box<dyn Error>>;

/// Reads a model and the columns of the data that it needs.
fn read(files: &ModelAndData, with_outputs: bool) -> Result<(ModelFile, Dataset), Box<dyn Error>> {
    let model = ModelFile::read(&files.model)?;
    let source = Source::given(&files.data.data, &files.data.u, &files.data.y)?;
    let data = source.read(&model.batch().columns(with_outputs))?;
    data.check_memory(model.model().settled())?;
    Ok((model, data))
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    tha_cli::main(FIRST_STEPS, |cli: Cli| match run(cli.command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            say(error);
            ExitCode::from(2)
        }
    })
}

fn run(command: Command) -> Answer {
    match command {
        Command::Run(args) => run::run(&args),
        Command::Faults(args) => faults::run(&args),
        Command::Boards(args) => boards::run(&args),
        Command::Watch(args) => watch::run(&args),
        Command::Soak(args) => soak::run(&args),
        Command::Completions(args) => {
            completions(&args, Cli::command());
            Ok(true)
        }
        Command::Man(args) => {
            man(&args, Cli::command(), output::write_folder)?;
            Ok(true)
        }
    }
}
