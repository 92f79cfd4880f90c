//! The same models in 16-bit integers, for processors without floating point.
//!
//! A file made by `tha-train quantize` or `fit --numbers i16` holds weights and features of 16 bits; sums have 32. [`push_counts`] takes what the
//! converter gives and needs no float at all; [`push`] takes physical units. The results have the same bits on every processor.
//!
//! ```text
//! x_i  = limit((c_i gain_i + offset_i) >> shift_i)        c: counts, i16; then filters and features, where there are any
//! acc  = B_ab + sum over i of W_abi x_i                   B holds the half that rounds; the order does not matter
//! t_ab = acc >> s                                         one shift per sum, the same for a core
//! v'_a = limit((half + sum over b of t_ab v_b) >> z)      to 16 bits; the last core gives v_a = limit(acc >> s)
//! y_j  = sum over the heads of w_j v_j                    physical units: offset + unit y_j
//! ```
//!
//! [`Model::parse`] proves for every sum that the largest values of its factors cannot overflow it: |x| <= 2^bits, |v| <= 2^15 because they are
//! limited, so sum |W| 2^bits + |B| < 2^31, and so on up to the outputs. What a limit changes is flagged: an input or a feature as out
//! of range, a v as [`Flags::overflow`](crate::Flags::overflow). Section by section, averages keep 15 bits behind the unit of their input.
//!
//! ```
//! use tha_core::{Capacities, integer};
//!
//! const MODEL: &[u8] = tha_core::include_model!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/format4.tha"));
//! const NEEDS: Capacities = Capacities::of(MODEL);
//! type MyState = integer::State<{ NEEDS.inputs }, { NEEDS.history }, { NEEDS.scratch }>;
//!
//! let model = integer::Model::parse(MODEL)?;
//! let mut state = MyState::new(&model)?;
//! if let integer::Step::Ready(output) = integer::push_counts(&model, &mut state, &[512, -40]) {
//!     let counts = output.counts; // no float so far
//!     let physical = output.value(0);
//! }
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```

mod contract;
mod head;
mod kernel;
mod model;
mod parse;
mod proof;
mod push;
mod sample;
mod stage;
mod state;

#[cfg(feature = "alloc")]
pub(crate) use parse::Needs;

pub use head::{Head, Heads, Shifts};
pub use model::{InputCounts, Model, Unit};
pub use push::{Output, Step, push, push_counts};
pub use stage::{FeatureRecord, Node, Run};
pub use state::State;

/// The largest that an input may be in front of filters; a vector of a head may also be one less than its negative.
pub const LIMIT: i32 = i16::MAX as i32;
/// The largest size of a vector of a head, and of what is beyond the range of a feature.
pub const VECTOR: u32 = 1 << 15;
/// Bits behind the unit of an input that a filter keeps.
pub const FRACTION: u32 = 15;
/// Bits that a mapped feature has behind those of x: maps may have nodes much closer to each other than their range is wide.
pub const FINE: u32 = 8;
/// Bits behind the point of the coefficient of an average.
pub const ALPHA: u32 = 30;

/// `value` within +-`most`, and whether it was not (bits other than 0).
#[inline]
fn limit(value: i32, most: i32) -> (i32, i32) {
    let limited = if value > most { most } else { value };
    let limited = if limited < -most { -most } else { limited };
    (limited, limited ^ value)
}
