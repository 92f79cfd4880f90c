//! Every bad input we can think of, for every command: exit code 2, one line on standard error that names the place and the
//! finding, nothing on standard output, nothing written, no panic.

use ndarray::{Array1, Array2, Array3};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use tha_tests::Bench;

/// Files and folders below a folder, with their contents.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.append(&mut contents(&path));
            found.insert(path, None);
        } else {
            found.insert(path.clone(), Some(std::fs::read(&path).unwrap()));
        }
    }
    found
}

/// Runs commands that must be refused; the word is what the line must have.
fn refused(bench: &Bench, cases: &[(String, &str)]) {
    let before = contents(&bench.path(""));
    let mut faults = String::new();
    for (line, word) in cases {
        let output = bench.run(line);
        let (code, said) = (output.status.code(), String::from_utf8_lossy(&output.stderr));
        let program = line.split_whitespace().next().unwrap();
        let clear = said.lines().count() == 1 && said.starts_with(&format!("{program}: "));
        if code != Some(2) || !clear || !said.contains(word) || said.contains("internal error") {
            writeln!(faults, "{line}: expected '{word}', found code {code:?}: {said}").unwrap();
        }
        if !output.stdout.is_empty() {
            writeln!(faults, "{line}: something on standard output").unwrap();
        }
        if contents(&bench.path("")) != before {
            panic!("{faults}{line}: something was written");
        }
    }
    assert!(faults.is_empty(), "\n{faults}");
}

/// Good data (2 inputs, 1 output), a full model `good.tha`, an ensemble `heads.tha`, another system `other.tha`.
fn bench() -> Bench {
    let bench = Bench::new(env!("CARGO_BIN_EXE_tests-train"), env!("CARGO_BIN_EXE_tests-simulate"));
    bench.ok(
        "tha-train synth --kind volterra --memory 2 --degree 2 --samples 200 --test-samples 50 --out . -q",
    );
    bench.ok("tha-train fit train.csv --out good.tha --memory 2 --degree 2 --restarts 1 -q");
    bench.ok("tha-train fit train.csv --out heads.tha --memory 2 --degree 2 --heads 2 --subset-size 1 -q");
    bench.ok("tha-train synth --kind volterra --channels 3 --memory 3 --samples 60 --test-samples 20 --out other -q");
    bench
}

