//! What the commands write, and where: links, FIFOs and devices stay what they are, files of others stay, names need not be
//! text, and a command whose words nobody can read does its work all the same.

use super::refusals::{bench, refused};
use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::process::{Command, Stdio};
use tha_tests::said;

#[test]
fn links_fifos_and_devices_stay_what_they_are() {
    let bench = bench();
    let predict = "tha-train predict good.tha test.csv --out";
    bench.ok(&format!("{predict} plain.csv"));
    let expected = bench.read("plain.csv");

    bench.ok("mkdir deep && : > real.csv && chmod 640 real.csv");
    for (link, target) in [("deep/link.csv", "real.csv"), ("deep/dangling.csv", "new.csv")] {
        bench.ok(&format!("ln -s ../{target} {link} && {predict} {link}"));
        assert!(fs::symlink_metadata(bench.path(link)).unwrap().is_symlink(), "{link}");
        assert_eq!(bench.read(target), expected, "{link}");
    }
    let mode = fs::metadata(bench.path("real.csv")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640, "the mode of the file that was replaced");

    // The reader gives up if nothing comes.
    bench.ok(&format!("mkfifo pipe && {{ {predict} pipe & timeout 60 cat pipe > piped.csv; wait $!; }}"));
    assert!(fs::metadata(bench.path("pipe")).unwrap().file_type().is_fifo());
    assert_eq!(bench.read("piped.csv"), expected);

    if bench.run("mknod null c 1 3 && : > null").status.success() {
        bench.ok(&format!("{predict} null && tha-train fit train.csv --memory 2 --out null --report null"));
        assert!(fs::metadata(bench.path("null")).unwrap().file_type().is_char_device());
    } else {
        println!("note: no device can be made here; skipped");
    }
    assert_eq!(fs::read_dir(bench.path("deep")).unwrap().count(), 2, "nothing is left beside the links");
}

/// Where a file goes to standard output, nothing else does.
#[test]
fn standard_output_takes_a_file() {
    let bench = bench();
    let predict = "tha-train predict good.tha test.csv --out";
    bench.ok(&format!("{predict} plain.csv"));
    let expected = bench.read("plain.csv");
    // As /dev/stdout is, but here: a fault must not cost the machine its own.
    bench.ok("ln -s /proc/self/fd/1 stdout");
    for out in ["-", "stdout"] {
        let output = bench.run(&format!("{predict} {out}"));
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{out}");
        assert_eq!(said(&output), format!("{out}: 49 of 50 samples predicted\n"));
        bench.ok(&format!("echo kept > log && {predict} {out} >> log"));
        assert_eq!(bench.read("log"), format!("kept\n{expected}"), "{out}");
    }
    let fit = "tha-train fit train.csv --memory 2 --degree 2 --restarts 1";
    bench.ok(&format!("{fit} --out - > piped.tha && cmp piped.tha good.tha"));
    let page = bench.ok(&format!("{fit} --out m.tha --report -"));
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    let page = bench.ok("tha-train analyze --full good.tha --ensemble heads.tha test.csv --report -");
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    assert!(!bench.path("-").exists());
    fs::remove_file(bench.path("stdout")).unwrap();
    refused(
        &bench,
        &[
            (format!("{predict} - --json"), "--json: standard output takes a file"),
            (format!("{fit} --out - --json"), "--json: standard output takes a file"),
            (format!("{fit} --out - --report -"), "--report: - is where the model goes"),
        ],
    );
}

#[test]
fn two_names_of_one_file() {
    let bench = bench();
    bench.ok("cp good.tha a.tha && ln a.tha hard.tha && ln -s a.tha soft.tha");
    let fit = "tha-train fit train.csv --memory 2 --degree 2";
    let mut cases = Vec::new();
    for (out, report) in [
        ("a.tha", "./a.tha"),
        ("a.tha", "other/../a.tha"),
        ("a.tha", "hard.tha"),
        ("soft.tha", "a.tha"),
        ("free.tha", "./free.tha"),
    ] {
        let line = format!("{fit} --force --out {out} --report {report}");
        cases.push((line, "is where the model goes; give another name"));
    }
    bench.ok("ln train.csv same.csv");
    cases.push((format!("{fit} --force --out same.csv"), "same.csv: cannot be written: it is read"));
    refused(&bench, &cases);
    let said = bench.refusal(&format!("ln -s free.tha link.tha && {fit} --out link.tha --report free.tha"));
    assert!(said.contains("is where the model goes") && !bench.path("free.tha").exists());
}

