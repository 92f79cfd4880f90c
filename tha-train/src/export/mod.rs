//! Models as source code for other firmware projects.
//!
//! - [`rust`](rust()): a module with the aligned bytes of the file as a `static` and the capacities as a type, for models of both kinds;
//! - [`c`](c()): a C99 header and source that need no library, allocate nothing and give the bits of tha-core;
//! - [`integer_c`]: the same for a model of 16-bit integers, without float.

mod c;
mod integer;
mod names;
mod rust;

pub use c::c;
pub use integer::integer_c;
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