#[test]
fn data() {
    let bench = bench();
    let write = |name: &str, content: &[u8]| std::fs::write(bench.path(name), content).unwrap();
    for (name, text) in [
        ("empty.csv", ""),
        ("header.csv", "u1,u2,y1\n"),
        ("nan.csv", "u1,u2,y1\n1,2,3\n1,NaN,3\n"),
        ("infinite.csv", "u1,u2,y1\n1,2,3\n-inf,2,1\n"),
        ("huge.csv", "u1,u2,y1\n1,2,3\n1,1e300,1\n"),
        ("text.csv", "u1,u2,y1\n1,2,3\n1,two,3\n"),
        ("comma.csv", "u1,u2,y1\n1,2,3\n1,\"2,5\",3\n"),
        ("gap.csv", "u1,u2,y1\n1,2,3\n1,,3\n"),
        ("ragged.csv", "u1,u2,y1\n1,2,3\n1,2\n"),
        ("wide.csv", "u1,u2,y1\n1,2,3\n1,2,3,4\n"),
        ("short.csv", "u1,u2,y1\n1,2,3\n"),
        ("short_records.csv", "record,u1,u2,y1\na,1,2,3\nb,1,2,3\nc,1,2,3\n"),
        ("returning.csv", "record,u1,u2,y1\n0,1,2,3\n1,1,2,3\n0,1,2,3\n"),
        ("twice.csv", "u1,u2,u2,y1\n1,2,3,4\n"),
        ("semicolons.csv", "u1;u2;y1\n1;2;3\n"),
        ("no_header.csv", "1,2,3\n4,5,6\n"),
        ("others.csv", "u1,u3,y1\n1,2,3\n1,2,3\n1,2,3\n"),
        ("no_outputs.csv", "u1,u2\n1,2\n3,4\n5,6\n"),
        ("data.xlsx", "PK"),
        ("plain", "u1,u2,y1\n1,2,3\n"),
    ] {
        write(name, text.as_bytes());
    }
    write("binary.csv", &[0, 159, 146, 150, 0, 10, 255, 254]);
    write("utf16.csv", &"u1,u2,y1\n1,2,3\n".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>());
    std::fs::create_dir(bench.path("folder.csv")).unwrap();
    arrays(&bench);

    // Where only the inputs are read, the outputs may be anything.
    let needing_outputs = ["no_outputs.csv", "no_y.npz", "rows.npz"];
    let bad = [
        ("missing.csv", "missing.csv: cannot be read"),
        ("folder.csv", "folder.csv: cannot be read"),
        ("empty.csv", "empty.csv: no samples (an empty file)"),
        ("header.csv", "header.csv: no samples (only a header)"),
        ("nan.csv", "nan.csv, line 3, column 'u2': NaN"),
        ("infinite.csv", "infinite.csv, line 3, column 'u1': an infinite value"),
        ("huge.csv", "huge.csv, line 3, column 'u2': 1e300"),
        ("text.csv", "text.csv, line 3, column 'u2': 'two' is not a number"),
        ("comma.csv", "comma.csv, line 3, column 'u2': '2,5' is not a number"),
        ("gap.csv", "gap.csv, line 3, column 'u2': an empty field"),
        ("ragged.csv", "ragged.csv, line 3: 2 fields"),
        ("wide.csv", "wide.csv, line 3: 4 fields"),
        ("short.csv", "short.csv: the longest record has 1 samples, fewer than the memory of 2"),
        ("short_records.csv", "fewer than the memory of 2"),
        ("returning.csv", "returning.csv, line 4, column 'record'"),
        ("twice.csv", "twice.csv, line 1: two columns are named 'u2'"),
        ("semicolons.csv", "separate the fields with commas"),
        ("no_header.csv", "no_header.csv, line 1"),
        ("binary.csv", "binary.csv, line 1: not text"),
        ("utf16.csv", "utf16.csv, line 1: not text"),
        ("data.xlsx", "data.xlsx: unknown kind of data file"),
        ("plain", "plain: unknown kind of data file"),
        ("missing.npz", "missing.npz: cannot be read"),
        ("junk.npz", "junk.npz"),
        ("cut.npz", "cut.npz"),
        ("empty.npz", "empty.npz"),
        ("no_u.npz", "no array 'u'"),
        ("cube.npz", "array 'u': 3 dimensions"),
        ("bool.npz", "not an array of real numbers"),
        ("nan.npz", "array 'u', row 2, column u1: NaN"),
        ("rows.npz", "'y' has 2 rows, but 'u' has 3"),
        ("none.npz", "array 'u' is empty"),
        ("--u missing.npy --y y.npy", "missing.npy: cannot be read"),
        ("--u junk.npy --y y.npy", "junk.npy"),
        ("--u cut.npy --y y.npy", "cut.npy"),
        ("--u u.npy --y long.npy", "'y' has 4 rows, but 'u' has 3"),
        ("no_outputs.csv", "no_outputs.csv, line 1"),
        ("no_y.npz", "no array 'y'"),
    ];
    let mut cases = Vec::new();
    for (file, word) in bad {
        let mut commands = vec![
            format!("tha-train fit {file} --out m.tha --memory 2 --degree 2"),
            format!("tha-train evaluate good.tha {file}"),
            format!("tha-train analyze --full good.tha --ensemble heads.tha {file} --report r.html"),
        ];
        if !needing_outputs.contains(&file) && !file.contains("--y long") {
            commands.push(format!("tha-train predict good.tha {file} --out p.csv"));
            commands.push(format!("tha-firmware-sim run good.tha {file}"));
            commands.push(format!("tha-firmware-sim faults good.tha {file}"));
            commands.push(format!("tha-firmware-sim watch good.tha {file} --plain"));
        }
        // A search has no memory to be too short for, only nothing to validate on.
        let found = if file.starts_with("short") { "no sample is left for validation" } else { word };
        cases.push((format!("tha-train tune {file} --out tuned --trials 2"), found));
        if !file.starts_with("--u") {
            // A validation file that is only too short is another matter: nothing is left to validate on.
            let word = if file.starts_with("short") { "short" } else { word };
            cases.push((
                format!("tha-train fit train.csv --val {file} --out m.tha --memory 2 --degree 2"),
                word,
            ));
        }
        cases.extend(commands.into_iter().map(|command| (command, word)));
    }
    // Other channels than the model's.
    for command in ["predict good.tha others.csv --out p.csv", "evaluate good.tha others.csv"] {
        cases.push((format!("tha-train {command}"), "the model's input 'u2' missing among 'u1', 'u3', 'y1'"));
    }
    cases.push(("tha-train fit train.csv --val others.csv --out m.tha".into(), "'u2'"));
    cases.push(("tha-train evaluate good.tha three.npz".into(), "'u' has 3 columns, but 2 are needed"));
    for command in ["run", "faults"] {
        cases.push((format!("tha-firmware-sim {command} good.tha others.csv"), "'u2' missing"));
    }
    refused(&bench, &cases);
}

