//! Words that a shell takes as they are, for the commands that are printed to be copied.

use std::ffi::OsStr;

/// A word for a POSIX shell. Bytes that are no text need `$'...'`, which bash, zsh and ksh know.
pub(super) fn quoted(word: impl AsRef<OsStr>) -> String {
    let word = word.as_ref();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./,:=+@%".contains(&byte);
    match word.to_str() {
        Some(text) if !text.is_empty() && text.bytes().all(plain) => text.into(),
        Some(text) => format!("'{}'", text.replace('\'', r"'\''")),
        None => {
            let letter =
                |&byte: &u8| if plain(byte) { char::from(byte).into() } else { format!("\\{byte:03o}") };
            format!("$'{}'", word.as_encoded_bytes().iter().map(letter).collect::<String>())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_a_shell_takes_as_they_are() {
        assert_eq!(quoted("data/train-1.csv"), "data/train-1.csv");
        assert_eq!(quoted("valve*,T"), "'valve*,T'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("~/x"), "'~/x'");
    }

    #[cfg(unix)]
    #[test]
    fn bytes_that_are_no_text() {
        use std::os::unix::ffi::OsStrExt;
        assert_eq!(quoted(OsStr::from_bytes(b"it's\xff7.csv")), r"$'it\047s\3777.csv'");
    }
}
