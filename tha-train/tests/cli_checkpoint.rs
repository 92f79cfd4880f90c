//! Checkpoints of ensembles: what an interrupted or damaged run leaves changes no byte of the model.

mod cli_common;
#[path = "cli_common/ensembles.rs"]
mod ensembles;

use cli_common::Bench;
use ensembles::{FIT, separate, synth};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

#[test]
fn a_killed_run_goes_on_and_ends_with_the_same_bytes() {
    let bench = synth("--channels 12 --rank 3 --samples 1500 --seed 3 --noise 0.02 --correlation 0.5");
    for combine in ["average", "additive"] {
        let arguments = format!("{FIT} --heads 8 --subset-size 4 --combine {combine} --restarts 2");
        bench.ok(&arguments);
        let expected = bench.read("m.tha");
        for milliseconds in [40, 150, 400] {
            let kept = format!("{combine}-{milliseconds}");
            let with_checkpoint = format!("{arguments} --checkpoint {kept}");
            std::fs::remove_file(bench.path("m.tha")).unwrap();
            let mut killed =
                bench.command(&with_checkpoint).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(milliseconds));
            killed.kill().unwrap();
            killed.wait().unwrap();
            bench.ok(&with_checkpoint);
            let found = bench.read("m.tha");
            assert!(found == expected, "{combine}, killed after {milliseconds} ms");
            assert!(files(&bench.path(&kept)).len() > 8, "the heads are kept");
        }
    }
    let said = bench.refusal(&format!("{FIT} --heads 8 --max-rank 3 --checkpoint average-40"));
    assert!(said.contains("--max-rank 4, this one has 3"), "{said}");
}

/// The files of a checkpoint, by name, without the damaged ones.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| !path.display().to_string().contains(".damaged-")).collect();
    files.sort();
    files
}

/// Fits with some options; the bytes of the model, and the warnings.
fn model(options: &str, bench: &Bench) -> (Vec<u8>, Vec<String>) {
    let said = bench.said(&format!("{FIT} {options}"));
    let warnings = said.lines().filter(|line| line.starts_with("warning: ")).map(String::from).collect();
    (bench.read("m.tha"), warnings)
}

#[test]
fn a_checkpoint_changes_no_byte_whatever_is_in_it() {
    let bench = synth("--channels 8 --rank 2 --samples 400 --seed 3 --noise 0.02 --correlation 0.9");
    for combine in ["average", "additive"] {
        let common = format!("--heads 6 --subset-size 3 --combine {combine}");
        // Options that may differ between the runs of a folder, each after what the others left there.
        for (turn, more) in
            ["", "--budget-flash 1000", "--budget-macs 150 --no-refit", "--budget-flash 700", "--range clamp"]
                .into_iter()
                .enumerate()
        {
            let (expected, _) = model(&format!("{common} {more}"), &bench);
            let kept = format!("{common} {more} --checkpoint {combine}");
            assert!(model(&kept, &bench) == (expected.clone(), vec![]), "{combine} {more}");
            // Any part of the files may be what an interrupted run left.
            for (k, file) in files(&bench.path(combine)).iter().enumerate() {
                if k % (turn + 2) == 0 {
                    std::fs::remove_file(file).unwrap();
                }
            }
            assert!(model(&kept, &bench) == (expected, vec![]), "{combine} {more}, continued");
        }
    }
}

#[test]
fn a_damaged_checkpoint_is_found_said_and_made_again() {
    let bench = Bench::new();
    separate("train.csv", 300, 0.05, 17, &bench);
    for (name, options) in [
        ("average", "--heads 4 --subset-size 3"),
        ("additive", "--heads 5 --subset-size 3 --combine additive --budget-flash 1300"),
        ("per-output", "--subsets per-output --subset-size 2"),
    ] {
        let (expected, _) = model(options, &bench);
        let options = format!("{options} --checkpoint {name}");
        assert!(model(&options, &bench) == (expected.clone(), vec![]), "{name}");
        let kept = files(&bench.path(name));
        let whole: Vec<Vec<u8>> = kept.iter().map(|file| std::fs::read(file).unwrap()).collect();
        for damage in ["empty", "cut", "another file", "a model", "a directory", "1", "2", "3", "4", "5"] {
            for (k, file) in kept.iter().enumerate() {
                std::fs::remove_file(file).unwrap();
                let mut bytes = match damage {
                    "a directory" => {
                        std::fs::create_dir(file).unwrap();
                        continue;
                    }
                    "empty" => vec![],
                    "cut" => whole[k][..whole[k].len() / 2].to_vec(),
                    "another file" => whole[(k + 1) % whole.len()].clone(),
                    "a model" => expected.clone(),
                    _ => whole[k].clone(),
                };
                if let Ok(round) = damage.parse::<usize>() {
                    let bit = round * (k + 1) * 7919 % (8 * bytes.len());
                    bytes[bit / 8] ^= 1 << (bit % 8);
                }
                std::fs::write(file, bytes).unwrap();
            }
            let (found, warnings) = model(&options, &bench);
            assert!(found == expected, "{name}, {damage}");
            for file in &kept {
                let named = file.file_name().unwrap().to_str().unwrap();
                let about = warnings.iter().filter(|line| line.contains(named)).count();
                assert_eq!(about, 1, "{name}, {damage}, {named}: {warnings:?}");
            }
            assert_eq!(warnings.len(), kept.len(), "{name}, {damage}");
        }
    }
}