/// Malformed NumPy files; `u.npy` and `y.npy` are good.
fn arrays(bench: &Bench) {
    let u = Array2::from_shape_fn((3, 2), |(t, i)| (3 * t + i) as f64);
    let y = Array1::from(vec![1.0, 2.0, 3.0]);
    ndarray_npy::write_npy(bench.path("u.npy"), &u).unwrap();
    ndarray_npy::write_npy(bench.path("y.npy"), &y).unwrap();
    ndarray_npy::write_npy(bench.path("long.npy"), &Array1::from(vec![1.0; 4])).unwrap();
    std::fs::write(bench.path("junk.npy"), "not numpy at all").unwrap();
    std::fs::write(bench.path("junk.npz"), "PK not an archive").unwrap();
    std::fs::write(bench.path("empty.npz"), "").unwrap();
    let whole = std::fs::read(bench.path("u.npy")).unwrap();
    std::fs::write(bench.path("cut.npy"), &whole[..whole.len() - 8]).unwrap();
    let mut nan = u.clone();
    nan[[1, 0]] = f64::NAN;
    let three = Array2::from_elem((3, 3), 1.0);
    type Add<'a> = &'a dyn Fn(&mut ndarray_npy::NpzWriter<std::fs::File>);
    let archive = |name: &str, add: Add<'_>| {
        let mut writer = ndarray_npy::NpzWriter::new(std::fs::File::create(bench.path(name)).unwrap());
        add(&mut writer);
        writer.finish().unwrap();
    };
    let with = |name: &str, u: &Array2<f64>, y: &Array1<f64>| {
        archive(name, &|to| {
            to.add_array("u", u).unwrap();
            to.add_array("y", y).unwrap();
        });
    };
    with("good.npz", &u, &y);
    with("nan.npz", &nan, &y);
    with("three.npz", &three, &y);
    with("rows.npz", &u, &Array1::from(vec![1.0, 2.0]));
    with("none.npz", &Array2::zeros((0, 2)), &Array1::from(vec![]));
    archive("no_u.npz", &|to| to.add_array("y", &y).unwrap());
    archive("no_y.npz", &|to| to.add_array("u", &u).unwrap());
    archive("cube.npz", &|to| to.add_array("u", &Array3::<f64>::zeros((3, 2, 2))).unwrap());
    archive("bool.npz", &|to| to.add_array("u", &Array2::from_elem((3, 2), true)).unwrap());
    let whole = std::fs::read(bench.path("good.npz")).unwrap();
    std::fs::write(bench.path("cut.npz"), &whole[..whole.len() / 2]).unwrap();
}

