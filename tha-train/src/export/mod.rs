//! Models as source code for other firmware projects.
//!
//! - [`rust`](rust()): a module with the aligned bytes of the file as a `static` and the capacities as a type;
//! - [`c`](c()): a C99 header and source that need no library, allocate nothing and give the bits of tha-core.

mod c;
mod rust;

pub use c::c;
pub use rust::rust;

/// A file to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Name, without a directory.
    pub name: String,
    /// What is in it.
    pub text: String,
}

/// A name that is an identifier in Rust and in C, made from any text: small letters, digits and underscores.
#[must_use]
pub fn identifier(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let name: String = text.chars().map(plain).collect();
    match name.chars().next() {
        Some(first) if first.is_ascii_alphabetic() => name,
        _ => format!("model_{name}"),
    }
}

/// Text that cannot end a comment or a line in either language.
fn comment(text: &str) -> String {
    let safe = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(safe).collect::<String>().replace("*/", "* /").replace("/*", "/ *").replace('\\', "/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_identifiers() {
        for (text, expected) in
            [("Engine-2", "engine_2"), ("2fast", "model_2fast"), ("", "model_"), ("übung", "model__bung")]
        {
            assert_eq!(identifier(text), expected);
        }
    }

    #[test]
    fn comments_stay_comments() {
        assert_eq!(comment("a */ b\nc \\"), "a * / b c /");
    }
}
