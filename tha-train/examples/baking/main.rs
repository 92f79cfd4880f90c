//! The baking study: `cargo run --release -p tha-train --example baking [FOLDER]` writes `baking.md` and its plots into
//! a folder (`docs` unless told).

mod pages;
mod study;

use pages::{markdown, plots};
use std::path::PathBuf;
use study::run;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder: PathBuf = std::env::args().nth(1).unwrap_or_else(|| "docs".into()).into();
    std::fs::create_dir_all(&folder)?;
    let rows = run()?;
    std::fs::write(folder.join("baking.md"), markdown(&rows))?;
    for (name, svg) in plots(&rows) {
        std::fs::write(folder.join(name), svg)?;
    }
    Ok(())
}