/// CRC-32 (ISO-HDLC) of bytes 0 to 11 and 16 to the end, as FORMAT.md says.
fn checksum(file: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    };
    !file[..12].iter().chain(&file[16..]).fold(!0, step)
}

#[test]
fn models() {
    let bench = bench();
    let good = std::fs::read(bench.path("good.tha")).unwrap();
    assert_eq!(checksum(&good).to_le_bytes(), good[12..16], "the checksum of this test is the format's");
    let mut flipped = good.clone();
    *flipped.last_mut().unwrap() ^= 1;
    let mut newer = good.clone();
    newer[4] = 200;
    let sum = checksum(&newer).to_le_bytes();
    newer[12..16].copy_from_slice(&sum);
    for (name, content) in [
        ("empty.tha", &b""[..]),
        ("junk.tha", b"this is not a model, however long it may be"),
        ("cut.tha", &good[..good.len() / 2]),
        ("longer.tha", &[&good[..], b"more"].concat()),
        ("flipped.tha", &flipped),
        ("newer.tha", &newer),
    ] {
        std::fs::write(bench.path(name), content).unwrap();
    }
    let mut cases = Vec::new();
    for (file, word) in [
        ("missing.tha", "missing.tha: cannot be read"),
        ("other", "other: cannot be read"),
        ("empty.tha", "empty.tha: 0 bytes are too few"),
        ("junk.tha", "junk.tha: not a .tha model"),
        ("train.csv", "train.csv: not a .tha model"),
        ("cut.tha", "cut.tha: the model is cut off"),
        ("longer.tha", "longer.tha: "),
        ("flipped.tha", "flipped.tha: "),
        ("newer.tha", "newer.tha: "),
    ] {
        for command in [
            "tha-train predict @ test.csv --out p.csv",
            "tha-train evaluate @ test.csv",
            "tha-train evaluate @ test.csv --json",
            "tha-train analyze --full @ --ensemble heads.tha test.csv --report r.html",
            "tha-train analyze --full good.tha --ensemble @ test.csv --report r.html",
            "tha-train inspect @",
            "tha-train export @ --to c --out code",
            "tha-train export @ --to rust --out code",
            "tha-firmware-sim run @ test.csv",
            "tha-firmware-sim run @ test.csv --target cortex-m4f",
            "tha-firmware-sim faults @ test.csv",
            "tha-firmware-sim watch @ test.csv --plain",
            "tha-firmware-sim boards @",
            "tha-firmware-sim soak @",
            "tha-firmware-sim soak good.tha --with @",
        ] {
            cases.push((command.replace('@', file), word));
        }
    }
    cases.push(("tha-train inspect newer.tha".into(), "200"));
    for (command, word) in [
        ("tha-train analyze --full good.tha --ensemble other/truth.tha test.csv", "memory 2, the ensemble 3"),
        ("tha-train evaluate other/truth.tha test.csv", "'u3'"),
        ("tha-firmware-sim soak good.tha --with other/truth.tha", "--with"),
    ] {
        cases.push((command.into(), word));
    }
    refused(&bench, &cases);
}

