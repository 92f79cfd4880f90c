//! Tells the program its commit and its code: `THA_VERSION` is the package version and, in a checkout, the short hash;
//! `THA_CODE` is a hash of everything the program is built from, by which a checkpoint knows its program.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Only a checkout of this package counts, not some repository around an unpacked one.
    let commit = run("git", &["ls-files", "--error-unmatch", "Cargo.toml"])
        .and_then(|_| run("git", &["rev-parse", "--short", "HEAD"]));
    if commit.is_some() {
        // HEAD moves with a checkout, its log with every commit, the branch and the packed references with either. A path
        // that does not exist would rebuild every time.
        let branch = run("git", &["symbolic-ref", "-q", "HEAD"]);
        for name in ["HEAD", "logs/HEAD", "packed-refs"].into_iter().chain(branch.as_deref()) {
            if let Some(path) =
                run("git", &["rev-parse", "--git-path", name]).filter(|path| Path::new(path).exists())
            {
                println!("cargo:rerun-if-changed={path}");
            }
        }
    }
    let version = env!("CARGO_PKG_VERSION");
    println!("cargo:rustc-env=THA_VERSION={version} ({})", commit.as_deref().unwrap_or("unknown commit"));
    println!("cargo:rustc-env=THA_CODE={:016x}", code());
}

/// A hash of the sources, the versions of all libraries, the compiler and its settings. It needs no git, and it sees changes
/// that are not committed. In a package of its own tha-core is a library like the others.
fn code() -> u64 {
    let mut hash = DefaultHasher::new();
    for path in ["src", "../tha-core/src", "Cargo.lock", "../Cargo.lock"].map(Path::new) {
        if path.exists() {
            println!("cargo:rerun-if-changed={}", path.display());
            hash_files(path, &mut hash);
        }
    }
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    run(&variable("RUSTC"), &["--version", "--verbose"]).hash(&mut hash);
    ["OPT_LEVEL", "CARGO_ENCODED_RUSTFLAGS"].map(variable).hash(&mut hash);
    hash.finish()
}

/// Adds a file, or all files below a folder in the order of their names.
fn hash_files(path: &Path, hash: &mut DefaultHasher) {
    let Ok(folder) = std::fs::read_dir(path) else {
        (path, std::fs::read(path).ok()).hash(hash);
        return;
    };
    let mut paths: Vec<PathBuf> = folder.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.iter().for_each(|path| hash_files(path, hash));
}

/// What a program says, when it says anything.
fn run(program: &str, arguments: &[&str]) -> Option<String> {
    let output =
        Command::new(program).args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
