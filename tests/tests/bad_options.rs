//! Every zero, absurd or contradictory option we can think of, and every place that cannot be written to.

mod outputs;
mod refusals;

use refusals::{bench, contents, refused, table};
use tha_tests::said;

/// Options of `fit`, and what the refusal says.
const FIT: &str = r#"
--memory 0 => --memory
--memory -1 => -1
--memory 1000000000 => --memory
--memory 99999999999999999999 => --memory
--memory 1.5 => 1.5
--memory 500 => fewer than the memory of 500
--degree 0 => degree is 0
--degree 1000000000 => degree is 1000000000
--max-rank 0 => --max-rank is 0
--max-rank 1000000000 => --max-rank is 1000000000
--tol nan => --tol is NaN
--tol 2 => --tol is 2
--tol -1 => -1
--ridge nan => ridge is NaN
--ridge inf => ridge is inf
--ridge=-3 => ridge is -3
--ridge -3 => -3
--ridge much => much
--decay 0 => decay is 0
--gamma 0 => gamma is 0
--gamma x => x
--decay slow => slow
--restarts 0 => restarts is 0
--restarts 1000000000 => restarts is 1000000000
--val-fraction 0 => --val-fraction
--val-fraction 1 => --val-fraction
--val-fraction 2 => --val-fraction
--val-fraction nan => --val-fraction
--val-fraction 1e-9 => no sample is left for validation
--folds 0 => --folds
--folds 1 => --folds
--folds 1000000000 => --folds
--folds 900 => --folds
--folds 3 --no-refit => --no-refit
--folds 3 --val test.csv => --folds
--folds 3 --val-fraction 0.1 => --folds
--heads 0 => --heads
--heads -1 => -1
--heads 1000000000 => --heads
--heads 2 --subset-size 0 => --subset-size
--heads 2 --subset-size 3 => --subset-size
--heads 2 --subset-size 1000000000 => --subset-size
--subset-size 2 => --subset-size is for ensembles
--combine additive => --combine is for ensembles
--combine magic --heads 2 => magic
--heads 2 --subsets magic => --subsets: 'magic'
--subsets random => --heads
--heads 2 --subsets per-output => --heads
--subsets per-output --combine average => --combine
--subsets per-output --budget-flash 20 -q => budget
--heads 2 --subsets file:missing.json => missing.json: cannot be read
--subsets file:nonsense.json => nonsense.json
--subsets file:unknown.json => "u9" is not an input
--subsets file:empty.json => there is no subset
--subsets file:beyond.json => 3 is not an input
--subsets file:twice.json => names an input twice
--subsets file:flat.json => entry 1 is not a list
--heads 2 --subset-size 1 --budget-flash 1 -q => budget
--heads 2 --subset-size 1 --budget-macs 0 -q => budget
--budget-flash 1000 => --budget-flash is for ensembles
--threads 0 => --threads
--threads 1000000000 => --threads
--threads -2 => -2
--seed -1 => -1
--seed x => --seed
--solver magic => magic
--range wide => wide
--basis lag:3 => lags:M, levels:T
--basis levels:x => levels:x
--basis levels:100 => use 64 or 128
--basis levels:4096 => needs
--basis kautz:0.8,0.6,2 => below 1
--basis kautz:0.5,0,1 => does not ring
--basis levels:4 --memory 3 => --memory
--basis levels:4 --decay 3 => --decay
--maps 1 => 2 to 64
--maps many => many
--auto --memory 3 => --memory
--auto --minutes 0 => --minutes
--auto --minutes nan => --minutes
--auto --trials 0 => --trials
--auto --minutes 1 --trials 3 => --trials
--minutes 1 => --auto
--single => --auto
--auto --trials 3 --budget-flash 10 -q => --budget-flash
--inputs 'nothing*' => nothing*
--inputs '*' => as input and as output
--outputs u1 => as input and as output
--nonsense => --nonsense
--out m2.tha => --out
"#;