#[test]
fn options() {
    let bench = bench();
    for (name, text) in [("nonsense.json", "{"), ("unknown.json", "[[\"u9\"]]"), ("empty.json", "[]")] {
        std::fs::write(bench.path(name), text).unwrap();
    }
    let fit = [
        ("--memory 0", "--memory"),
        ("--memory -1", "-1"),
        ("--memory 1000000000", "--memory"),
        ("--memory 99999999999999999999", "--memory"),
        ("--memory 1.5", "1.5"),
        ("--memory 500", "fewer than the memory of 500"),
        ("--degree 0", "degree is 0"),
        ("--degree 1000000000", "degree is 1000000000"),
        ("--max-rank 0", "max rank is 0"),
        ("--max-rank 1000000000", "max rank is 1000000000"),
        ("--tol nan", "tolerance is NaN"),
        ("--tol 2", "tolerance is 2"),
        ("--ridge nan", "ridge is NaN"),
        ("--ridge inf", "ridge is inf"),
        ("--ridge=-3", "ridge is -3"),
        ("--ridge much", "much"),
        ("--restarts 0", "restarts is 0"),
        ("--restarts 1000000000", "restarts is 1000000000"),
        ("--val-fraction 0", "--val-fraction"),
        ("--val-fraction 1", "--val-fraction"),
        ("--val-fraction 2", "--val-fraction"),
        ("--val-fraction nan", "--val-fraction"),
        ("--val-fraction 1e-9", "no sample is left for validation"),
        ("--folds 0", "--folds"),
        ("--folds 1", "--folds"),
        ("--folds 1000000000", "--folds"),
        ("--folds 900", "--folds"),
        ("--folds 3 --no-refit", "--no-refit"),
        ("--folds 3 --val test.csv", "--folds"),
        ("--folds 3 --val-fraction 0.1", "--folds"),
        ("--heads 0", "--heads"),
        ("--heads -1", "-1"),
        ("--heads 1000000000", "--heads"),
        ("--heads 2 --subset-size 0", "--subset-size"),
        ("--heads 2 --subset-size 3", "--subset-size"),
        ("--heads 2 --subset-size 1000000000", "--subset-size"),
        ("--subset-size 2", "--subset-size is for ensembles"),
        ("--combine additive", "--combine is for ensembles"),
        ("--combine magic --heads 2", "magic"),
        ("--heads 2 --subsets magic", "--subsets: 'magic'"),
        ("--subsets random", "--heads"),
        ("--heads 2 --subsets file:missing.json", "missing.json: cannot be read"),
        ("--subsets file:nonsense.json", "nonsense.json"),
        ("--subsets file:unknown.json", "\"u9\" is not an input"),
        ("--subsets file:empty.json", "there is no subset"),
        ("--heads 2 --subset-size 1 --combine additive --folds 3", "--folds"),
        ("--heads 2 --subset-size 1 --budget-flash 1 -q", "budget"),
        ("--heads 2 --subset-size 1 --budget-macs 0 -q", "budget"),
        ("--budget-flash 1000", "--budget-flash is for ensembles"),
        ("--threads 0", "--threads"),
        ("--threads 1000000000", "--threads"),
        ("--threads -2", "-2"),
        ("--seed -1", "-1"),
        ("--seed x", "--seed"),
        ("--solver magic", "magic"),
        ("--range wide", "wide"),
        ("--inputs 'nothing*'", "nothing*"),
        ("--inputs '*'", "as input and as output"),
        ("--outputs u1", "as input and as output"),
        ("--nonsense", "--nonsense"),
        ("--out m2.tha", "--out"),
    ];
    let mut cases: Vec<(String, &str)> = fit
        .iter()
        .map(|(option, word)| (format!("tha-train fit train.csv --out m.tha {option}"), *word))
        .collect();
    for (line, word) in [
        ("tha-train", "no command given"),
        ("tha-train paint", "paint"),
        ("tha-train fit", "--out"),
        ("tha-train fit train.csv", "--out"),
        ("tha-train fit --out m.tha", "DATA"),
        ("tha-train fit train.csv --u u.npy --out m.tha", "--u"),
        ("tha-train fit --y y.npy --out m.tha", "--u"),
        ("tha-train predict", "MODEL"),
        ("tha-train predict good.tha --out p.csv", "DATA"),
        ("tha-train predict good.tha test.csv", "--out"),
        ("tha-train evaluate good.tha", "DATA"),
        ("tha-train evaluate good.tha test.csv --threads 0", "--threads"),
        ("tha-train analyze --full good.tha test.csv", "--ensemble"),
        ("tha-train analyze --full good.tha --ensemble heads.tha", "DATA"),
        (
            "tha-train analyze --full good.tha --ensemble heads.tha test.csv --measure-zero 1000000000",
            "--measure-zero",
        ),
        ("tha-train inspect", "MODEL"),
        ("tha-train export good.tha --out code", "--to"),
        ("tha-train export good.tha --to ada --out code", "ada"),
        ("tha-train export good.tha --to c", "--out"),
        ("tha-train tune", "DATA"),
        ("tha-train tune train.csv --minutes 0", "--minutes"),
        ("tha-train tune train.csv --minutes nan", "--minutes"),
        ("tha-train tune train.csv --minutes=-1", "--minutes"),
        ("tha-train tune train.csv --minutes 1e300", "--minutes"),
        ("tha-train tune train.csv --trials 0", "--trials"),
        ("tha-train tune train.csv --max-memory 0", "memory: 0"),
        ("tha-train tune train.csv --max-memory 1000000000", "memory: 1000000000"),
        ("tha-train tune train.csv --max-degree 0", "degree"),
        ("tha-train tune train.csv --max-degree 1000000000", "degree"),
        ("tha-train tune train.csv --max-rank 0", "rank"),
        ("tha-train tune train.csv --val-fraction 2", "--val-fraction"),
        ("tha-train tune train.csv --folds 1", "--folds"),
        ("tha-train completions tcsh5", "tcsh5"),
        ("tha-train synth --out x", "--kind"),
        ("tha-train synth --kind volterra", "--out"),
        ("tha-train synth --kind fractal --out x", "fractal"),
        ("tha-train synth --kind volterra --out x --channels 0", "--channels"),
        ("tha-train synth --kind volterra --out x --outputs 1000000000", "--outputs"),
        ("tha-train synth --kind volterra --out x --memory 0", "--memory"),
        ("tha-train synth --kind volterra --out x --degree 0", "--degree"),
        ("tha-train synth --kind volterra --out x --rank 0", "--rank"),
        ("tha-train synth --kind volterra --out x --samples 0", "--samples"),
        ("tha-train synth --kind volterra --out x --samples 1000000000", "--samples"),
        ("tha-train synth --kind array --out x --samples 100000000 --channels 10000", "GB"),
        ("tha-train synth --kind volterra --out x --rank 1000 --memory 10000 --channels 10000", "GB"),
        ("tha-train synth --kind volterra --out x --correlation 1", "--correlation"),
        ("tha-train synth --kind volterra --out x --correlation nan", "--correlation"),
        ("tha-train synth --kind volterra --out x --noise=-1", "--noise"),
        ("tha-train synth --kind volterra --out x --noise nan", "--noise"),
        ("tha-train demo --seed x --out x", "--seed"),
        ("tha-train demo --threads 0 --out x", "--threads"),
        ("tha-firmware-sim", "no command given"),
        ("tha-firmware-sim fly good.tha", "fly"),
        ("tha-firmware-sim run good.tha", "DATA"),
        ("tha-firmware-sim run good.tha test.csv --target z80", "z80"),
        ("tha-firmware-sim faults good.tha test.csv --trials 0", "--trials"),
        ("tha-firmware-sim faults good.tha test.csv --trials 1000000000", "--trials"),
        ("tha-firmware-sim faults good.tha test.csv --seed x", "--seed"),
        ("tha-firmware-sim watch good.tha test.csv --plain --speed 0", "--speed"),
        ("tha-firmware-sim watch good.tha test.csv --plain --speed nan", "--speed"),
        ("tha-firmware-sim soak good.tha --samples x", "--samples"),
        ("tha-firmware-sim boards --nonsense", "--nonsense"),
    ] {
        cases.push((line.into(), word));
    }
    refused(&bench, &cases);
}