#[test]
fn a_read_only_file_is_refused() {
    let bench = bench();
    bench.ok("cp good.tha kept.tha && chmod 444 kept.tha");
    let fit = "tha-train fit train.csv --memory 2 --degree 2 --out kept.tha";
    let word = "kept.tha: cannot be written: it is read-only";
    refused(&bench, &[(fit.into(), word), (format!("{fit} --force"), word)]);
}

/// A command, the file of its outputs that stands in the way, and what is in that.
const OVERWRITERS: [(&str, &str, &str); 12] = [
    (
        "tha-train synth --kind array --samples 50 --test-samples 20 --out own",
        "own/train.csv",
        "u1,y1\n1,2\n",
    ),
    ("tha-train synth --kind volterra --samples 50 --test-samples 20 --out made", "made/truth.json", "{}"),
    (
        "tha-train export good.tha --to c --name plant --out own",
        "own/plant.c",
        "int main(void) { return 0; }\n",
    ),
    ("tha-train export good.tha --to rust --out own", "own/good.rs", "fn main() {}\n"),
    ("tha-train fit train.csv --memory 2 --degree 1 --out own/m.tha", "own/m.tha", "my notes"),
    ("tha-train fit train.csv --memory 2 --degree 1 --out m.tha --report own/r.html", "own/r.html", "<html>"),
    ("tha-train predict good.tha test.csv --out own/p.csv", "own/p.csv", "t,yhat_y1\n1,2\n"),
    ("tha-train predict good.tha test.csv --out own/q.csv", "own/q.csv", "\u{89}THA"),
    (
        "tha-train analyze --full good.tha --ensemble heads.tha test.csv --report own/a.html",
        "own/a.html",
        "<!doctype html>",
    ),
    ("tha-train tune train.csv --trials 3 --out own", "own/front.svg", "<svg></svg>"),
    ("tha-train man --out own", "own/tha-train-fit.1", ".TH fit 1\n"),
    ("tha-firmware-sim man --out own", "own/tha-firmware-sim.1", ".TH sim 1\n"),
];

#[test]
fn what_others_wrote_is_kept_unless_forced() {
    let bench = bench();
    bench.ok("mkdir own made");
    for (_, file, content) in OVERWRITERS {
        bench.write(file, content);
    }
    let word =
        "cannot be written: it is there and is no earlier output of this kind; give another name, or --force";
    let words: Vec<String> = OVERWRITERS.iter().map(|(_, file, _)| format!("{file}: {word}")).collect();
    let mut cases: Vec<(String, &str)> = OVERWRITERS
        .iter()
        .zip(&words)
        .map(|((line, ..), word)| (format!("{line} -q"), word.as_str()))
        .collect();
    cases.push(("tha-train demo --out own".into(), &words[0]));
    // A model and a prediction are ours, but not of the kind that is to be written.
    cases.push(("tha-train predict good.tha test.csv --out heads.tha".into(), word));
    refused(&bench, &cases);

    for (line, file, content) in OVERWRITERS {
        bench.ok(&format!("{line} --force -q"));
        assert_ne!(fs::read(bench.path(file)).unwrap(), content.as_bytes(), "{line}");
        bench.ok(&format!("{line} -q"));
    }
    // Made data is known by its checksum, whatever it was made of.
    bench.ok(&format!("{} --seed 7 -q", OVERWRITERS[0].0));
    bench.ok("echo 1,1,1,1,1,1,1,1,1,1 >> own/test.csv");
    refused(&bench, &[(OVERWRITERS[0].0.into(), "own/test.csv: cannot be written")]);
    // An empty file, as mktemp makes it, has nothing to lose.
    bench.ok("tha-train predict good.tha test.csv --out $(mktemp ./XXXXXX) -q");
}

#[test]
fn a_lost_standard_error_ends_nothing() {
    let bench = bench();
    let fit = "tha-train fit train.csv --memory 2 --degree 2 --restarts 1 --out";
    for (k, lost) in ["2>/dev/full", "2>&-"].into_iter().enumerate() {
        let words = bench.ok(&format!("{fit} {k}.tha {lost} && cmp {k}.tha good.tha"));
        assert!(words.contains("validation"), "{words}");
        for (line, code) in [
            ("tha-train evaluate missing.tha test.csv", 2),
            ("tha-train paint", 2),
            ("tha-train predict good.tha test.csv --out -", 0),
            ("tha-firmware-sim boards missing.tha", 2),
        ] {
            assert_eq!(bench.run(&format!("{line} {lost}")).status.code(), Some(code), "{line} {lost}");
        }
        // Nothing is left to say it with: the exit code does.
        let both = bench.run(&format!("tha-train inspect good.tha >/dev/full {lost}"));
        assert_eq!(both.status.code(), Some(2), "{lost}");
    }
}

