//! Which columns of a file are inputs and which are outputs.

use std::collections::{HashMap, HashSet};

/// A choice of columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Columns {
    /// Names or globs (`*` any text, `?` one character), taken in the order of the file.
    Patterns {
        /// Patterns for the inputs.
        inputs: Vec<String>,
        /// Patterns for the outputs.
        outputs: Vec<String>,
    },
    /// Exactly these channels in exactly this order, as a model needs them. Columns the model does not know are
    /// ignored.
    Named {
        /// Input names.
        inputs: Vec<String>,
        /// Output names; empty when outputs are not needed.
        outputs: Vec<String>,
    },
}

impl Default for Columns {
    fn default() -> Self {
        Self::Patterns { inputs: vec!["u*".into()], outputs: vec!["y*".into()] }
    }
}

/// The positions of the chosen columns in the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Chosen {
    pub inputs: Vec<usize>,
    pub outputs: Vec<usize>,
    pub record: Option<usize>,
}

impl Columns {
    /// Finds the columns in a header; the error is the finding and the remedy.
    pub(super) fn choose(&self, header: &[String]) -> Result<Chosen, String> {
        let mut seen = HashSet::new();
        if let Some(name) = header.iter().find(|name| !seen.insert(*name)) {
            return Err(format!("two columns are named '{name}'; rename one"));
        }
        let mut records = (0..header.len()).filter(|&i| header[i].eq_ignore_ascii_case("record"));
        let record = records.next();
        if let (Some(first), Some(second)) = (record, records.next()) {
            let (first, second) = (&header[first], &header[second]);
            return Err(format!("the columns '{first}' and '{second}' both name the record; rename one"));
        }
        let chosen = match self {
            Self::Patterns { inputs, outputs } => {
                let inputs = matching(header, record, inputs, "input")?;
                let outputs = matching(header, record, outputs, "output")?;
                if let Some(&both) = inputs.iter().find(|column| outputs.contains(column)) {
                    return Err(format!(
                        "column '{}' is chosen as input and as output; narrow `inputs` or `outputs`",
                        header[both]
                    ));
                }
                Chosen { inputs, outputs, record }
            }
            Self::Named { inputs, outputs } => {
                let (inputs, outputs) = (exact(header, inputs, "input")?, exact(header, outputs, "output")?);
                // A model may have a channel of that name.
                let record = record.filter(|column| !inputs.contains(column) && !outputs.contains(column));
                Chosen { inputs, outputs, record }
            }
        };
        Ok(chosen)
    }
}

fn matching(
    header: &[String],
    record: Option<usize>,
    patterns: &[String],
    kind: &str,
) -> Result<Vec<usize>, String> {
    let matches = |pattern: &String, i: usize| Some(i) != record && glob(pattern, &header[i]);
    for pattern in patterns {
        if !(0..header.len()).any(|i| matches(pattern, i)) {
            return Err(format!(
                "no {kind} column: nothing matches '{pattern}' among {}; name the columns with `{kind}s`",
                listed(header)
            ));
        }
    }
    Ok((0..header.len()).filter(|&i| patterns.iter().any(|p| matches(p, i))).collect())
}

fn exact(header: &[String], names: &[String], kind: &str) -> Result<Vec<usize>, String> {
    let places: HashMap<&String, usize> = header.iter().enumerate().map(|(i, name)| (name, i)).collect();
    let missing: Vec<String> = names.iter().filter(|name| !places.contains_key(name)).cloned().collect();
    if missing.is_empty() {
        return Ok(names.iter().map(|name| places[name]).collect());
    }
    Err(format!(
        "the model's {kind} {} missing among {}; rename the columns to the model's channels",
        listed(&missing),
        listed(header)
    ))
}

/// Names for a message, shortened when there are many.
pub(crate) fn listed(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let mut text = names.iter().take(SHOWN).map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(" and {} more", names.len() - SHOWN));
    }
    text
}

/// Matches `*` (any text) and `?` (one character).
fn glob(pattern: &str, name: &str) -> bool {
    let mut pattern_chars = pattern.chars();
    match pattern_chars.next() {
        None => name.is_empty(),
        Some('*') => {
            let rest = pattern_chars.as_str();
            name.char_indices().any(|(i, _)| glob(rest, &name[i..])) || glob(rest, "")
        }
        Some(wanted) => {
            let mut name_chars = name.chars();
            name_chars.next().is_some_and(|found| wanted == '?' || wanted == found)
                && glob(pattern_chars.as_str(), name_chars.as_str())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        text.split(',').map(String::from).collect()
    }

    #[test]
    fn globs() {
        for (pattern, name, expected) in [
            ("u*", "u", true),
            ("u*", "u_AT", true),
            ("u*", "yu", false),
            ("*_T", "u_T", true),
            ("*_T", "u_T1", false),
            ("u?", "u1", true),
            ("u?", "u10", false),
            ("*a*b", "xaybzb", true),
            ("", "", true),
            ("*", "", true),
        ] {
            assert_eq!(glob(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn patterns_follow_the_file_and_names_follow_the_model() {
        let header = names("y2,record,u2,t,u1,y1");
        let chosen = Columns::default().choose(&header).unwrap();
        assert_eq!(chosen, Chosen { inputs: vec![2, 4], outputs: vec![0, 5], record: Some(1) });
        let named = Columns::Named { inputs: names("u1,u2"), outputs: vec![] };
        assert_eq!(named.choose(&header).unwrap().inputs, [4, 2]);
        let patterns = Columns::Patterns { inputs: names("t,u?"), outputs: names("y1") };
        assert_eq!(patterns.choose(&header).unwrap().inputs, [2, 3, 4]);
    }

    #[test]
    fn the_record_is_found_whatever_its_case() {
        for name in ["record", "Record", "RECORD"] {
            let all = Columns::Patterns { inputs: names("*u*"), outputs: names("y*") };
            let chosen = all.choose(&names(&format!("{name},u1,y1"))).unwrap();
            assert_eq!(chosen, Chosen { inputs: vec![1], outputs: vec![2], record: Some(0) });
        }
        let both = Columns::default().choose(&names("record,Record,u1,y1")).unwrap_err();
        assert!(both.contains("'record' and 'Record'"), "{both}");
        let named = Columns::Named { inputs: names("Record"), outputs: vec![] };
        assert_eq!(named.choose(&names("Record,u1")).unwrap().record, None, "a model has this channel");
    }
}
