//! The argument of `--subsets`: a strategy by name, or the user's own subsets in a file.

use super::error::CliError;
use serde_json::Value;
use tha_train::host::refusal;
use tha_train::{FitParams, Strategy};

/// The strategy that is meant, for inputs of these names.
pub(super) fn strategy(text: &str, inputs: &[String]) -> Result<Strategy, CliError> {
    if let Some((_, strategy)) = FitParams::STRATEGIES.into_iter().find(|(name, _)| *name == text) {
        return Ok(strategy);
    }
    match text.strip_prefix("file:") {
        Some(path) => from_file(path, inputs).map(Strategy::Given),
        None => Err(CliError::Usage(format!(
            "--subsets: '{text}' is no strategy; expected random, weighted, covering, adaptive, per-output or file:PATH"
        ))),
    }
}

fn from_file(path: &str, inputs: &[String]) -> Result<Vec<Vec<usize>>, CliError> {
    let refuse = |finding: String| CliError::Usage(format!("{path}: {finding}"));
    let expected = "expected a JSON list of lists of input names or indices from 0";
    let text = std::fs::read_to_string(path)
        .map_err(|error| refuse(format!("cannot be read: {}", refusal(&error))))?;
    let value: Value = serde_json::from_str(&text).map_err(|error| refuse(format!("{error}; {expected}")))?;
    let Value::Array(lists) = value else { return Err(refuse(expected.into())) };
    let index = |k: usize, item: &Value| {
        let found = match item {
            Value::String(name) => inputs.iter().position(|input| input == name),
            Value::Number(number) => number.as_u64().map(|n| n as usize).filter(|&n| n < inputs.len()),
            _ => None,
        };
        found.ok_or_else(|| {
            let names = inputs.join(", ");
            refuse(format!(
                "list {}: {item} is not an input; the inputs are {names}, or 0 to {}",
                k + 1,
                inputs.len() - 1
            ))
        })
    };
    let mut subsets = Vec::new();
    for (k, list) in lists.iter().enumerate() {
        let Value::Array(items) = list else {
            return Err(refuse(format!("entry {} is not a list; {expected}", k + 1)));
        };
        let mut subset = items.iter().map(|item| index(k, item)).collect::<Result<Vec<_>, _>>()?;
        subset.sort_unstable();
        subset.dedup();
        if subset.is_empty() || subset.len() < items.len() {
            return Err(refuse(format!(
                "list {} is empty or names an input twice; name each input once",
                k + 1
            )));
        }
        subsets.push(subset);
    }
    if subsets.is_empty() {
        return Err(refuse(format!("there is no subset; {expected}")));
    }
    Ok(subsets)
}
