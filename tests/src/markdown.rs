//! Code blocks of a Markdown file, and the shell commands in them.

/// A block of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Line of its fence, from 1.
    pub line: usize,
    /// First word after the fence; empty for a block that has none, or is only indented.
    pub language: String,
    /// Second word: the name of the file that the block is.
    pub file: Option<String>,
    /// The code.
    pub text: String,
}

/// All blocks: fenced ones, and every other line that four spaces make code.
pub fn blocks(markdown: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut lines = markdown.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let mut block = Block { line: at + 1, language: String::new(), file: None, text: String::new() };
        if let Some(info) = line.trim_start().strip_prefix("```") {
            let mut words = info.split_whitespace().map(String::from);
            (block.language, block.file) = (words.next().unwrap_or_default(), words.next());
            let inside = lines.by_ref().take_while(|(_, line)| !line.trim_start().starts_with("```"));
            block.text = inside.flat_map(|(_, line)| [line, "\n"]).collect();
            found.push(block);
        } else if line.starts_with("    ") {
            found.push(Block { text: format!("{}\n", line.trim_start()), ..block });
        }
    }
    found
}

/// The commands of a block: one per line, lines that end in a backslash joined, comments and blank lines left out.
pub fn commands(text: &str) -> Vec<String> {
    let joined = text.replace("\\\n", " ");
    let command = |line: &str| {
        let line = line.split(" # ").next().unwrap_or_default().trim();
        let words: Vec<&str> = line.split_whitespace().collect();
        (!words.is_empty() && !line.starts_with('#')).then(|| words.join(" "))
    };
    joined.lines().filter_map(command).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fenced_and_indented_blocks() {
        let text = "a\n\n```sh\none # first\n\ntwo \\\n  three\n# four\n```\n\n    five\n\n- item\n\n```c main.c\nint x;\n```\n";
        let found = blocks(text);
        let shape: Vec<_> = found.iter().map(|b| (b.line, b.language.as_str(), b.file.as_deref())).collect();
        assert_eq!(shape, [(3, "sh", None), (11, "", None), (15, "c", Some("main.c"))]);
        assert_eq!(commands(&found[0].text), ["one", "two three"]);
        assert_eq!(commands(&found[1].text), ["five"]);
        assert_eq!(found[2].text, "int x;\n");
    }
}
