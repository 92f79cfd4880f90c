//! `tha-train export` as a firmware project uses it.

mod cli_common;

use cli_common::{Bench, text};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::path::Path;
use std::process::Command;
use tha_core::build::ModelSpec;
use tha_train::{Model, SynthKind as Kind, SynthParams, export, generate};

#[test]
fn both_languages_in_a_new_directory() {
    let bench = Bench::synth("--kind volterra --samples 200 --test-samples 50 --out d");
    let made = bench.json("export d/truth.tha --to c --out firmware/src");
    assert_eq!(made["name"], "truth");
    let (header, source) = (bench.read("firmware/src/truth.h"), bench.read("firmware/src/truth.c"));
    assert!(text(&header).contains("#define TRUTH_INPUTS 2\n"));
    assert!(text(&source).contains("int truth_push(") && !text(&source).contains('@'));

    bench.ok("export d/truth.tha --to rust --out src --name Engine-2");
    assert!(text(&bench.read("src/engine_2.rs")).contains("pub type ModelState ="));
    assert_eq!(bench.ok("export d/truth.tha --to rust --out src -q"), "");
}

#[test]
fn integers_take_counts() {
    let bench = Bench::synth("--kind volterra --samples 200 --test-samples 50 --out d");
    bench.ok("quantize d/truth.tha d/train.csv --out d/truth16.tha -q");
    bench.ok("export d/truth16.tha --to c --out .");
    let (header, source) = (bench.read("truth16.h"), bench.read("truth16.c"));
    assert!(text(&header).contains("int truth16_push_counts(truth16_state *state, const int16_t counts["));
    assert!(!text(&source).contains('@') && !text(&header).contains('@'));
    bench.ok("export d/truth16.tha --to rust --out .");
    let module = text(&bench.read("truth16.rs"));
    assert!(module.contains("pub type ModelState = tha_core::integer::State<INPUTS, HISTORY, SCRATCH>;"));
}

fn truth(channels: usize) -> ModelSpec {
    let options =
        SynthParams { channels, memory: 1, degree: 1, samples: 50, ..SynthParams::new(Kind::Volterra) };
    generate(&options).unwrap().model.unwrap().spec().clone()
}

/// Channels in one compilation.
const CHANNELS: usize = 64;

/// What ends a comment, a line or a literal, joins lines, swallows what follows, or turns the direction of text.
const NASTY: [&str; 32] = [
    "*/",
    "/*",
    "*\\",
    "\\*",
    "//",
    "??/",
    "??/\n/",
    "*??/\n/",
    "\\",
    "\\\n",
    "\n",
    "\r",
    "\t",
    "\0",
    "\"",
    "'",
    "\\x",
    "7",
    "f",
    "@",
    "@name@",
    "{",
    "}",
    "%s",
    "\u{202e}",
    "\u{2066}",
    "\u{2028}",
    "\u{301}",
    "ü",
    "</h3><script>",
    "*/ int pwned(void) { return 42; } /*",
    "\n#error pwned\ncompile_error!(\"pwned\");\n",
];

fn name() -> impl Strategy<Value = String> {
    let piece = prop_oneof![2 => any::<char>().prop_map(String::from), 3 => prop::sample::select(&NASTY[..]).prop_map(String::from)];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

/// Runs a tool in a folder; gives its standard output, or nothing and a note where the tool is not installed.
fn run(folder: &Path, tool: impl AsRef<Path>, arguments: &[&str]) -> Option<Vec<u8>> {
    let tool = tool.as_ref();
    let Ok(output) = Command::new(tool).args(arguments).current_dir(folder).output() else {
        println!("note: {} is not installed; skipped", tool.display());
        return None;
    };
    assert!(output.status.success(), "{}: {}", tool.display(), text(&output.stderr));
    Some(output.stdout)
}

/// The names as bytes, each with a 0 behind it.
fn listed<'n>(names: impl IntoIterator<Item = &'n String>) -> Vec<u8> {
    names.into_iter().flat_map(|name| [name.as_bytes(), &[0]].concat()).collect()
}

