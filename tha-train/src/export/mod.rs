//! Models as source code for other firmware projects.
//!
//! - [`rust`](rust()): a module with the aligned bytes of the file as a `static` and the capacities as a type, for models of both kinds;
//! - [`c`](c()): a C99 header and source that need no library, allocate nothing and give the bits of tha-core.

mod c;
mod integer;
mod names;
mod rust;

pub use names::{ReservedName, identifier};
pub use rust::rust;

use crate::model::Model;

/// A file to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Name, without a directory.
    pub name: String,
    /// What is in it.
    pub text: String,
}

/// The files `name`.h and `name`.c for a model, of floats or of integers.
pub fn c(name: &str, model: &Model) -> [SourceFile; 2] {
    match model.integers() {
        Some(file) => integer::integers(name, model.spec(), &file.model()),
        None => c::floats(name, model.spec()),
    }
}