/// Commands of both programs that print something.
const SPEAKERS: [&str; 12] = [
    "train inspect good.tha",
    "train evaluate good.tha test.csv --json",
    "train predict good.tha test.csv --out -",
    "train predict good.tha test.csv --out stdout",
    "train fit train.csv --memory 2 --degree 2 --restarts 1 --out - -q",
    "train completions bash",
    "train --help",
    "train fit --help",
    "train --version",
    "simulate boards",
    "simulate man",
    "simulate watch good.tha test.csv --plain",
];

#[test]
fn standard_output_that_is_full_or_closed() {
    let bench = bench();
    bench.ok("ln -s /proc/self/fd/1 stdout");
    let run = |line: &str, out: Stdio| {
        let (program, arguments) = line.split_once(' ').unwrap();
        let train = program == "train";
        let binary =
            if train { env!("CARGO_BIN_EXE_tests-train") } else { env!("CARGO_BIN_EXE_tests-simulate") };
        let mut command = Command::new(binary);
        command.args(arguments.split(' ')).current_dir(bench.path("")).stdout(out).output().unwrap()
    };
    for line in SPEAKERS {
        let output = run(line, fs::File::create("/dev/full").unwrap().into());
        let said_of_it = said(&output);
        assert_eq!((output.status.code(), said_of_it.lines().count()), (Some(2), 1), "{line}: {said_of_it}");
        let name = if line.ends_with("--out stdout") { "stdout" } else { "standard output" };
        assert!(said_of_it.contains(&format!("{name}: cannot be written")), "{line}: {said_of_it}");

        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = run(line, writer.into());
        assert_eq!(output.status.code(), Some(0), "{line}: {}", said(&output));
        let complaint = said(&output).lines().any(|line| line.starts_with("tha-"));
        assert!(!complaint, "{line}: {}", said(&output));
    }
}

/// `$x` is a name with a byte that no UTF-8 has.
#[test]
fn names_that_are_no_text() {
    let bench = bench();
    let ok = |line: &str| bench.ok(&format!("x=$(printf 'm\\377'); {line}"));
    let json = |line: &str| bench.json(&format!("x=$(printf 'm\\377'); {line}"));
    ok("cp train.csv $x.csv");
    json("tha-train fit $x.csv --memory 2 --degree 2 --out $x.tha --report $x.html --val $x.csv");
    ok("tha-train fit $x.csv --memory 2 --degree 2 --out $x.tha --report $x.html");
    let heads = "tha-train fit $x.csv --memory 2 --degree 2 --heads 2 --subset-size 1 --out h$x.tha";
    for _ in 0..2 {
        json(&format!("{heads} --checkpoint kept$x"));
    }
    let predicted = json("tha-train predict $x.tha $x.csv --out p$x.csv");
    assert_eq!(predicted["out"], "pm\u{fffd}.csv");
    json("tha-train evaluate $x.tha $x.csv");
    json("tha-train analyze --full $x.tha --ensemble h$x.tha $x.csv --report $x.html");
    json("tha-train inspect $x.tha");
    json("tha-train export $x.tha --to c --out e$x");
    json("tha-train synth --kind array --samples 50 --out s$x");
    json("tha-train man --out man$x");
    ok("test -s $x.tha -a -s p$x.csv -a -s e$x/m_.c -a -s s$x/truth.json -a -s man$x/tha-train.1");
    for command in ["run $x.tha $x.csv", "faults $x.tha $x.csv --trials 2", "soak $x.tha --samples 500"] {
        json(&format!("tha-firmware-sim {command}"));
    }
    json("tha-firmware-sim watch $x.tha $x.csv");
    json("tha-firmware-sim boards --estimate $x.tha");

    // The command that `tune` prints names the very file.
    let tuned = json("tha-train tune $x.csv --trials 3 --out t$x");
    ok("test -s t$x/front.json -a -s t$x/front.svg");
    let command = tuned["front"][0]["fit"].as_str().unwrap();
    let output = Command::new("bash").args(["-c", &format!("printf '%s\\n' {command}")]).output().unwrap();
    assert!(output.stdout.windows(7).any(|word| word == b"\nm\xff.csv"), "{command}");

    let lines = [
        "tha-train evaluate no$x.tha $x.csv",
        "tha-train fit no$x.csv --out $x.tha",
        "tha-firmware-sim run $x.tha no$x.csv",
    ];
    for line in lines {
        let said = bench.refusal(&format!("x=$(printf 'm\\377'); {line}"));
        assert!(said.contains("nom\u{fffd}.") && !said.contains("internal error"), "{line}");
    }
}
