//! Every bad data and model file we can think of, for every command that reads one.

mod refusals;

use ndarray::{Array1, Array2, Array3};
use refusals::{bench, refused, table};
use std::io::Write as _;
use tha_tests::{Bench, value};

/// Bad data files, and what the refusal says.
const BAD: &str = r"
missing.csv => missing.csv: cannot be read
folder.csv => folder.csv: cannot be read
empty.csv => empty.csv: no samples (an empty file)
header.csv => header.csv: no samples (only a header)
nan.csv => nan.csv, line 3, column 'u2': NaN; fill the gap
infinite.csv => infinite.csv, line 3, column 'u1': an infinite value; fill the gap
huge.csv => huge.csv, line 3, column 'u2': 1e300 does not fit
text.csv => text.csv, line 3, column 'u2': 'two' is not a number
comma.csv => comma.csv, line 3, column 'u2': '2,5' is not a number
gap.csv => gap.csv, line 3, column 'u2': an empty field; fill the gap
ragged.csv => ragged.csv, line 3: 2 fields, but the header has 3
wide.csv => wide.csv, line 3: 4 fields
short.csv => short.csv: the longest record has 1 samples, fewer than the memory of 2
short_records.csv => fewer than the memory of 2
returning.csv => returning.csv, line 4, column 'record': record '0' comes back
twice.csv => twice.csv, line 1: two columns are named 'u2'
semicolons.csv => line 1: one column only, with semicolons in it; separate the fields with commas, and
tabs.csv => line 1: one column only, with tabs in it; separate the fields with commas
broken_name.csv => line 1: a line break in the name 'y1\nlevel'
quote.csv => quote.csv, line 6, column 'u2': a quote that is not closed
latin.csv => latin.csv, line 1: the name of column 4, 'T_�C', is not UTF-8 but perhaps Latin-1
no_header.csv => no_header.csv, line 1
binary.csv => binary.csv, line 1: not text
utf16.csv => utf16.csv, line 1: not UTF-8 but UTF-16; save the file as 'CSV UTF-8'
data.xlsx => data.xlsx: unknown kind of data file
plain => plain: unknown kind of data file
missing.npz => missing.npz: cannot be read
junk.npz => junk.npz
cut.npz => cut.npz
empty.npz => empty.npz
no_u.npz => no array 'u'
cube.npz => array 'u': 3 dimensions
bool.npz => not an array of real numbers
nan.npz => array 'u', row 2, column u1: NaN
rows.npz => 'y' has 2 rows, but 'u' has 3
none.npz => array 'u' is empty
absurd.npz => absurd.npz: array 'u':
flat.npz => array 'record' has not one column
--u absurd.npy --y y.npy => absurd.npy:
--u endless.npy --y y.npy => endless.npy: no header
--u nested.npy --y y.npy => nested.npy: no header
--u missing.npy --y y.npy => missing.npy: cannot be read
--u junk.npy --y y.npy => junk.npy
--u cut.npy --y y.npy => cut.npy
--u u.npy --y long.npy => 'y' has 4 rows, but 'u' has 3
no_outputs.csv => no_outputs.csv, line 1
no_y.npz => no array 'y'
";

