//! Settings of a fit.
//!
//! | Name | Default | Range |
//! |---|---|---|
//! | `degree` | 3 | 1 to 32 |
//! | `max_rank` | 4 | 1 to 1024 |
//! | `tolerance` | 1e-6 | 0 to below 1 |
//! | `solver` | ladder | ladder, mvmals, als, direct |
//! | `ridge` | auto | auto or at least 0 |
//! | `restarts` | 12 | 1 to 1024 |
//! | `sweeps` | 30 | 1 to 10000 |
//! | `seed` | 0 | any |
//! | `decay` | auto | auto, none or above 0 |
//! | `memory` | 0 | 0 (unknown) or a divisor of q - 1 |
//! | `gamma` | none: chosen | above 0 |
//! | `ranks` | none | d - 1 numbers from 1 |

use super::search::Rule;
use super::{Problem, SolveError};
use crate::network::useful_ranks;
use serde::{Deserialize, Serialize};

/// Memories from which a prior over the lags is tried unasked.
const LONG: usize = 8;

/// Which algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Solver {
    /// Raced starts, coming down in rank, Levenberg-Marquardt over all cores, rank and ridge by validation.
    #[default]
    Ladder,
    /// MVMALS as published: super-cores with a truncated singular value decomposition.
    Mvmals,
    /// Alternating least squares at fixed ranks.
    Als,
    /// Least squares over the distinct monomials, the penalty chosen by validation, then rounding to the cap.
    Direct,
}

/// The weight of ||theta||^2 against the mean squared residual of unit-variance outputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Ridge {
    /// Chosen on the validation data.
    #[default]
    Auto,
    /// Given.
    Fixed(f64),
}

/// A prior on kernels over the lags: smooth, and fading with a time constant in samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Decay {
    /// Tried on the validation data (by the ladder) where the memory is long.
    #[default]
    Auto,
    /// Every lag for itself.
    None,
    /// The time constant, given.
    Fixed(f64),
}

/// Settings of a fit; [`SolveParams::check`] says what is out of range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SolveParams {
    /// Degree d of the Volterra series.
    pub degree: usize,
    /// Largest inner rank.
    pub max_rank: usize,
    /// Relative cut of singular values (MVMALS, direct) and relative decrease of the loss at which a descent ends.
    pub tolerance: f64,
    /// Which algorithm.
    pub solver: Solver,
    /// Penalty on the coefficients.
    pub ridge: Ridge,
    /// Prior over the lags.
    pub decay: Decay,
    /// Lags of each input in the columns of x, lag-major, for `decay`; 0 where that is not known.
    pub memory: usize,
    /// Random starts at most; the ladder ends earlier once a start is known to be good.
    pub restarts: usize,
    /// Sweeps of MVMALS and ALS, and steps of a final descent, at most.
    pub sweeps: usize,
    /// Seed of the random starts.
    pub seed: u64,
    /// Inner ranks r_1..r_{d-1}, where they are known; the ladder then keeps them.
    pub ranks: Option<Vec<usize>>,
    /// Weight of products against linear terms, where it is given; chosen on blocks otherwise.
    pub gamma: Option<f64>,
    /// A source of starts or a rule that the search goes without, for the ablation benchmark.
    #[doc(hidden)]
    #[serde(skip)]
    pub without: Option<Rule>,
}

impl Default for SolveParams {
    fn default() -> Self {
        Self {
            degree: 3,
            max_rank: 4,
            tolerance: 1e-6,
            solver: Solver::default(),
            ridge: Ridge::default(),
            decay: Decay::default(),
            memory: 0,
            restarts: 12,
            sweeps: 30,
            seed: 0,
            ranks: None,
            gamma: None,
            without: None,
        }
    }
}

impl SolveParams {
    /// Says which setting is out of range.
    pub fn check(&self) -> Result<(), SolveError> {
        let refuse = |name, found: String, expected| Err(SolveError::Setting { name, found, expected });
        let numbers = [
            ("degree", self.degree, 32, "1 to 32"),
            ("max_rank", self.max_rank, 1024, "1 to 1024"),
            ("restarts", self.restarts, 1024, "1 to 1024"),
            ("sweeps", self.sweeps, 10_000, "1 to 10000"),
        ];
        for (name, value, most, expected) in numbers {
            if !(1..=most).contains(&value) {
                return refuse(name, value.to_string(), expected);
            }
        }
        if !(0.0..1.0).contains(&self.tolerance) {
            return refuse("tolerance", self.tolerance.to_string(), "0 to below 1");
        }
        let positive = |value: f64| value > 0.0 && value.is_finite();
        match (self.ridge, self.decay, self.gamma, &self.ranks) {
            (Ridge::Fixed(ridge), ..) if ridge != 0.0 && !positive(ridge) => {
                refuse("ridge", ridge.to_string(), "auto or a number from 0")
            }
            (_, Decay::Fixed(tau), ..) if !positive(tau) => {
                refuse("decay", tau.to_string(), "auto, none or a number above 0")
            }
            (_, _, Some(gamma), _) if !positive(gamma) => {
                refuse("gamma", gamma.to_string(), "auto or a number above 0")
            }
            (.., Some(ranks)) if ranks.len() + 1 != self.degree || ranks.contains(&0) => {
                refuse("ranks", format!("{ranks:?}"), "degree - 1 numbers from 1")
            }
            _ => Ok(()),
        }
    }

    /// The time constants to try; `None` stands for no prior.
    pub(super) fn decays(&self) -> Vec<Option<f64>> {
        match self.decay {
            Decay::Fixed(tau) => vec![Some(tau)],
            Decay::Auto if self.solver == Solver::Ladder && self.memory >= LONG => {
                let part = |part: f64| Some(part * self.memory as f64);
                vec![None, part(0.25), part(0.5), part(1.0)]
            }
            _ => vec![None],
        }
    }

    /// The inner ranks to start from: as given, or `cap` where a bond can use it.
    pub(super) fn start_ranks(&self, problem: &Problem<'_>, cap: usize) -> Vec<usize> {
        let useful = || useful_ranks(self.degree, problem.y.ncols(), problem.x.ncols(), cap);
        self.ranks.clone().unwrap_or_else(useful)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_out_of_range_are_named() {
        assert!(SolveParams::default().check().is_ok());
        let text = SolveParams { tolerance: 1.5, ..SolveParams::default() }.check().unwrap_err().to_string();
        assert!(text.contains("tolerance") && text.contains("1.5"), "{text}");
        assert!(SolveParams { ranks: Some(vec![2]), ..SolveParams::default() }.check().is_err());
        assert!(SolveParams { ridge: Ridge::Fixed(f64::NAN), ..SolveParams::default() }.check().is_err());
        assert!(SolveParams { decay: Decay::Fixed(0.0), ..SolveParams::default() }.check().is_err());
    }

    #[test]
    fn only_long_memories_try_a_prior_unasked() {
        let decays = |memory| SolveParams { memory, ..SolveParams::default() }.decays();
        assert_eq!(decays(100), [None, Some(25.0), Some(50.0), Some(100.0)]);
        assert_eq!(decays(7), [None]);
        let fixed = SolveParams { decay: Decay::Fixed(3.0), ..SolveParams::default() };
        assert_eq!(fixed.decays(), [Some(3.0)]);
    }
}