/// Code that a name puts into the source defines `pwned` once more.
fn compile_c(folder: &Path, spec: &ModelSpec) -> Option<Vec<u8>> {
    for file in export::c("model", &Model::new(spec.clone())) {
        std::fs::write(folder.join(file.name), file.text).unwrap();
    }
    let channels = spec.inputs.iter().map(|channel| &channel.name);
    let lengths: Vec<String> = channels.map(|name| (name.len() + 1).to_string()).collect();
    let main = format!(
        "#include <stdio.h>\nint pwned(void);\nint pwned(void) {{ return 0; }}\n#include \"model.c\"\n\
         static const char *const names[MODEL_INPUTS] = MODEL_INPUT_NAMES;\n\
         static const unsigned lengths[MODEL_INPUTS] = {{{}}};\n\
         int main(void)\n{{\n    int i;\n\
         for (i = 0; i < MODEL_INPUTS; i++) fwrite(names[i], 1, lengths[i], stdout);\n    return pwned();\n}}\n",
        lengths.join(", ")
    );
    std::fs::write(folder.join("main.c"), main).unwrap();
    let strict = ["-std=c99", "-trigraphs", "-Wall", "-Wextra", "-Werror", "-pedantic"];
    run(folder, "gcc", &[&strict[..], &["main.c", "-o", "main_c"]].concat())?;
    run(folder, folder.join("main_c"), &[])
}

/// The module needs no more of tha-core than this to compile.
const CORE: &str = "pub struct Aligned<T>(pub T);
pub struct State<const I: usize, const H: usize, const S: usize>;
pub struct Model<'a>(&'a [u8]);
pub struct ParseError;
impl<'a> Model<'a> { pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> { Ok(Self(bytes)) } }
";

fn compile_rust(folder: &Path, spec: &ModelSpec, bytes: &[u8]) -> Option<Vec<u8>> {
    let file = export::rust("model", spec, bytes);
    std::fs::write(folder.join(file.name), file.text).unwrap();
    std::fs::write(folder.join("core.rs"), CORE).unwrap();
    let main = "#[allow(dead_code)] mod model;\nfn main() { for name in model::INPUT_NAMES { print!(\"{name}\\0\"); } }\n";
    std::fs::write(folder.join("main.rs"), main).unwrap();
    let rustc = Path::new(env!("CARGO")).with_file_name("rustc");
    run(folder, &rustc, &["--crate-type=rlib", "--crate-name=tha_core", "core.rs"])?;
    let strict = ["--edition=2024", "-D", "warnings", "--extern", "tha_core=libtha_core.rlib"];
    run(folder, &rustc, &[&strict[..], &["main.rs", "-o", "main_rust"]].concat())?;
    run(folder, folder.join("main_rust"), &[])
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 4,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Whatever the channels and the tool are called, the sources compile without a warning, hold no code but their own,
    /// and give the names back.
    #[test]
    fn names_are_data(names in prop::collection::vec(name(), CHANNELS)) {
        let mut spec = truth(CHANNELS);
        let bytes = spec.to_bytes().unwrap();
        spec.inputs.iter_mut().zip(&names).for_each(|(channel, name)| channel.name.clone_from(name));
        spec.outputs[0].name = names.concat();
        spec.provenance.tool = names.concat();
        let folder = tempfile::tempdir().unwrap();
        for found in [compile_c(folder.path(), &spec), compile_rust(folder.path(), &spec, &bytes)].into_iter().flatten() {
            prop_assert!(found == listed(&names), "{:?}", text(&found));
        }
    }
}

/// The same from a recording, and in the report: as many tags and attributes as with plain names.
#[test]
fn names_in_a_recording_are_data() {
    let bench = Bench::synth("--kind volterra --memory 2 --degree 2 --samples 200 --test-samples 50 --out d");
    let plain = text(&bench.read("d/train.csv"));
    let (_, rows) = plain.split_once('\n').unwrap();
    let names =
        ["u1*\\ int pwned(void) { return 42; } \\*", "u<script src='x'>\"&</h3><b id=\"x", "y??/<i>\"'"];
    let mut tags = Vec::new();
    for (file, header) in [
        ("plain", names.map(|name| name.replace(|c: char| !c.is_alphanumeric(), "_")).join(",")),
        ("hostile", names.map(|name| format!("\"{}\"", name.replace('"', "\"\""))).join(",")),
    ] {
        bench.write(&format!("{file}.csv"), format!("{header}\n{rows}"));
        let shape = "--memory 2 --degree 2 --heads 2 --subset-size 1 -q";
        bench.ok(&format!("fit {file}.csv --out {file}.tha --report {file}.html {shape}"));
        let page = text(&bench.read(&format!("{file}.html")));
        tags.push(['<', '>', '"'].map(|c| page.matches(c).count()));
    }
    assert_eq!(tags[0], tags[1]);
    bench.ok("export hostile.tha --to c --out .");
    let source = text(&bench.read("hostile.h"));
    assert!(
        source.contains(
            r#"{"u1*\\ int pwned(void) { return 42; } \\*", "u<script src='x'>\"&</h3><b id=\"x"}"#
        )
    );
    assert!(!source.replace("\"u1*\\\\ int pwned", "").contains("pwned"), "{source}");
}
