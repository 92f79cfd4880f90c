//! How to fit: parameters, their defaults, and what cannot work with some data.

use super::valid::ValidFitParams;
use super::{FitError, Validation};
use crate::data::Dataset;
use crate::ensemble::{Combine, EnsembleParams, Strategy};
use crate::solve::{Decay, Ridge, SolveParams, Solver};
use crate::stage::Basis;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use tha_core::RangePolicy;

/// How to fit: every parameter has a default, [`FitParams::check`] says what cannot work with some data.
///
/// | Name | Default | Range |
/// |---|---|---|
/// | `memory` | 5 | 1 to 65535 samples |
/// | `basis` | lags of the memory | lags, levels, differences or resonators: [`Basis`] |
/// | `maps` | none | none, or 2 to 64 pieces |
/// | `degree` | 3 | 1 to 32 |
/// | `max_rank` | 4 | 1 to 1024 |
/// | `tolerance` | 1e-6 | 0 to below 1 |
/// | `solver` | ladder | ladder, mvmals, als, direct |
/// | `ridge` | auto | auto, or at least 0 |
/// | `gamma` | auto; 1 for heads | auto, or above 0 |
/// | `decay` | auto | auto, none, or above 0 samples |
/// | `restarts` | 12; 1 for heads | 1 to 1024 |
/// | `validation` | the last 0.2 of each record | a part between 0 and 1, other data, or 2 to 1000 folds |
/// | `refit` | true | |
/// | `range` | clamp behind filters or maps, pass for lags | pass, clamp, extend |
/// | `coverage` | 0.9 | 0.01 to 0.999 |
/// | `seed` | 0 | |
/// | `portable` | false | |
///
/// With `heads` or `subsets` the model is an ensemble, else one head on all inputs:
///
/// | Name | Default | Range |
/// |---|---|---|
/// | `heads` | as the subsets say | 1 to 65535 |
/// | `subset_size` | 4, or all inputs if fewer | 1 to all inputs |
/// | `subsets` | random | random, weighted, covering, adaptive, per output, given |
/// | `combine` | average; additive for per output | average, stack, additive |
/// | `checkpoint` | none | a folder |
/// | `budget_flash`, `budget_macs` | none | bytes, multiply-accumulates per sample |
///
/// ```
/// use tha_train::{Combine, FitParams, Silent, SynthKind, SynthParams, generate};
///
/// let data = generate(&SynthParams { samples: 200, ..SynthParams::new(SynthKind::Volterra) })?;
/// let params = FitParams::new().memory(2).degree(2).max_rank(2);
/// let full = params.clone().check(&data.train)?.fit(&data.train, &Silent)?;
/// println!("NRMSE {}", full.validation.nrmse);
///
/// let ensemble = params.heads(2).subset_size(1).combine(Combine::Stack);
/// let ensemble = ensemble.check(&data.train)?.fit(&data.train, &Silent)?;
/// assert!(ensemble.heads.len() <= 2 && ensemble.ensemble.is_some());
///
/// let refusal = FitParams::new().memory(0).check(&data.train).unwrap_err();
/// assert_eq!(refusal.to_string(), "`memory`: 0 is out of range; expected 1 to 65535");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FitParams<'a> {
    basis: Basis,
    maps: Option<usize>,
    solve: SolveParams,
    restarts: Option<usize>,
    /// Whoever stores the others stores what it is about.
    #[serde(skip)]
    pub(crate) validation: Validation<'a>,
    refit: bool,
    #[serde(with = "stored_range")]
    range: Option<RangePolicy>,
    coverage: f64,
    heads: Option<usize>,
    subset_size: Option<usize>,
    subsets: Option<Strategy>,
    combine: Option<Combine>,
    checkpoint: Option<PathBuf>,
    budget_flash: Option<usize>,
    budget_macs: Option<usize>,
    pub(crate) portable: bool,
}

/// [`RangePolicy`] as parameters are stored: tha-core has no serde for it.
mod stored_range {
    use super::{Deserialize, RangePolicy, Serialize};
    use serde::{Deserializer, Serializer};

    const ALL: [RangePolicy; 3] = [RangePolicy::Pass, RangePolicy::Clamp, RangePolicy::Extend];

    pub fn serialize<S: Serializer>(range: &Option<RangePolicy>, to: S) -> Result<S::Ok, S::Error> {
        range.and_then(|range| ALL.iter().position(|other| *other == range)).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<RangePolicy>, D::Error> {
        Ok(Option::<usize>::deserialize(from)?.and_then(|number| ALL.get(number).copied()))
    }
}

/// Most samples of memory a model file can say.
const MEMORY_LIMIT: usize = u16::MAX as usize;
/// Far beyond what pays; catches a slip of the finger.
const FOLD_LIMIT: usize = 1000;
/// Coverages that some held-out rows can tell.
const COVERAGES: std::ops::RangeInclusive<f64> = 0.01..=0.999;
/// Inputs of a head where nobody says.
const SUBSET_SIZE: usize = 4;

impl Default for FitParams<'_> {
    fn default() -> Self {
        Self::new()
    }
}

