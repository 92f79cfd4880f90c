//! What a head of an automatic fit may be.

use crate::data::Dataset;
use crate::stage::Basis;
use serde::{Deserialize, Deserializer, Serialize, de};
use std::fmt;

/// Pieces of the maps.
pub(super) const PIECES: usize = 8;
/// Most columns of x of a network without maps, and most features that get maps.
const COLUMNS: usize = 400;
const MAPPED: usize = 150;
/// Inputs from which some may be left out.
pub(super) const MANY: usize = 5;
/// How far steps from the best setting go.
const DEGREE: usize = 5;
const RANK: usize = 16;
const RESONATORS: usize = 8;
const GAMMAS: [f64; 6] = [0.03, 0.1, 0.3, 1.0, 3.0, 10.0];

/// Filters, maps, network and inputs of a head. Its ridge is found on the way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// Filters between the inputs and the network.
    #[serde(serialize_with = "as_text", deserialize_with = "from_text")]
    pub basis: Basis,
    /// Pieces of the maps.
    pub maps: Option<usize>,
    /// Degree d.
    pub degree: usize,
    /// Largest rank.
    pub rank: usize,
    /// Weight of products against linear terms.
    pub gamma: f64,
    /// Time constant of the prior over the lags.
    pub decay: Option<f64>,
    /// One network for each output, or one for all.
    pub separate: bool,
    /// Some of the inputs; none for all.
    pub inputs: Option<Vec<usize>>,
    /// So many of them, those that matter most in the rows that are fitted.
    pub keep: Option<usize>,
}

fn as_text<S: serde::Serializer>(basis: &Basis, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(basis)
}

fn from_text<'de, D: Deserializer<'de>>(from: D) -> Result<Basis, D::Error> {
    String::deserialize(from)?.parse().map_err(de::Error::custom)
}

impl Setting {
    /// A linear model of the filters' outputs.
    pub(super) fn linear(basis: Basis) -> Self {
        Self {
            basis,
            maps: None,
            degree: 1,
            rank: 1,
            gamma: 1.0,
            decay: None,
            separate: true,
            inputs: None,
            keep: None,
        }
    }

    /// A polynomial of them.
    pub(super) fn polynomial(
        basis: Basis,
        maps: Option<usize>,
        gamma: f64,
        degree: usize,
        rank: usize,
    ) -> Self {
        Self { maps, gamma, degree, rank: if degree > 1 { rank } else { 1 }, ..Self::linear(basis) }
    }

    /// Linear in the samples themselves: what people had.
    pub(super) fn is_plain(&self) -> bool {
        self.degree == 1
            && self.maps.is_none()
            && self.inputs.is_none()
            && self.keep.is_none()
            && matches!(self.basis, Basis::Lags(_))
    }

    /// The inputs that it sees.
    pub(super) fn seen(&self, data: &Dataset) -> Vec<usize> {
        self.inputs.clone().unwrap_or_else(|| (0..data.inputs.len()).collect())
    }

    /// How many inputs it sees.
    pub(super) fn count(&self, inputs: usize) -> usize {
        self.keep.or(self.inputs.as_ref().map(Vec::len)).unwrap_or(inputs)
    }

    /// The network with all inputs that tells which of them matter: products, but no maps, which take long.
    pub(super) fn with_all(&self) -> Self {
        let keep = None;
        Self { maps: None, degree: 2, rank: 4, decay: None, separate: true, keep, ..self.clone() }
    }

    /// Columns of x.
    pub(super) fn columns(&self, inputs: usize) -> usize {
        1 + self.count(inputs) * self.basis.features() * (1 + self.maps.unwrap_or(0))
    }

    /// Few enough columns for a search.
    pub(super) fn is_small(&self, inputs: usize) -> bool {
        if self.keep.is_some() && !self.with_all().is_small(inputs) {
            return false;
        }
        match self.maps {
            Some(_) => self.count(inputs) * self.basis.features() <= MAPPED,
            None => self.columns(inputs) <= COLUMNS,
        }
    }

    /// Multiplications for each row in short fits, about: second moments, then some hundred products with the cores of each network. To
    /// find the inputs that matter takes a network of its own.
    pub(super) fn work(&self, inputs: usize, outputs: usize) -> f64 {
        let (columns, rank) = (self.columns(inputs) as f64, self.rank as f64);
        let inner = self.degree.saturating_sub(2) as f64 * rank * rank;
        let (networks, first) =
            if self.separate { (outputs as f64, rank) } else { (1.0, outputs as f64 * rank) };
        let own = columns * (columns + 150.0 * networks * (first + inner + rank));
        own + self.keep.map_or(0.0, |_| self.with_all().work(inputs, outputs))
    }

