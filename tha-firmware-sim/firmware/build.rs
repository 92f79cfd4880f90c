//! Gives the linker the memory map of the emulated board, the start-up script to images that boot, and the model
//! that `THA_MODEL` names to the replay image.

use std::{env, fs, path::PathBuf};

fn main() {
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    let target = env::var("TARGET").expect("cargo sets TARGET");
    if target.starts_with("riscv") {
        fs::copy("virt.x", out.join("link.x")).expect("OUT_DIR is writable");
    } else {
        // MPS2 boards (AN385, AN386, AN500): 4 MiB of code memory and 4 MiB of RAM. The micro:bit, chosen by the
        // instruction set of its Cortex-M0, has 256 KiB and 16 KiB.
        let (flash, ram) = if target.starts_with("thumbv6m") { ("256K", "16K") } else { ("4M", "4M") };
        let map = format!(
            "MEMORY\n{{\n  FLASH : ORIGIN = 0x00000000, LENGTH = {flash}\n  RAM : ORIGIN = 0x20000000, LENGTH = {ram}\n}}\n"
        );
        fs::write(out.join("memory.x"), map).expect("OUT_DIR is writable");
    }
    println!("cargo:rustc-link-search={}", out.display());
    println!("cargo:rustc-link-arg-bin=replay=-Tlink.x");
    println!("cargo:rustc-link-arg-bin=replay=--nmagic");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=virt.x");

    println!("cargo:rustc-check-cfg=cfg(linked)");
    println!("cargo:rerun-if-env-changed=THA_MODEL");
    if let Ok(model) = env::var("THA_MODEL") {
        println!("cargo:rerun-if-changed={model}");
        println!("cargo:rustc-cfg=linked");
        fs::copy(&model, out.join("model.tha")).unwrap_or_else(|error| panic!("THA_MODEL={model}: {error}"));
    }
}