/// A method per parameter, which gives it a value: `= memory` sets `self.memory`, `solve. = degree` sets `self.solve.degree`.
macro_rules! setters {
    ($($(#[$doc:meta])* $($part:ident.)* = $name:ident: $type:ty;)*) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self, $name: $type) -> Self {
            self.$($part.)*$name = $name.into();
            self
        }
    )*};
}
pub(crate) use setters;

impl<'a> FitParams<'a> {
    /// Memory by default.
    pub const MEMORY: usize = 5;
    /// Degree by default.
    pub const DEGREE: usize = 3;
    /// Largest rank by default.
    pub const MAX_RANK: usize = 4;
    /// Coverage of the intervals by default.
    pub const COVERAGE: f64 = 0.9;
    /// The algorithms by their names.
    pub const SOLVERS: [(&'static str, Solver); 4] = [
        ("ladder", Solver::Ladder),
        ("mvmals", Solver::Mvmals),
        ("als", Solver::Als),
        ("direct", Solver::Direct),
    ];
    /// The ways of combining heads by their names.
    pub const COMBINATIONS: [(&'static str, Combine); 3] =
        [("average", Combine::Average), ("stack", Combine::Stack), ("additive", Combine::Additive)];
    /// What is done outside the training range, by its name.
    pub const RANGES: [(&'static str, RangePolicy); 3] =
        [("pass", RangePolicy::Pass), ("clamp", RangePolicy::Clamp), ("extend", RangePolicy::Extend)];
    /// How the inputs of heads are chosen, by its name.
    pub const STRATEGIES: [(&'static str, Strategy); 5] = [
        ("random", Strategy::Random),
        ("weighted", Strategy::Weighted),
        ("covering", Strategy::Covering),
        ("adaptive", Strategy::Adaptive),
        ("per-output", Strategy::PerOutput),
    ];

    /// The defaults.
    pub fn new() -> Self {
        let (degree, max_rank) = (Self::DEGREE, Self::MAX_RANK);
        Self {
            basis: Basis::Lags(Self::MEMORY),
            maps: None,
            solve: SolveParams { degree, max_rank, ..SolveParams::default() },
            refit: true,
            restarts: None,
            validation: Validation::default(),
            range: None,
            coverage: Self::COVERAGE,
            heads: None,
            subset_size: None,
            subsets: None,
            combine: None,
            checkpoint: None,
            budget_flash: None,
            budget_macs: None,
            portable: false,
        }
    }

    setters! {
        /// The filters between the inputs and the network; [`FitParams::memory`] is a short way to lags.
        = basis: Basis;
        /// Pieces of a piecewise-linear map of every feature, beside its linear part; none for none.
        = maps: impl Into<Option<usize>>;
        /// Degree d of the polynomial.
        solve. = degree: usize;
        /// Largest rank of the network.
        solve. = max_rank: usize;
        /// Relative tolerance of rank decisions.
        solve. = tolerance: f64;
        /// Which algorithm.
        solve. = solver: Solver;
        /// Penalty on the coefficients.
        solve. = ridge: Ridge;
        /// Prior over the lags.
        solve. = decay: Decay;
        /// Weight of products against linear terms; `None` to choose it.
        solve. = gamma: impl Into<Option<f64>>;
        /// Seed of everything.
        solve. = seed: u64;
        /// Starts that are raced against each other.
        = restarts: impl Into<Option<usize>>;
        /// What the result is validated on; no choice is made there.
        = validation: Validation<'a>;
        /// Whether the chosen structure is fitted to all of the data in the end.
        = refit: bool;
        /// What the model does with inputs outside their training range; `None` for what suits the model.
        = range: impl Into<Option<RangePolicy>>;
        /// The part of new measured outputs that the intervals of the model are to hold.
        = coverage: f64;
        /// Heads of an ensemble.
        = heads: impl Into<Option<usize>>;
        /// Inputs of each head; with [`Strategy::PerOutput`], at most.
        = subset_size: impl Into<Option<usize>>;
        /// How the inputs of the heads are chosen.
        = subsets: impl Into<Option<Strategy>>;
        /// How the heads are combined.
        = combine: impl Into<Option<Combine>>;
        /// Folder in which finished heads are kept.
        = checkpoint: impl Into<Option<PathBuf>>;
        /// Largest model file of an ensemble, bytes.
        = budget_flash: impl Into<Option<usize>>;
        /// Most multiply-accumulates per sample of an ensemble.
        = budget_macs: impl Into<Option<usize>>;
        /// Whether the kernels are those that give the same bytes on every processor, slower than those for this one.
        = portable: bool;
    }

    /// Memory M: an output depends on the last M samples of each input. The same as a basis of so many lags.
    #[must_use]
    pub fn memory(mut self, memory: usize) -> Self {
        self.basis = Basis::Lags(memory);
        self
    }

    /// Filters and pieces of the maps.
    pub fn inputs_as(&self) -> (Basis, Option<usize>) {
        (self.basis, self.maps)
    }

    fn is_ensemble(&self) -> bool {
        self.heads.is_some() || self.subsets.is_some()
    }

    /// The settings of the solver.
    fn solve(&self) -> SolveParams {
        let head = self.is_ensemble();
        // Heads make up for each other: one that could be a little better is good enough.
        let usual = if head { 1 } else { self.solve.restarts };
        SolveParams {
            // The prior over the lags knows lags alone.
            memory: match self.basis {
                Basis::Lags(memory) if self.maps.is_none() => memory,
                _ => 0,
            },
            restarts: self.restarts.unwrap_or(usual),
            // And gamma is not worth a choice of its own.
            gamma: self.solve.gamma.or(head.then_some(1.0)),
            ..self.solve.clone()
        }
    }

    /// Refuses values that work with no data.
    pub fn check_values(&self) -> Result<(), FitError> {
        let refuse =
            |option, found: String, expected: String| Err(FitError::Option { option, found, expected });
        match self.basis {
            Basis::Lags(memory) if memory == 0 || memory > MEMORY_LIMIT => {
                return refuse("memory", memory.to_string(), format!("1 to {MEMORY_LIMIT}"));
            }
            basis => basis.check()?,
        }
        let solve = self.solve();
        solve.check()?;
        if solve.memory == 0 && matches!(solve.decay, Decay::Fixed(_)) {
            let reason =
                "`decay` is a prior over lags; leave it out, or use `memory` without `basis` and `maps`";
            return Err(FitError::Combination(reason.into()));
        }
        check_coverage(self.coverage)?;
        let lonely = [
            ("subset_size", self.subset_size.is_some()),
            ("combine", self.combine.is_some()),
            ("checkpoint", self.checkpoint.is_some()),
            ("budget_flash", self.budget_flash.is_some()),
            ("budget_macs", self.budget_macs.is_some()),
        ];
        if let Some((option, _)) = lonely.iter().find(|(_, given)| *given && !self.is_ensemble()) {
            return Err(FitError::Combination(format!("`{option}` is for ensembles; add `heads`")));
        }
        match self.validation {
            Validation::End(fraction) if !(fraction > 0.0 && fraction < 1.0) => {
                refuse("val_fraction", fraction.to_string(), "a part between 0 and 1".into())
            }
            Validation::Folds(count) if !(2..=FOLD_LIMIT).contains(&count) => {
                refuse("folds", count.to_string(), format!("2 to {FOLD_LIMIT}"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses what cannot work with these data, before any work is done.
    pub fn check(self, data: &Dataset) -> Result<ValidFitParams<'a>, FitError> {
        self.check_values()?;
        let solve = self.solve();
        let ensemble = self.is_ensemble().then(|| {
            let strategy = self.subsets.unwrap_or_default();
            let usual = if strategy == Strategy::PerOutput { Combine::Additive } else { Combine::Average };
            EnsembleParams {
                heads: self.heads,
                subset_size: self.subset_size.unwrap_or(SUBSET_SIZE.min(data.inputs.len())),
                combine: self.combine.unwrap_or(usual),
                strategy,
                checkpoint: self.checkpoint,
                budget_flash: self.budget_flash,
                budget_macs: self.budget_macs,
            }
        });
        let Self { basis, maps, validation, refit, coverage, portable, .. } = self;
        // Lags are the paper's polynomial, which is exact everywhere where it is the truth; and to clamp some lags of a smooth input
        // and not others can be worse than to let all pass. Behind filters pass is never better by much and can explode.
        let paper = matches!(basis, Basis::Lags(_)) && maps.is_none();
        let range = self.range.unwrap_or(if paper { RangePolicy::Pass } else { RangePolicy::Clamp });
        let valid =
            ValidFitParams { basis, maps, solve, validation, refit, range, coverage, ensemble, portable };
        valid.check(data)?;
        Ok(valid)
    }
}

/// Refuses a coverage that no interval can have.
pub(crate) fn check_coverage(coverage: f64) -> Result<(), FitError> {
    if COVERAGES.contains(&coverage) {
        return Ok(());
    }
    let expected = format!("{} to {}", COVERAGES.start(), COVERAGES.end());
    Err(FitError::Option { option: "coverage", found: coverage.to_string(), expected })
}
