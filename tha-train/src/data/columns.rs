//! Which columns of a file are inputs and which are outputs.

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
        for (i, name) in header.iter().enumerate() {
            if header[..i].contains(name) {
                return Err(format!("two columns are named '{name}'; rename one"));
            }
        }
        let record = header.iter().position(|name| name == "record");
        let chosen = match self {
            Self::Patterns { inputs, outputs } => {
                let inputs = matching(header, inputs, "input", "--inputs")?;
                let outputs = matching(header, outputs, "output", "--outputs")?;
                if let Some(&both) = inputs.iter().find(|column| outputs.contains(column)) {
                    return Err(format!(
                        "column '{}' is chosen as input and as output; narrow --inputs or --outputs",
                        header[both]
                    ));
                }
                Chosen { inputs, outputs, record }
            }
            Self::Named { inputs, outputs } => Chosen {
                inputs: exact(header, inputs, "input")?,
                outputs: exact(header, outputs, "output")?,
                record,
            },
        };
        Ok(chosen)
    }
}

fn matching(header: &[String], patterns: &[String], kind: &str, option: &str) -> Result<Vec<usize>, String> {
    let matches = |pattern: &String, name: &String| name != "record" && glob(pattern, name);
    for pattern in patterns {
        if !header.iter().any(|name| matches(pattern, name)) {
            return Err(format!(
                "no {kind} column: nothing matches '{pattern}' among {}; name the columns with {option}",
                listed(header)
            ));
        }
    }
    Ok((0..header.len()).filter(|&i| patterns.iter().any(|p| matches(p, &header[i]))).collect())
}

fn exact(header: &[String], names: &[String], kind: &str) -> Result<Vec<usize>, String> {
    let find = |name: &String| header.iter().position(|column| column == name);
    let missing: Vec<String> = names.iter().filter(|name| find(name).is_none()).cloned().collect();
    if missing.is_empty() {
        return Ok(names.iter().filter_map(find).collect());
    }
    Err(format!(
        "the model's {kind} {} missing among {}; rename the columns to the model's channels",
        listed(&missing),
        listed(header)
    ))
}

/// Names for a message, shortened when there are many.
fn listed(names: &[String]) -> String {
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
    fn bad_headers_are_explained() {
        let refuse = |columns: Columns, header: &str| columns.choose(&names(header)).unwrap_err();
        assert!(refuse(Columns::default(), "u1,y1,u1").contains("two columns are named 'u1'"));
        assert!(refuse(Columns::default(), "a,y1").contains("no input column"));
        assert!(refuse(Columns::default(), "u1,b").contains("--outputs"));
        let both = Columns::Patterns { inputs: names("*"), outputs: names("y*") };
        assert!(refuse(both, "u1,y1").contains("as input and as output"));
        let named = Columns::Named { inputs: names("u1,u9"), outputs: vec![] };
        assert!(refuse(named, "u1,y1").contains("'u9'"));
    }
}