/// Whole commands, and what the refusal says.
const COMMANDS: &str = r#"
tha-train => no command given; try tha-train demo, or see tha-train --help
tha-train paint => paint
tha-train fitt => unrecognized subcommand 'fitt'; a similar subcommand exists: 'fit'; see tha-train --help
tha-train fit train.csv --out m.tha --memroy 3 => a similar argument exists: '--memory'; see tha-train fit --help
tha-train fit => not provided: --out <MODEL.tha> <DATA>; usage: tha-train fit
tha-train fit train.csv => --out
tha-train fit --out m.tha => DATA
tha-train fit train.csv --u u.npy --out m.tha => --u
tha-train fit --y y.npy --out m.tha => --u
tha-train predict => MODEL
tha-train predict good.tha --out p.csv => DATA
tha-train predict good.tha test.csv => --out
tha-train evaluate => not provided: <MODEL> <DATA>; usage: tha-train evaluate
tha-train evaluate good.tha => DATA
tha-train evaluate good.tha test.csv --threads 0 => --threads
tha-train analyze --full good.tha test.csv => --ensemble
tha-train analyze --full good.tha --ensemble heads.tha => DATA
tha-train analyze --full good.tha --ensemble heads.tha test.csv --measure-zero 1000000000 => --measure-zero
tha-train inspect => MODEL
tha-train inspect good.tha --rate 0 => --rate
tha-train export good.tha --out code => --to
tha-train export good.tha --to ada --out code => ada
tha-train export good.tha --to c => --out
tha-train export math.tha --to c --out d => math.tha: 'math' is the name of a header file
tha-train export good.tha --to rust --out d --name fn => --name: 'fn' is a keyword
tha-train export good.tha --to c --out d --name stdint => such as --name stdint_model
tha-train quantize good16.tha train.csv --out n.tha => holds 16-bit integers already
tha-train quantize good.tha train.csv --out n.tha --counts u9=0:1 => 'u9', which the model does not have
tha-train quantize good.tha train.csv --out n.tha --counts u1=0:-1 => expected INPUT=ZERO:STEP
tha-train quantize train.csv train.csv --out n.tha => not a .tha model
tha-train plan train.csv --dir x --auto => --trials: none is out of range; expected a number
tha-train plan train.csv --dir x --auto --minutes 1 => --minutes: not for a plan
tha-train plan train.csv --dir x --out m.tha => --out: not for a plan
tha-train plan train.csv --dir x --heads 2 --checkpoint c => --checkpoint: not for a plan
tha-train plan train.csv --dir x --memory 0 => --memory: 0 is out of range
tha-train plan train.csv --dir x --subset-size 2 => --subset-size is for ensembles; add --heads
tha-train plan nothing.csv --dir x => nothing.csv
tha-train plan train.csv --dir work --memory 3 --heads 2 => it belongs to a run with --basis lags:5, this one has lags:3
tha-train plan train.csv --dir work --heads 2 --subset-size 1 --range clamp => a run with --range Pass, this one has Clamp
tha-train head work 2 => `head`: 2 is out of range; expected 0 to 1
tha-train head work x => invalid value 'x'
tha-train head nothing 0 => nothing: no plan: plan.kept cannot be read
tha-train merge nothing --out m.tha => nothing: no plan
tha-train merge work --out train.csv => train.csv
tha-train tune => DATA
tha-train tune train.csv --minutes 0 => --minutes
tha-train tune train.csv --minutes nan => --minutes
tha-train tune train.csv --minutes=-1 => --minutes
tha-train tune train.csv --minutes 1e300 => --minutes
tha-train tune train.csv --trials 0 => --trials
tha-train tune train.csv --trials 2 --minutes 1 => --minutes
tha-train tune train.csv --max-memory 4 => --max-memory
tha-train completions tcsh5 => tcsh5
tha-train synth --out x => --kind
tha-train synth --kind volterra => --out <DIR>
tha-train synth --kind fractal --out x => fractal
tha-train synth --kind volterra --out x --channels 0 => --channels
tha-train synth --kind volterra --out x --outputs 1000000000 => --outputs
tha-train synth --kind volterra --out x --memory 0 => --memory
tha-train synth --kind volterra --out x --degree 0 => --degree
tha-train synth --kind volterra --out x --degree 99 => --degree
tha-train synth --kind volterra --out x --rank 0 => --rank
tha-train synth --kind volterra --out x --samples 0 => --samples
tha-train synth --kind volterra --out x --samples 1000000000 => --samples
tha-train synth --kind array --out x --samples 100000000 --channels 10000 => GB
tha-train synth --kind volterra --out x --rank 1000 --memory 10000 --channels 10000 => GB
tha-train synth --kind volterra --out x --correlation 1 => --correlation
tha-train synth --kind volterra --out x --correlation nan => --correlation
tha-train synth --kind volterra --out x --noise=-1 => --noise
tha-train synth --kind volterra --out x --noise nan => --noise
tha-train demo --seed x --out x => --seed
tha-train demo --threads 0 --out x => --threads
tha-firmware-sim => no command given
tha-firmware-sim fly good.tha => fly
tha-firmware-sim run good.tha => DATA
tha-firmware-sim run good.tha test.csv --target z80 => z80
tha-firmware-sim faults good.tha test.csv --trials 0 => --trials
tha-firmware-sim faults good.tha test.csv --trials 1000000000 => --trials
tha-firmware-sim faults good.tha test.csv --seed x => --seed
tha-firmware-sim watch good.tha test.csv --plain --speed 0 => --speed
tha-firmware-sim watch good.tha test.csv --plain --speed nan => --speed
tha-firmware-sim soak good.tha --samples x => --samples
tha-firmware-sim soak good.tha --samples 0 => --samples: 0 never filled the memory of 2
tha-firmware-sim soak good.tha --samples 1 => --samples: 1 never filled the memory of 2
tha-firmware-sim boards --nonsense => --nonsense
"#;