#[test]
fn outputs() {
    let bench = bench();
    std::fs::create_dir(bench.path("folder")).unwrap();
    let fit = "tha-train fit train.csv --memory 2 --degree 2";
    let analyze = "tha-train analyze --full good.tha --ensemble heads.tha test.csv";
    let cases: Vec<(String, &str)> = [
        (format!("{fit} --out folder"), "folder: cannot be written: it is a directory"),
        (format!("{fit} --out nowhere/m.tha"), "nowhere/m.tha: cannot be written"),
        (format!("{fit} --out good.tha/m.tha"), "good.tha/m.tha: cannot be written"),
        (format!("{fit} --out m.tha --report folder"), "folder: cannot be written"),
        (format!("{fit} --out m.tha --report nowhere/r.html"), "nowhere/r.html: cannot be written"),
        (format!("{fit} --out m.tha --heads 2 --subset-size 1 --checkpoint good.tha"), "good.tha"),
        (format!("{fit} --out m.tha --report m.tha"), "m.tha"),
        (format!("{fit} --out train.csv"), "train.csv: cannot be written: it is read"),
        (format!("{fit} --out folder/../train.csv"), "train.csv: cannot be written: it is read"),
        (format!("{fit} --out test.csv --val test.csv"), "test.csv: cannot be written: it is read"),
        ("tha-train predict good.tha test.csv --out folder".into(), "folder: cannot be written"),
        (
            "tha-train predict good.tha test.csv --out nowhere/p.csv".into(),
            "nowhere/p.csv: cannot be written",
        ),
        (
            "tha-train predict good.tha test.csv --out test.csv".into(),
            "test.csv: cannot be written: it is read",
        ),
        (
            "tha-train predict good.tha test.csv --out good.tha".into(),
            "good.tha: cannot be written: it is read",
        ),
        (format!("{analyze} --report folder"), "folder: cannot be written"),
        (format!("{analyze} --report nowhere/r.html"), "nowhere/r.html: cannot be written"),
        (format!("{analyze} --report heads.tha"), "heads.tha: cannot be written: it is read"),
        ("tha-train export good.tha --to c --out good.tha".into(), "good.tha: cannot be written"),
        (
            "tha-train export good.tha --to rust --out good.tha/code".into(),
            "good.tha/code: cannot be written",
        ),
        ("tha-train synth --kind array --out good.tha".into(), "good.tha: cannot be written"),
        ("tha-train synth --kind array --out good.tha/data".into(), "good.tha/data: cannot be written"),
        ("tha-train tune train.csv --trials 2 --out good.tha".into(), "good.tha"),
        ("tha-train man --out good.tha".into(), "good.tha: cannot be written"),
        ("tha-train demo --out good.tha".into(), "good.tha: cannot be written"),
        ("tha-train demo --out good.tha/demo".into(), "good.tha/demo: cannot be written"),
    ]
    .into();
    refused(&bench, &cases);
}

