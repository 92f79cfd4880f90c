//! What the images that run on a board share: the processor, files of the host, and the painted stack.

#![no_std]

#[cfg(feature = "board")]
#[cfg_attr(target_arch = "arm", path = "cortex_m.rs")]
#[cfg_attr(target_arch = "riscv32", path = "riscv32.rs")]
pub mod processor;

#[cfg(feature = "board")]
pub mod host;
#[cfg(feature = "board")]
pub mod stack;