#[test]
fn data() {
    let bench = bench();
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
        ("semicolons.csv", "u1;u2;y1\n1,5;2,5;3\n"),
        ("tabs.csv", "u1\tu2\ty1\n1\t2\t3\n"),
        ("broken_name.csv", "u1,u2,\"y1\nlevel\"\n1,2,3\n"),
        ("no_header.csv", "1,2,3\n4,5,6\n"),
        ("few.csv", "u1,u2,y1\n1,2,3\n1,2,4\n3,4,5\n"),
        ("others.csv", "u1,u3,y1\n1,2,3\n1,2,3\n1,2,3\n"),
        ("no_outputs.csv", "u1,u2\n1,2\n3,4\n5,6\n"),
        ("data.xlsx", "PK"),
        ("plain", "u1,u2,y1\n1,2,3\n"),
    ] {
        bench.write(name, text);
    }
    let rows: Vec<String> =
        (2..=301).map(|line| if line == 6 { "1,\"2,3" } else { "1,2,3" }.into()).collect();
    bench.write("quote.csv", format!("u1,u2,y1\n{}\n", rows.join("\n")));
    bench.write("latin.csv", b"u1,u2,y1,T_\xb0C\n1,2,3,4\n");
    bench.write("binary.csv", [0, 159, 146, 150, 0, 10, 255, 254]);
    bench.write(
        "utf16.csv",
        "u1,u2,y1\n1,2,3\n".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>(),
    );
    std::fs::create_dir(bench.path("folder.csv")).unwrap();
    arrays(&bench);

    // Where only the inputs are read, the outputs may be anything.
    let needing_outputs = ["no_outputs.csv", "no_y.npz", "rows.npz"];
    let mut cases = Vec::new();
    for (file, word) in table(BAD) {
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
        // A search has no memory to be too short for, only too little to compare settings on.
        let found =
            if file.starts_with("short") { "samples are too few to compare settings on" } else { word };
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
    cases.push(("tha-train fit short.csv --out m.tha --auto".into(), "short.csv: 1 samples are too few"));
    cases.push(("tha-train fit few.csv --out m.tha --memory 2".into(), "no sample is left for validation"));
    cases.push(("tha-train fit train.csv --val others.csv --out m.tha".into(), "'u2'"));
    cases.push(("tha-train evaluate good.tha three.npz".into(), "'u' has 3 columns"));
    for command in ["run", "faults"] {
        cases.push((format!("tha-firmware-sim {command} good.tha others.csv"), "'u2' missing"));
    }
    refused(&bench, &cases);
}

/// What the machine cannot hold, and what a model cannot, is refused before anything is computed.
#[cfg(target_os = "linux")]
#[test]
fn sizes() {
    let bench = bench();
    let wide = |count: usize, value: &str| vec![value; count].join(",");
    let names: Vec<String> = (1..=60_000).map(|i| format!("u{i}")).collect();
    for (name, count) in [("wide.csv", 12), ("many.csv", 20)] {
        let rows: String = (0..count).map(|t| format!("{t},{}\n", wide(60_000, "1.5"))).collect();
        bench.write(name, format!("y1,{}\n{rows}", names.join(",")));
    }
    for (name, u, y) in [("tiny_u.csv", 1e-200, 1.0), ("tiny_y.csv", 1.0, 1e-200), ("huge.csv", 1e200, 1.0)] {
        let row = |t: i32| format!("{:e},{:e}\n", u * f64::from(t * t % 7), y * f64::from(t * t % 5));
        let rows: String = (0..40).map(row).collect();
        bench.write(name, format!("u1,y1\n{rows}"));
    }
    let mut cases: Vec<(String, &str)> = Vec::new();
    for (options, word) in [
        ("", "the covariance of all inputs and lags would take"),
        ("--solver als", "the covariance of all inputs and lags would take"),
        ("--heads 2 --subset-size 60000", "the covariance of all inputs and lags would take"),
        ("--heads 2 --subsets weighted", "the relevance of all inputs would take"),
        ("--heads 2 --subsets adaptive", "the relevance of all inputs would take"),
    ] {
        cases.push((format!("tha-train fit wide.csv --out m.tha --memory 5 {options}"), word));
    }
    arrays(&bench);
    for file in ["absurd.npz", "--u absurd.npy --y y.npy"] {
        let word = "the array that its header describes would take 48000.0 GB, but only ";
        cases.push((format!("tha-train fit {file} --out m.tha"), word));
    }
    cases.push(("tha-train tune many.csv --out tuned".into(), "60000 inputs are too many for a search"));
    let memory = "--memory 2 --degree 2 --out m.tha";
    for options in ["", "--heads 1 --subset-size 1", "--folds 2"] {
        for (file, word) in [
            ("tiny_u.csv", "tiny_u.csv, column 'u1': its standard"),
            ("tiny_y.csv", "tiny_y.csv, column 'y1': its standard"),
            ("huge.csv", "huge.csv, line 3, column 'u1': 1e200"),
        ] {
            cases.push((format!("tha-train fit {file} {memory} {options}"), word));
        }
    }
    refused(&bench, &cases);
    // Heads of few inputs are no matter of size.
    bench.ok("tha-train fit wide.csv --out m.tha --memory 1 --degree 2 --heads 2 --subset-size 2 -q");
}

