//! [`Units`]: what the integers of a file are worth.

use alloc::vec::Vec;

/// How a model is written in integers ([`ModelSpec::to_integers`](super::ModelSpec::to_integers)): what one unit of each quantity becomes. A writer
/// takes smaller units where those given leave no room.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Units {
    /// Features are at most 2^bits in size; 8 to 14.
    pub bits: u32,
    /// For each input the physical value at 0 counts, and counts per physical unit.
    pub counts: Vec<(f32, f32)>,
    /// For each input how many of the units of x make one of the standardised input.
    pub inputs: Vec<f64>,
    /// For each feature the same, from the signal to x; empty where the features are lags.
    pub features: Vec<f64>,
    /// For each head, core and left index how many units of v make one: the gauge between the cores.
    pub heads: Vec<Vec<Vec<f64>>>,
    /// For each output how many counts make one of its scale; the writer chooses them.
    pub outputs: Vec<f64>,
    /// For each output a factor of its scale; 1 where nothing is given.
    pub factors: Vec<f64>,
    /// For each output how far it can be from the model without rounding, physical units.
    pub bounds: Vec<f32>,
}
