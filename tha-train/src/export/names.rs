//! Names in source code. The names of channels, models and tools come from files: they are data and must stay data.
//!
//! A name is written in one of three ways: as an [`identifier`], as a string literal ([`c_literal`], [`rust_literal`]) or in
//! a [`comment`].

/// A name that the exported files cannot have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{name}' {meaning}; choose another, such as `name` {name}_model")]
pub struct ReservedName {
    /// The identifier.
    pub name: String,
    /// What it is already.
    pub meaning: &'static str,
}

/// Words that no file or symbol should be called, and what they are already. The header files are those of ISO C, POSIX and
/// the usual C libraries: a file `math.h` beside the sources is found in place of the library's.
const RESERVED: [(&str, &str); 3] = [
    (
        "is a keyword of C, C++ or Rust",
        "abstract alignas alignof and and_eq as asm async auto await become bitand bitor bool box break case catch char \
         char16_t char32_t char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr \
         constinit continue crate decltype default delete do double dyn dynamic_cast else enum explicit export extern \
         false final float fn for friend gen goto if impl in inline int let long loop macro match mod move mut mutable \
         namespace new noexcept not not_eq nullptr operator or or_eq override priv private protected pub public ref \
         register reinterpret_cast requires restrict return self short signed sizeof static static_assert static_cast \
         struct super switch template this thread_local throw trait true try type typedef typeid typename typeof \
         typeof_unqual union unsafe unsigned unsized use using virtual void volatile wchar_t where while xor xor_eq yield",
    ),
    (
        "is the name of a header file of the C library, which the exported one would hide",
        "aio alloca assert complex cpio ctype dirent dlfcn endian errno fcntl features fenv fmtmsg fnmatch ftw getopt \
         glob grp iconv inttypes iso646 langinfo libgen limits link locale malloc math memory monetary mqueue ndbm \
         netdb newlib nl_types poll pthread pwd regex resolv sched search semaphore setjmp signal spawn stdalign stdarg \
         stdatomic stdbit stdckdint stddef stdint stdio stdlib stdnoreturn string strings stropts syslog tar termios \
         tgmath threads time trace uchar ulimit unistd unwind utime utmp utmpx values varargs wait wchar wctype wordexp",
    ),
    (
        // `fe` would define FE_OVERFLOW, as <fenv.h> does.
        "has a meaning of its own in Rust or C",
        "alloc build core f32 f64 fe i128 i16 i32 i64 i8 isize lib main std str tha_core u128 u16 u32 u64 u8 usize",
    ),
];

/// A name for files and symbols in Rust and in C, made from any text: small letters, digits and underscores.
///
/// # Errors
/// [`ReservedName`] for a name that a language or its library has already.
pub fn identifier(text: &str) -> Result<String, ReservedName> {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let mut name: String = text.chars().map(plain).collect();
    if !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        name.insert_str(0, "model_");
    }
    match RESERVED.iter().find(|(_, words)| words.split_whitespace().any(|word| word == name)) {
        Some(&(meaning, _)) => Err(ReservedName { name, meaning }),
        None => Ok(name),
    }
}

/// Text inside a comment of either language: one line that cannot end the comment, open another one, continue on the next
/// line, or mean something to rustdoc.
pub(super) fn comment(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii_alphanumeric() || " .,:;+-_=()/".contains(c) {
            safe.push(c);
        } else {
            safe.extend(c.escape_unicode());
        }
    }
    safe
}

/// A string literal of C and C++ with the bytes of `text` in UTF-8. Escapes are octal because those end after three digits,
/// whatever follows; a question mark is escaped because two of them begin a trigraph.
pub(super) fn c_literal(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'"' | b'\\' | b'?' => format!("\\{}", char::from(byte)),
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\{byte:03o}"),
    };
    format!("\"{}\"", text.bytes().map(byte).collect::<String>())
}

/// A string literal of Rust. `Debug` escapes quotes and backslashes and every character that is not printed, those that turn
/// the direction of text among them.
pub(super) fn rust_literal(text: &str) -> String {
    format!("{text:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_identifiers() {
        for (text, expected) in
            [("Engine-2", "engine_2"), ("2fast", "model_2fast"), ("", "model_"), ("übung", "model__bung")]
        {
            assert_eq!(identifier(text).as_deref(), Ok(expected));
        }
        assert_eq!(identifier("integer").as_deref(), Ok("integer"), "a keyword within a name is no keyword");
    }

    #[test]
    fn names_with_a_meaning_are_refused() {
        for name in
            ["fn", "self", "Self", "int", "class", "stdint", "Math", "float", "std", "main", "tha_core"]
        {
            let said = identifier(name).unwrap_err().to_string();
            let name = name.to_lowercase();
            assert!(
                said.starts_with(&format!("'{name}' "))
                    && said.contains(&format!("such as `name` {name}_model"))
            );
            identifier(&format!("{name}_model")).unwrap();
        }
    }

    /// `tests/cli_export.rs` compiles such texts; these are the cases that a compiler would let pass.
    #[test]
    fn escapes_by_hand() {
        assert_eq!(comment("a-1.0 */ b\nc \\"), "a-1.0 \\u{2a}/ b\\u{a}c \\u{5c}");
        assert_eq!(c_literal("ü1\u{1}7?\"\\"), r#""\303\2741\0017\?\"\\""#);
        assert_eq!(rust_literal("a\u{202e}b\"\n"), r#""a\u{202e}b\"\n""#);
    }
}
