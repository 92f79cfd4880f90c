//! The `tha-train` command line: arguments in, one library call, words or JSON out. One file per command.

mod analyze;
mod args;
mod auto;
mod cluster;
mod demo;
mod error;
mod evaluate;
mod export;
mod fit;
mod fit_report;
mod inspect;
mod predict;
mod quantize;
mod shell;
mod subsets;
mod synth;
mod tune;
mod watch;

use clap::{CommandFactory, Parser, Subcommand};
use error::CliError;
use std::process::ExitCode;
use tha_cli::{CompletionsArgs, ManArgs, completions, interrupt, man, say};
use tha_train::output;

/// Identifies nonlinear dynamic systems from recorded inputs and outputs as Volterra tensor networks, for
/// microcontrollers.
#[derive(Parser, Debug)]
#[command(name = "tha-train", version = tha_train::VERSION, max_term_width = 110, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  tha-train demo
  tha-train synth --kind volterra --out data
  tha-train tune data/train.csv --minutes 1
  tha-train fit data/train.csv --out model.tha --memory 4
  tha-train evaluate model.tha data/test.csv";

#[derive(Subcommand, Debug)]
enum Command {
    Fit(Box<fit::Args>),
    Plan(Box<cluster::PlanArgs>),
    Head(cluster::HeadArgs),
    Merge(cluster::MergeArgs),
    Tune(Box<tune::Args>),
    Predict(predict::Args),
    Evaluate(evaluate::Args),
    Analyze(analyze::Args),
    Inspect(inspect::Args),
    Export(export::Args),
    Quantize(quantize::Args),
    Synth(synth::Args),
    Demo(demo::Args),
    #[command(after_help = "Example:\n  tha-train completions zsh > ~/.zfunc/_tha-train")]
    Completions(CompletionsArgs),
    #[command(
        after_help = "Examples:\n  tha-train man | man -l -\n  tha-train man --out ~/.local/share/man/man1"
    )]
    Man(ManArgs),
}

/// What to do first.
const FIRST_STEPS: &str = "try tha-train demo";

/// Runs the command line of this process.
pub(super) fn main() -> ExitCode {
    interrupt::install(output::writing);
    tha_cli::main(FIRST_STEPS, |cli: Cli| match run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(CliError::Check(answer)) => {
            say(answer);
            ExitCode::from(1)
        }
        // Work that was asked to stop comes back as an error.
        Err(_) if interrupt::requested() => {
            interrupt::say();
            ExitCode::from(interrupt::EXIT_CODE)
        }
        Err(CliError::Usage(refusal)) => {
            say(refusal);
            ExitCode::from(2)
        }
    })
}

fn run(command: Command) -> Result<(), CliError> {
    match command {
        Command::Fit(args) => fit::run(&args),
        Command::Plan(args) => cluster::plan(&args),
        Command::Head(args) => cluster::head(&args),
        Command::Merge(args) => cluster::merge(&args),
        Command::Tune(args) => tune::run(&args),
        Command::Predict(args) => predict::run(&args),
        Command::Evaluate(args) => evaluate::run(&args),
        Command::Analyze(args) => analyze::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Quantize(args) => quantize::run(&args),
        Command::Synth(args) => synth::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Completions(args) => {
            completions(&args, Cli::command());
            Ok(())
        }
        Command::Man(args) => Ok(man(&args, Cli::command(), output::write_folder)?),
    }
}
