//! The `tha-firmware-sim` command line: arguments in, one library call, words or JSON out. One file per command.

mod args;
mod boards;
mod error;
mod faults;
mod run;
mod soak;
mod speak;
mod watch;

pub use error::CliError;

use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;
use tha_train::cli::surface;

/// Replays recordings through tha-core, on the host and on emulated Cortex-M boards, against the batch prediction.
#[derive(Parser, Debug)]
#[command(name = "tha-firmware-sim", version = surface::VERSION, max_term_width = 110, after_help = EXAMPLES)]
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
    Completions(surface::CompletionsArgs),
    #[command(
        after_help = "Examples:\n  tha-firmware-sim man | man -l -\n  tha-firmware-sim man --out ~/.local/share/man/man1"
    )]
    Man(surface::ManArgs),
}

/// What to do first.
const FIRST_STEPS: &str = "try tha-firmware-sim boards";

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    report_panics_in_one_line();
    match std::panic::catch_unwind(run) {
        Ok(code) => code,
        Err(_) => ExitCode::from(2),
    }
}

fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(request) if request.exit_code() == 0 => {
            // --help and --version; a reader that hangs up early is no failure.
            let _ = request.print();
            return ExitCode::SUCCESS;
        }
        Err(refusal) => {
            eprintln!("tha-firmware-sim: {}", surface::one_line(&refusal, "tha-firmware-sim", FIRST_STEPS));
            return ExitCode::from(2);
        }
    };
    let result = match cli.command {
        Command::Run(args) => run::run(&args),
        Command::Faults(args) => faults::run(&args),
        Command::Boards(args) => boards::run(&args),
        Command::Watch(args) => watch::run(&args),
        Command::Soak(args) => soak::run(&args),
        Command::Completions(args) => {
            surface::completions(&args, Cli::command());
            Ok(true)
        }
        Command::Man(args) => match surface::man(&args, Cli::command()) {
            Ok(()) => Ok(true),
            Err(error) => Err(CliError::Usage(error.to_string())),
        },
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("tha-firmware-sim: {error}");
            ExitCode::from(2)
        }
    }
}

/// A bug is reported in one line too, with the place it came from.
fn report_panics_in_one_line() {
    std::panic::set_hook(Box::new(|panic| {
        let what = panic.payload_as_str().unwrap_or("no message").replace('\n', " ");
        let place = panic.location().map(|place| format!(" at {}:{}", place.file(), place.line()));
        eprintln!(
            "tha-firmware-sim: internal error{}: {what}; please report it with the command and the data",
            place.unwrap_or_default()
        );
    }));
}
