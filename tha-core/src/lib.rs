#![doc = include_str!("../README.md")]
#![no_std]
#![cfg_attr(
    not(test),
    deny(
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::unreachable,
        clippy::unwrap_used
    )
)]

#[cfg(target_endian = "big")]
compile_error!("tha-core reads little-endian weights in place; big-endian targets are not supported");

#[cfg(any(feature = "alloc", test))]
extern crate alloc;

mod align;
#[cfg(feature = "alloc")]
pub mod build;
mod contract;
mod description;
mod error;
mod facts;
pub mod format;
mod head;
pub mod integer;
mod kernel;
mod model;
#[cfg(feature = "monitor")]
pub mod monitor;
mod parse;
mod push;
#[cfg(feature = "monitor")]
pub mod reweight;
mod sample;
mod stage;
mod state;

#[doc = include_str!("../docs/firmware.md")]
pub mod guide {}

pub use align::Aligned;
pub use error::{CapacityError, ParseError, PushError, SwapError};
pub use facts::{Facts, OutputScaling, Provenance, Shape};
pub use format::{Capacities, NonFinitePolicy, RangePolicy};
pub use head::{CoreView, HeadView, Heads};
pub use model::{InputScaling, Model};
pub use push::{ChannelFlags, Flags, Output, Step, push};
pub use state::{State, Swap};
