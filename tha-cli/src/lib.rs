//! What the command lines of tha-train and tha-firmware-sim have in common: from the start to the exit code, shared arguments,
//! words and JSON, completions, manual pages, refusals in one line.
//!
//! It knows neither program nor library: what it shows and where it writes is given to it.

// They panic where nobody listens; `note` and `print` do not.
#![deny(clippy::print_stderr, clippy::print_stdout)]

mod args;
mod flags;
pub mod interrupt;
mod manual;
mod speak;
mod status;
mod table;

pub use args::{DataArgs, ModelAndData, Replace, Speech};
pub use flags::with_flags;
pub use manual::{CompletionsArgs, ManArgs, completions, man};
pub use speak::{note, print, result, say, summary};
pub use status::{Status, lock};
pub use table::{count, figure, table};

use clap::Parser;
use clap::error::ErrorKind;
use std::panic::UnwindSafe;
use std::process::ExitCode;
use std::sync::OnceLock;

/// The program that runs.
static PROGRAM: OnceLock<clap::Command> = OnceLock::new();

/// Reads the command line of this process and runs it. What cannot be read, and a bug, are one line and exit code 2.
pub fn main<C: Parser>(first_steps: &str, run: impl FnOnce(C) -> ExitCode + UnwindSafe) -> ExitCode {
    PROGRAM.get_or_init(C::command);
    std::panic::set_hook(Box::new(|panic| {
        let what = panic.payload_as_str().unwrap_or("no message").replace('\n', " ");
        let place = panic.location().map(|place| format!(" at {}:{}", place.file(), place.line()));
        let place = place.unwrap_or_default();
        say(format_args!("internal error{place}: {what}; please report it with the command and the data"));
    }));
    let parse_and_run = || match C::try_parse() {
        Ok(cli) => run(cli),
        // --help and --version.
        Err(request) if request.exit_code() == 0 => match print(|_| request.print()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                say(error);
                ExitCode::from(2)
            }
        },
        Err(refusal) => {
            say(one_line(&refusal, program(), first_steps));
            ExitCode::from(2)
        }
    };
    std::panic::catch_unwind(parse_and_run).unwrap_or(ExitCode::from(2))
}

fn program() -> &'static str {
    PROGRAM.get().map_or("tha", clap::Command::get_name)
}

/// A usage error as one line: the finding, the remedy where clap knows one, and where to read on.
fn one_line(error: &clap::Error, program: &str, first_steps: &str) -> String {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return format!("no command given; {first_steps}, or see {program} --help");
    }
    let text = error.to_string();
    let joined = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let message = joined(text.split("\n\n").next().unwrap_or_default());
    let mut line = message.strip_prefix("error: ").unwrap_or(&message).to_owned();
    // The tips about `--` before a value are of no use here: no argument of ours begins with a dash.
    for tip in
        text.lines().filter_map(|line| line.trim().strip_prefix("tip: ")).filter(|tip| !tip.contains("'-- "))
    {
        line += &format!("; {tip}");
    }
    let usage = text.lines().find_map(|line| line.strip_prefix("Usage: ")).unwrap_or(program);
    if error.kind() == ErrorKind::MissingRequiredArgument {
        line += &format!("; usage: {}", joined(usage));
    }
    let command: Vec<&str> =
        usage.split_whitespace().take_while(|word| !word.starts_with(['-', '<', '['])).collect();
    format!("{line}; see {} --help", command.join(" "))
}
