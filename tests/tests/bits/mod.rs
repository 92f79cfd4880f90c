//! Outputs of a stream as text, bit for bit: by tha-core, and by exported programs that read samples from standard input.

#![allow(dead_code, reason = "each test program uses its part")]

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use tha_core::{Model, State, Step, push};

/// The stream is reset now and then.
fn resets(t: usize) -> bool {
    t % 701 == 700
}

/// One line per sample, by tha-core in this process: what came of it, flags, channel flags, outputs in bits.
pub fn stream(bytes: &[u8], samples: &[Vec<f32>]) -> String {
    let mut flash = Box::new(tha_core::Aligned([0u8; 1 << 16]));
    flash.0[..bytes.len()].copy_from_slice(bytes);
    let model = Model::parse(&flash.0[..bytes.len()]).unwrap();
    let mut state = State::<16, 512, 512>::new(&model).unwrap();
    let mut text = String::new();
    for (t, u) in samples.iter().enumerate() {
        if resets(t) {
            state.reset();
        }
        match push(&model, &mut state, u) {
            Step::Warming { remaining } => writeln!(text, "{remaining}").unwrap(),
            Step::Refused(_) => writeln!(text, "-1").unwrap(),
            Step::Ready(output) => {
                let f = output.flags;
                let bits = [f.out_of_range, f.window_out_of_range, f.held, f.window_held, f.overflow];
                let flags: u32 = bits.iter().enumerate().map(|(k, &set)| u32::from(set) << k).sum();
                write!(text, "0 {flags}").unwrap();
                for c in output.channels {
                    let bits = u32::from(c.below()) + 2 * u32::from(c.above()) + 4 * u32::from(c.held());
                    write!(text, " {bits}").unwrap();
                }
                for y in output.y {
                    // Which NaN it is, the arithmetic does not promise.
                    write!(text, " {:08x}", if y.is_nan() { 0x7fc0_0000 } else { y.to_bits() }).unwrap();
                }
                output.half_widths.iter().for_each(|w| write!(text, " {:08x}", w.to_bits()).unwrap());
                text.push('\n');
            }
        }
    }
    text
}

/// The same by the exported C of a model named `model`.
pub const MAIN_C: &str = r#"
#include "model.h"
#include <stdio.h>

int main(void)
{
    static model_state state;
    float u[MODEL_INPUTS], y[MODEL_OUTPUTS];
    unsigned flags, t = 0;
    model_reset(&state);
    for (; fread(u, sizeof u, 1, stdin) == 1; t++) {
        int step, j;
        if (t % 701 == 700) model_reset(&state);
        step = model_push(&state, u, y, &flags);
        printf("%d", step);
        if (step == MODEL_READY) {
            printf(" %u", flags);
            for (j = 0; j < MODEL_INPUTS; j++) printf(" %u", (unsigned)state.channels[j]);
            for (j = 0; j < MODEL_OUTPUTS; j++) {
                union { float value; uint32_t bits; } b;
                b.value = y[j];
                printf(" %08lx", (unsigned long)(y[j] != y[j] ? 0x7fc00000u : b.bits));
            }
#ifdef MODEL_HALF_WIDTHS
            for (j = 0; j < MODEL_OUTPUTS; j++) {
                static const float half_widths[MODEL_OUTPUTS] = MODEL_HALF_WIDTHS;
                union { float value; uint32_t bits; } b;
                b.value = half_widths[j];
                printf(" %08lx", (unsigned long)b.bits);
            }
#endif
        }
        printf("\n");
    }
    return 0;
}
"#;

/// The same by the exported Rust of a model named `model`.
pub const MAIN_RUST: &str = r#"
mod model;

use std::io::Read;
use tha_core::{Step, push};

fn main() {
    let model = model::model().expect("the bytes of a model");
    let mut state = model::ModelState::new(&model).expect("a state that fits");
    let mut bytes = [0u8; 4 * model::INPUTS];
    let mut t = 0;
    while std::io::stdin().read_exact(&mut bytes).is_ok() {
        let u: Vec<f32> = bytes.chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
        if t % 701 == 700 {
            state.reset();
        }
        t += 1;
        match push(&model, &mut state, &u) {
            Step::Warming { remaining } => println!("{remaining}"),
            Step::Refused(_) => println!("-1"),
            Step::Ready(output) => {
                let f = output.flags;
                let bits = [f.out_of_range, f.window_out_of_range, f.held, f.window_held, f.overflow];
                print!("0 {}", bits.iter().enumerate().map(|(k, &set)| u32::from(set) << k).sum::<u32>());
                for c in output.channels {
                    print!(" {}", u32::from(c.below()) + 2 * u32::from(c.above()) + 4 * u32::from(c.held()));
                }
                output.y.iter().for_each(|y| print!(" {:08x}", y.to_bits()));
                model::HALF_WIDTHS.iter().for_each(|w| print!(" {:08x}", w.to_bits()));
                println!();
            }
        }
    }
}
"#;

/// Whether a compiler took the files of a folder without a warning; a note and false where it is not installed.
pub fn compile(compiler: &str, arguments: &[&str], folder: &Path) -> bool {
    let strict = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-ffp-contract=off"];
    let Ok(output) = Command::new(compiler).args(strict).args(arguments).current_dir(folder).output() else {
        println!("note: {compiler} is not installed; skipped");
        return false;
    };
    assert!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
    true
}

/// The exported C of a model and the program around it, in a folder of their own.
pub fn written(model: &tha_train::Model, main: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in tha_train::export::c("model", model) {
        std::fs::write(folder.path().join(&file.name), &file.text).unwrap();
    }
    std::fs::write(folder.path().join("main.c"), main).unwrap();
    folder
}

/// Compiles `main.c` and `model.c` with some options and compares what the program says of the samples, line by line; false where there
/// is no compiler.
pub fn gives(options: &[&str], folder: &Path, samples: &[Vec<f32>], expected: &str) -> bool {
    let compiled = compile("cc", &[options, &["model.c", "main.c", "-o", "main"]].concat(), folder);
    if compiled {
        let found = fed(&folder.join("main"), samples);
        assert_eq!(found.lines().count(), samples.len());
        for (t, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
            assert_eq!(found, expected, "{options:?}, sample {t}");
        }
    }
    compiled
}

/// What a program says of these samples.
pub fn fed(program: &Path, samples: &[Vec<f32>]) -> String {
    let mut command = Command::new(program);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let bytes: Vec<u8> = samples.iter().flatten().flat_map(|u| u.to_le_bytes()).collect();
    let mut stdin = child.stdin.take().unwrap();
    // The program answers while it reads: a thread of its own keeps both pipes from filling up.
    let writer = std::thread::spawn(move || stdin.write_all(&bytes));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "{}", program.display());
    String::from_utf8(output.stdout).unwrap()
}