/// Places that cannot be written to, and what the refusal says. `@fit` and `@analyze` stand for commands that lack them.
const OUTPUTS: &str = r#"
@fit --out folder => folder: cannot be written: it is a directory
@fit --out nowhere/m.tha => nowhere/m.tha: cannot be written
@fit --out good.tha/m.tha => good.tha/m.tha: cannot be written
@fit --out m.tha --report folder => folder: cannot be written
@fit --out m.tha --report nowhere/r.html => nowhere/r.html: cannot be written
@fit --out m.tha --heads 2 --subset-size 1 --checkpoint good.tha => good.tha
@fit --out m.tha --report m.tha => m.tha
@fit --out train.csv => train.csv: cannot be written: it is read
@fit --out folder/../train.csv => train.csv: cannot be written: it is read
@fit --out test.csv --val test.csv => test.csv: cannot be written: it is read
tha-train predict good.tha test.csv --out folder => folder: cannot be written
tha-train predict good.tha test.csv --out nowhere/p.csv => nowhere/p.csv: cannot be written
tha-train predict good.tha test.csv --out test.csv => test.csv: cannot be written: it is read
tha-train predict good.tha test.csv --out good.tha => good.tha: cannot be written: it is read
@analyze --report folder => folder: cannot be written
@analyze --report nowhere/r.html => nowhere/r.html: cannot be written
@analyze --report heads.tha => heads.tha: cannot be written: it is read
tha-train export good.tha --to c --out good.tha => good.tha: cannot be written
tha-train export good.tha --to rust --out good.tha/code => good.tha/code: cannot be written
tha-train synth --kind array --out good.tha => good.tha: cannot be written
tha-train synth --kind array --out good.tha/data => good.tha/data: cannot be written
tha-train tune train.csv --trials 2 --out good.tha => good.tha
tha-train man --out good.tha => good.tha: cannot be written
tha-train demo --out good.tha => good.tha: cannot be written
tha-train demo --out good.tha/demo => good.tha/demo: cannot be written
"#;

#[test]
fn options() {
    let bench = bench();
    for (name, text) in [
        ("nonsense.json", "{"),
        ("unknown.json", "[[\"u9\"]]"),
        ("empty.json", "[]"),
        ("beyond.json", "[[3]]"),
        ("twice.json", "[[0, 0]]"),
        ("flat.json", "[0]"),
    ] {
        bench.write(name, text);
    }
    bench.ok("cp good.tha math.tha && tha-train quantize good.tha train.csv --out good16.tha -q");
    bench.ok("tha-train plan train.csv --dir work --heads 2 --subset-size 1 -q");
    let fit = |(option, word)| (format!("tha-train fit train.csv --out m.tha {option}"), word);
    let mut cases: Vec<(String, &str)> = table(FIT).map(fit).collect();
    cases.extend(table(COMMANDS).map(|(line, word)| (line.to_owned(), word)));
    refused(&bench, &cases);
}

#[test]
fn outputs() {
    let bench = bench();
    std::fs::create_dir(bench.path("folder")).unwrap();
    let whole = |line: &str| {
        line.replace("@fit", "tha-train fit train.csv --memory 2 --degree 2")
            .replace("@analyze", "tha-train analyze --full good.tha --ensemble heads.tha test.csv")
    };
    let cases: Vec<(String, &str)> = table(OUTPUTS).map(|(line, word)| (whole(line), word)).collect();
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
    let before = contents(&bench.path(""));
    for line in WRITERS {
        let said = bench.refusal(&format!("trap '' XFSZ; ulimit -f 0; {line}"));
        assert!(said.contains("new") && said.contains("cannot be written"), "{line}: {said}");
        assert!(contents(&bench.path("")) == before, "{line}: something was left");
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
        let (found, said) = (String::from_utf8_lossy(&output.stdout), said(&output));
        if found.starts_with("0\n") {
            continue; // It fits.
        }
        full += 1;
        assert_eq!(found, "2\n", "{line}: {said}");
        assert!(said.contains("No space left") && said.lines().count() == 1, "{line}: {said}");
    }
    assert!(full >= 3, "the data and the reports are larger than the file system: {full}");
}
