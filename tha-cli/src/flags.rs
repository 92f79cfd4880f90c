//! Parameters as flags: the libraries write a parameter as `` `max_rank` ``, the user of a program knows it as `--max-rank`.

use super::PROGRAM;
use clap::Command;

/// A message of a library with the flags of this program in the place of parameters; other words in backticks stay.
pub fn with_flags(message: &str) -> String {
    PROGRAM.get().map_or_else(|| message.to_owned(), |program| replaced(message, program))
}

fn replaced(message: &str, program: &Command) -> String {
    let mut parts = message.split('`');
    let mut text = parts.next().unwrap_or_default().to_owned();
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        // What is behind the last backtick is in none.
        match flag(part, program).filter(|_| parts.peek().is_some()) {
            Some(flag) => text += &format!("--{flag}{}", parts.next().unwrap_or_default()),
            None => text += &format!("`{part}"),
        }
    }
    text
}

/// The flag of a parameter in any command; an alias may stand between the two names.
fn flag<'a>(parameter: &str, program: &'a Command) -> Option<&'a str> {
    let name = parameter.replace('_', "-");
    let arguments = program.get_subcommands().flat_map(Command::get_arguments);
    let named = |argument: &&clap::Arg| {
        argument.get_long() == Some(&name)
            || argument.get_all_aliases().is_some_and(|aliases| aliases.contains(&name.as_str()))
    };
    arguments.filter(named).find_map(clap::Arg::get_long)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Arg;

    #[test]
    fn parameters_become_flags_and_other_words_stay() {
        let fit = Command::new("fit")
            .arg(Arg::new("max_rank").long("max-rank"))
            .arg(Arg::new("tol").long("tol").alias("tolerance"));
        let program = Command::new("program").subcommand(fit);
        for (message, expected) in [
            ("`max_rank`: 0 is out of range", "--max-rank: 0 is out of range"),
            ("lower `max_rank` or `tolerance`", "lower --max-rank or --tol"),
            ("a`b.csv: lower `max_rank`", "a`b.csv: lower --max-rank"),
            ("see `sweeps`, `max_rank", "see `sweeps`, `max_rank"),
            ("max_rank", "max_rank"),
        ] {
            assert_eq!(replaced(message, &program), expected);
        }
    }
}
