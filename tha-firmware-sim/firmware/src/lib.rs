//! What the images that run on a board share: files of the host, and the painted stack.

#![no_std]

#[cfg(feature = "board")]
pub mod host;
#[cfg(feature = "board")]
pub mod stack;
