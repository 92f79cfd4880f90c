//! `tha-train export` as a firmware project uses it.

mod cli_common;

use cli_common::{Bench, text};

#[test]
fn both_languages_in_a_new_directory() {
    let bench = Bench::new();
    bench.ok("synth --kind volterra --samples 200 --test-samples 50 --out d -q");
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
fn refusals_are_one_line() {
    let bench = Bench::new();
    bench.write("junk.tha", "junk");
    for line in
        ["export junk.tha --to c --out d", "export junk.tha --to ada --out d", "export no.tha --to c --out d"]
    {
        let output = bench.run(line);
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{line}: {said}");
    }
    assert_eq!(bench.files().len(), 1);
}
