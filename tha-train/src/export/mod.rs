//! Models as source code for other firmware projects.
//!
//! - [`rust`](rust()): a module with the aligned bytes of the file as a `static` and the capacities as a type;
//! - [`c`](c()): a C99 header and source that need no library, allocate nothing and give the bits of tha-core.

mod c;
mod names;
mod rust;

pub use c::c;
pub use names::{ReservedName, identifier};
pub use rust::rust;

/// A file to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Name, without a directory.
    pub name: String,
    /// What is in it.
    pub text: String,
}