    /// One step in every direction: resonators, degree, rank, weight of products, maps, one network for each output or for all, all inputs.
    pub(super) fn neighbours(&self, inputs: usize, outputs: usize) -> Vec<Self> {
        let here = || Self { decay: None, ..self.clone() };
        let maps = if self.maps.is_some() { None } else { Some(PIECES) };
        let mut next = vec![Self { maps, ..here() }];
        if let Basis::Kautz { re, im, count } = self.basis
            && count < RESONATORS
        {
            next.push(Self { basis: Basis::Kautz { re, im, count: 2 * count }, ..here() });
        }
        if self.keep.is_some() {
            next.push(Self { keep: None, ..here() });
        }
        if self.degree > 1 {
            let near = |gamma: &&f64| libm::log(**gamma / self.gamma).abs() < 1.5 && **gamma != self.gamma;
            next.extend(GAMMAS.iter().filter(near).map(|&gamma| Self { gamma, ..here() }));
            // Odd systems gain nothing from one degree more.
            let degrees = (self.degree + 1..=self.degree + 2).filter(|&degree| degree <= DEGREE);
            next.extend(degrees.map(|degree| Self { degree, ..here() }));
            if self.rank < RANK {
                next.push(Self { rank: 2 * self.rank, ..here() });
            }
            if outputs > 1 {
                next.push(Self { separate: !self.separate, ..here() });
            }
        }
        next.retain(|setting| setting.is_small(inputs));
        next
    }

    /// Averages over twice as many samples, where the basis is of averages.
    pub(super) fn longer(&self) -> Option<Self> {
        let basis = match self.basis {
            Basis::Levels(longest) => Basis::Levels(2 * longest),
            Basis::Differences(longest) => Basis::Differences(2 * longest),
            _ => return None,
        };
        Some(Self { basis, ..self.clone() })
    }

    /// The same in less flash: fewer pieces of the maps, less rank, one network for all outputs, fewer inputs.
    pub(super) fn smaller(&self, inputs: usize, outputs: usize) -> Vec<Self> {
        let half = |count: usize| count.div_ceil(2);
        let pieces: Vec<Option<usize>> = match self.maps {
            Some(pieces) => vec![Some(pieces), Some(half(pieces)), Some(half(half(pieces)).max(2))],
            None => vec![None],
        };
        let ranks = [self.rank, half(self.rank), half(half(self.rank))];
        let together = [self.separate, self.separate && (outputs == 1 || self.degree == 1)];
        let seen = self.count(inputs);
        let counts = [self.keep, Some(half(seen)), Some(half(half(seen)))];
        let counts = if seen < MANY || self.inputs.is_some() { &counts[..1] } else { &counts };
        let mut smaller: Vec<Self> = Vec::new();
        for &maps in &pieces {
            for (rank, separate) in ranks.iter().flat_map(|rank| together.map(|separate| (*rank, separate))) {
                for &keep in counts {
                    let setting = Self { maps, rank, separate, keep, ..self.clone() };
                    if setting != *self && !smaller.contains(&setting) {
                        smaller.push(setting);
                    }
                }
            }
        }
        smaller
    }

    /// Lags of each input in the columns of x, where they are lags.
    pub(super) fn memory(&self) -> usize {
        match self.basis {
            Basis::Lags(memory) if self.maps.is_none() => memory,
            _ => 0,
        }
    }

    /// How far from simple it is: decides among settings that are level.
    pub(super) fn cost(&self) -> f64 {
        let more = |yes: bool, cost: f64| if yes { cost } else { 0.0 };
        self.degree as f64 + more(self.maps.is_some(), 0.5) + more(self.rank > 4, 0.25)
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, degree {}", self.basis, self.degree)?;
        if self.degree > 1 {
            write!(f, ", rank {}, gamma {}", self.rank, self.gamma)?;
        }
        if let Some(pieces) = self.maps {
            write!(f, ", {pieces} pieces")?;
        }
        if let Some(tau) = self.decay {
            write!(f, ", decay {tau:.0}")?;
        }
        if !self.separate {
            write!(f, ", one network for all outputs")?;
        }
        if let Some(inputs) = &self.inputs {
            write!(f, ", {} inputs", inputs.len())?;
        } else if let Some(keep) = self.keep {
            write!(f, ", the {keep} inputs that matter most")?;
        }
        Ok(())
    }
}