/// What writes, and so can find the disk full.
const WRITERS: [&str; 6] = [
    "tha-train fit train.csv --memory 2 --degree 2 --restarts 1 --out new.tha -q",
    "tha-train fit train.csv --memory 2 --degree 2 --restarts 1 --out new.tha --report new.html -q",
    "tha-train predict good.tha train.csv --out new.csv -q",
    "tha-train analyze --full good.tha --ensemble heads.tha train.csv --report new.html -q",
    "tha-train export good.tha --to c --out new/deep -q",
    "tha-train synth --kind array --out new/deep -q",
];

/// No file may have a byte: what a full disk does to every write.
#[test]
fn a_full_disk() {
    let bench = bench();
    let limited = |line: &str| format!("trap '' XFSZ; ulimit -f 0; {line}");
    let before = contents(&bench.path(""));
    for line in WRITERS {
        let output = bench.run(&limited(line));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert_eq!(said.lines().count(), 1, "{line}: {said}");
        assert!(said.contains("new") && said.contains("cannot be written"), "{line}: {said}");
        assert!(contents(&bench.path("")) == before, "{line}: something was left");
    }
    for line in [
        "tha-train inspect good.tha",
        "tha-train evaluate good.tha test.csv --json",
        "tha-firmware-sim boards",
    ] {
        let output = bench.run(&format!("{line} > /dev/full"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert!(
            said.contains("standard output: cannot be written") && said.lines().count() == 1,
            "{line}: {said}"
        );
    }
}

/// A file system of 16 KiB, where the machine lets one be mounted out of everybody's sight.
#[test]
fn a_full_file_system() {
    let bench = bench();
    std::fs::create_dir(bench.path("small")).unwrap();
    let mounted = |line: &str| {
        let line = line.replace("--out ", "--out small/").replace("--report ", "--report small/");
        format!(
            "unshare -rm sh -c 'mount -t tmpfs -o size=16k none small && {{ {line}; echo $?; ls -A small; }}'"
        )
    };
    if !bench.run(&mounted("true")).status.success() {
        println!("note: no file system can be mounted here; skipped");
        return;
    }
    let mut full = 0;
    for line in WRITERS {
        let output = bench.run(&mounted(line));
        let (found, said) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if found.starts_with("0\n") {
            continue; // It fits.
        }
        full += 1;
        assert_eq!(found, "2\n", "{line}: {said}");
        assert!(said.contains("No space left") && said.lines().count() == 1, "{line}: {said}");
    }
    assert!(full >= 3, "the data and the reports are larger than the file system: {full}");
}

/// Channels are found by name: in another order, and beside others, they give the same numbers.
#[test]
fn channels_in_another_order() {
    let bench = bench();
    for file in ["train.csv", "test.csv"] {
        let text = std::fs::read_to_string(bench.path(file)).unwrap();
        let line = |line: &str| {
            let fields: Vec<&str> = line.split(',').collect();
            format!("{},note,{},{}\n", fields[2], fields[1], fields[0])
        };
        let shuffled: String = text.lines().map(line).collect();
        assert!(shuffled.starts_with("y1,note,u2,u1\n"));
        std::fs::write(bench.path(&format!("shuffled_{file}")), shuffled).unwrap();
    }
    let same = |command: &str, file: &str| {
        assert_eq!(
            bench.ok(command),
            bench.ok(&command.replace(file, &format!("shuffled_{file}"))),
            "{command}"
        );
    };
    same("tha-train evaluate good.tha test.csv --json", "test.csv");
    same("tha-train predict good.tha test.csv --out p.csv -q; cat p.csv", "test.csv");
    same("tha-train analyze --full good.tha --ensemble heads.tha test.csv --json", "test.csv");
    same("tha-firmware-sim faults good.tha train.csv --trials 3 --json", "train.csv");
    same("tha-firmware-sim watch good.tha test.csv --plain", "test.csv");
    let fit = "tha-train fit train.csv --memory 2 --degree 2 --restarts 1 -q";
    same(&format!("{fit} --val test.csv --out v.tha; od -t x1 v.tha"), "test.csv");
    // A model of the other order is another file, and the analysis brings the two together.
    bench.ok("tha-train fit shuffled_train.csv --memory 2 --degree 2 --restarts 1 -q --heads 2 --subset-size 1 --out h.tha");
    let error = |ensemble: &str| {
        let text =
            bench.ok(&format!("tha-train analyze --full good.tha --ensemble {ensemble} test.csv --json"));
        let error: f64 = text.split("\"error\":").nth(1).unwrap().split(',').next().unwrap().parse().unwrap();
        error
    };
    assert!(
        (error("h.tha") / error("heads.tha") - 1.0).abs() < 1e-3,
        "{} {}",
        error("h.tha"),
        error("heads.tha")
    );
}

/// Few samples are not bad input: a search over them comes to its end.
#[test]
fn a_search_on_few_samples() {
    let bench = bench();
    bench.ok("tha-train tune train.csv --out tuned --trials 40 -q");
}
