//! Replays recordings through tha-core, on the host and on emulated Cortex-M boards.

pub mod emulator;
