//! Why a model cannot be written.

use alloc::string::String;
use core::fmt::{Display, Formatter};

use crate::error::ParseError;

/// Why a [`ModelSpec`](super::ModelSpec) cannot be written.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum BuildError {
    /// A dimension is zero or larger than the format can say.
    Size {
        /// Which one.
        what: &'static str,
        /// What it is.
        found: usize,
        /// The largest possible.
        limit: usize,
    },
    /// A core's dimensions do not fit its neighbours, the outputs or the features of its head.
    CoreShape {
        /// Head index.
        head: usize,
        /// Core index.
        core: usize,
        /// left, q, right of the core.
        found: (usize, usize, usize),
        /// left and q that belong there; right must be 1 in the last core.
        expected: (usize, usize),
    },
    /// A core does not have left * q * right coefficients.
    CoreLength {
        /// Head index.
        head: usize,
        /// Core index.
        core: usize,
        /// Coefficients given.
        found: usize,
        /// left * q * right.
        expected: usize,
    },
    /// A head does not have one weight for each output that it serves.
    Weights {
        /// Head index.
        head: usize,
        /// Weights given.
        found: usize,
        /// Outputs it serves.
        expected: usize,
    },
    /// A section has a source, or a feature a signal, that does not exist or comes later.
    Source {
        /// `section` or `feature`.
        what: &'static str,
        /// Its index.
        index: usize,
    },
    /// A plain feature stands behind a mapped one.
    FeatureOrder {
        /// Index of the plain feature.
        feature: usize,
    },
    /// The linear part does not have one coefficient for each output and feature.
    Linear {
        /// Coefficients given.
        found: usize,
        /// Outputs times features.
        expected: usize,
    },
    /// The interval does not have one half-width for each output.
    Interval {
        /// Half-widths given.
        found: usize,
        /// Outputs of the model.
        outputs: usize,
    },
    /// The policy `extend` needs a linear part.
    NothingToExtend,
    /// In integers a quantity has no room, or too little of it: its values are too far apart.
    Unit {
        /// Which one.
        what: &'static str,
        /// Its index.
        index: usize,
    },
    /// A name contains a line feed, which separates names in the file.
    Name(String),
    /// What the reader would say of the result.
    Refused(ParseError),
}

impl Display for BuildError {
    fn fmt(&self, f: &mut Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Size { what, found, limit } => write!(f, "{found} {what}; 1 to {limit} are possible"),
            Self::CoreShape { head, core, found: (left, q, right), expected } => write!(
                f,
                "core {core} of head {head} is {left} x {q} x {right}; it must be {} x {} x r, with r = 1 in the last",
                expected.0, expected.1
            ),
            Self::CoreLength { head, core, found, expected } => {
                write!(f, "core {core} of head {head} has {found} coefficients; its shape needs {expected}")
            }
            Self::Weights { head, found, expected } => {
                write!(f, "head {head} has {found} weights for the {expected} outputs that it serves")
            }
            Self::Source { what, index } => {
                write!(f, "{what} {index} uses a signal that does not exist or comes later")
            }
            Self::FeatureOrder { feature } => {
                write!(
                    f,
                    "feature {feature} is plain and stands behind a mapped one; list the mapped ones last"
                )
            }
            Self::Linear { found, expected } => {
                write!(f, "the linear part has {found} coefficients; outputs and features make {expected}")
            }
            Self::Interval { found, outputs } => {
                write!(f, "the interval has {found} half-widths for {outputs} outputs")
            }
            Self::NothingToExtend => {
                write!(f, "the range policy is `extend`, and there is no linear part to go on with")
            }
            Self::Unit { what, index } => write!(
                f,
                "{what} {index} does not fit 16-bit integers: its values are too far apart, or too close to each other for its counts; keep f32"
            ),
            Self::Name(name) => write!(f, "the channel name {name:?} contains a line feed"),
            Self::Refused(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for BuildError {}
