//! Tells the program its commit: `THA_VERSION` is the package version and, in a checkout, the short hash.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Only a checkout of this package counts, not some repository around an unpacked one.
    let commit = git(&["ls-files", "--error-unmatch", "Cargo.toml"])
        .and_then(|_| git(&["rev-parse", "--short", "HEAD"]));
    if commit.is_some() {
        // HEAD moves with a checkout, its log with every commit, the branch and the packed references with either. A path
        // that does not exist would rebuild every time.
        let branch = git(&["symbolic-ref", "-q", "HEAD"]);
        for name in ["HEAD", "logs/HEAD", "packed-refs"].into_iter().chain(branch.as_deref()) {
            if let Some(path) =
                git(&["rev-parse", "--git-path", name]).filter(|path| Path::new(path).exists())
            {
                println!("cargo:rerun-if-changed={path}");
            }
        }
    }
    let version = env!("CARGO_PKG_VERSION");
    println!("cargo:rustc-env=THA_VERSION={version} ({})", commit.as_deref().unwrap_or("unknown commit"));
}

/// What git says, when it says anything.
fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
