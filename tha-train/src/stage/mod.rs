//! The input stage: from samples to the features x_t that a network sees.
//!
//! Inputs are standardised ([`Scaling`]) and delayed ([`Lagged`]): x_t = [1, u(t), u(t-1), ..., u(t-M+1)].

mod lags;
mod scaling;

pub use lags::{Lagged, Subset};
pub(crate) use scaling::root_mean_square;
pub use scaling::{InputMap, OutputMap, Scaling, eating_offset, mean_and_std};
