//! What the command lines of the workspace have in common: from the start to the exit code, version, completions, manual
//! pages, refusals in one line.

pub use super::args::{DataArgs, Replace, Speech};
pub use super::speak::summary;

use super::error::CliError;
use super::speak;
use crate::output::{self, Staging};
use clap::Parser;
use clap::error::ErrorKind;
use clap_complete::Shell;
use serde_json::json;
use std::fmt::Display;
use std::io::Write;
use std::panic::UnwindSafe;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::OnceLock;

/// Version and commit.
pub const VERSION: &str = env!("THA_VERSION");

/// The program that runs.
static PROGRAM: OnceLock<String> = OnceLock::new();

/// Reads the command line of this process and runs it. What cannot be read, and a bug, are one line and exit code 2.
pub fn main<C: Parser>(first_steps: &str, run: impl FnOnce(C) -> ExitCode + UnwindSafe) -> ExitCode {
    let program = PROGRAM.get_or_init(|| C::command().get_name().to_owned());
    std::panic::set_hook(Box::new(|panic| {
        let what = panic.payload_as_str().unwrap_or("no message").replace('\n', " ");
        let place = panic.location().map(|place| format!(" at {}:{}", place.file(), place.line()));
        let place = place.unwrap_or_default();
        say(format_args!("internal error{place}: {what}; please report it with the command and the data"));
    }));
    let parse_and_run = || match C::try_parse() {
        Ok(cli) => run(cli),
        // --help and --version.
        Err(request) if request.exit_code() == 0 => match output::print(|_| request.print()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                say(error);
                ExitCode::from(2)
            }
        },
        Err(refusal) => {
            say(one_line(&refusal, program, first_steps));
            ExitCode::from(2)
        }
    };
    std::panic::catch_unwind(parse_and_run).unwrap_or(ExitCode::from(2))
}

/// A line on standard error, after the name of the program.
pub fn say(line: impl Display) {
    note(format_args!("{}: {line}", program()));
}

fn program() -> &'static str {
    PROGRAM.get().map_or("tha-train", String::as_str)
}

/// A line on standard error. Where nobody can read it, the work goes on all the same.
pub fn note(line: impl Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Print a completion script for a shell.
#[derive(clap::Args, Debug)]
pub struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
    #[command(flatten)]
    speech: Speech,
}

/// Print the manual page, or write one page per command.
#[derive(clap::Args, Debug)]
pub struct ManArgs {
    /// Write one page per command into this folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    replace: Replace,
    #[command(flatten)]
    speech: Speech,
}

/// The completion script on standard output.
pub fn completions(args: &CompletionsArgs, mut command: clap::Command) {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    let script = String::from_utf8_lossy(&script);
    let object = json!({ "shell": args.shell.to_string(), "script": script });
    speak::result(args.speech.json, &object, || script.to_string());
}

/// The main manual page on standard output, or all pages in a folder.
pub fn man(args: &ManArgs, mut command: clap::Command) -> Result<(), CliError> {
    command.build();
    let Some(folder) = &args.out else {
        let page = page(&command);
        speak::result(args.speech.json, &json!({ "page": page }), || page.clone());
        return Ok(());
    };
    let commands = command.get_subcommands().filter(|sub| sub.get_name() != "help");
    let pages: Vec<(String, String)> = [&command]
        .into_iter()
        .chain(commands)
        .map(|command| (format!("{}.1", name(command)), page(command)))
        .collect();
    let mut staging = Staging::among_others(args.replace.force);
    staging.folder(folder)?;
    let mut paths = Vec::new();
    for (name, page) in &pages {
        let path = folder.join(name);
        staging.write(&path, |to| to.write_all(page.as_bytes()))?;
        paths.push(path);
    }
    staging.commit()?;
    let files = speak::shown(&paths);
    summary(args.speech, &json!({ "files": files }), || files.join("\n"));
    Ok(())
}

/// The name of a page: `tha-train-fit` for `tha-train fit`.
fn name(command: &clap::Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

/// One manual page. The examples stand as they are, each on its line.
fn page(command: &clap::Command) -> String {
    let examples = command.get_after_help().map(ToString::to_string);
    let title = name(command).to_owned();
    let command = command.clone().version(VERSION).after_help(None::<&str>);
    // With the mark by which the next call knows its own pages.
    let mut text = format!(".\\\" Generated by `{} man`; do not edit.\n", program()).into_bytes();
    // Writing to memory does not fail.
    let _ = clap_mangen::Man::new(command).title(title).source(format!("THA {VERSION}")).render(&mut text);
    let mut text = String::from_utf8_lossy(&text).into_owned();
    if let Some(examples) = examples {
        text += ".SH EXAMPLES\n.nf\n";
        for line in examples.lines().filter(|line| line.starts_with(' ')) {
            text += &format!(
                "{}\n",
                line.trim_start().replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq")
            );
        }
        text += ".fi\n";
    }
    text
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