/// Malformed NumPy files; `u.npy` and `y.npy` are good.
fn arrays(bench: &Bench) {
    let u = Array2::from_shape_fn((3, 2), |(t, i)| (3 * t + i) as f64);
    let y = Array1::from(vec![1.0, 2.0, 3.0]);
    ndarray_npy::write_npy(bench.path("u.npy"), &u).unwrap();
    ndarray_npy::write_npy(bench.path("y.npy"), &y).unwrap();
    ndarray_npy::write_npy(bench.path("long.npy"), &Array1::from(vec![1.0; 4])).unwrap();
    bench.write("junk.npy", "not numpy at all");
    bench.write("junk.npz", "PK not an archive");
    bench.write("empty.npz", "");
    let whole = std::fs::read(bench.path("u.npy")).unwrap();
    bench.write("cut.npy", &whole[..whole.len() - 8]);
    // Headers that claim what nobody has: of the array, of their own length, and of the depth of their nesting.
    let header = |text: &str| {
        let length = u16::try_from(text.len() + 1).unwrap().to_le_bytes();
        [b"\x93NUMPY\x01\x00", &length[..], text.as_bytes(), b"\n"].concat()
    };
    let claim = header("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 3)}");
    bench.write("absurd.npy", &claim);
    bench.write("endless.npy", b"\x93NUMPY\x02\x00\xff\xff\xff\xff{");
    bench.write("nested.npy", header(&"(".repeat(60_000)));
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
    archive("flat.npz", &|to| {
        to.add_array("u", &u).unwrap();
        to.add_array("y", &y).unwrap();
        to.add_array("Record", &Array2::<f64>::zeros((3, 0))).unwrap();
    });
    let mut absurd = zip::ZipWriter::new(std::fs::File::create(bench.path("absurd.npz")).unwrap());
    absurd.start_file("u.npy", zip::write::SimpleFileOptions::default()).unwrap();
    absurd.write_all(&claim).unwrap();
    absurd.finish().unwrap();
    let whole = std::fs::read(bench.path("good.npz")).unwrap();
    bench.write("cut.npz", &whole[..whole.len() / 2]);
}

/// CRC-32 (ISO-HDLC) of bytes 0 to 11 and 16 to the end, as FORMAT.md says.
fn checksum(file: &[u8]) -> u32 {
    crc::Crc::<u32>::new(&crc::CRC_32_ISO_HDLC).checksum(&[&file[..12], &file[16..]].concat())
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
        bench.write(name, content);
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

/// Channels are found by name: in another order, and beside others, they give the same numbers.
#[test]
fn channels_in_another_order() {
    let bench = bench();
    for file in ["train.csv", "test.csv"] {
        let text = bench.read(file);
        let line = |line: &str| {
            let fields: Vec<&str> = line.split(',').collect();
            format!("{},note,{},{}\n", fields[2], fields[1], fields[0])
        };
        let shuffled: String = text.lines().map(line).collect();
        assert!(shuffled.starts_with("y1,note,u2,u1\n"));
        bench.write(&format!("shuffled_{file}"), shuffled);
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
        let line = format!("tha-train analyze --full good.tha --ensemble {ensemble} test.csv");
        value(&bench.json(&line)["error"])
    };
    let (other, own) = (error("h.tha"), error("heads.tha"));
    assert!((other / own - 1.0).abs() < 1e-3, "{other} {own}");
}

/// Few samples are not bad input: a search over them comes to its end.
#[test]
fn a_search_on_few_samples() {
    let bench = bench();
    bench.ok("tha-train tune train.csv --out tuned --trials 40 -q");
}
