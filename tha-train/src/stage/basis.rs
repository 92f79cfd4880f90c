//! A basis: which filters stand between an input and the network, the same for every input.
//!
//! | basis | features of an input u |
//! |---|---|
//! | `lags:M` | u(t), u(t-1), ..., u(t-M+1) |
//! | `levels:T` | u and its averages s_1, s_2, s_4, ..., s_T with time constants 1, 2, 4, ..., T |
//! | `differences:T` | u - s_1, s_1 - s_2, ..., s_T/2 - s_T, s_T |
//! | `kautz:RE,IM,N` | two outputs of each of N resonators in a row with the pole RE + IM i |
//! | `poles:RE,IM,RE,IM,...` | u, two outputs of a resonator with each of these poles, and an average for each real pole (IM = 0) |
//!
//! All of them are lists of the same two things ([`Bank`]): sections, and features that are sections or differences of two.

use super::StageError;
use super::bank::{Bank, Feature};
use super::sections::{average, pole, resonator};
use crate::data::Dataset;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use tha_core::build::{Section, Signal, Source};

/// Filters in front of the network.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Basis {
    /// The last M samples.
    Lags(usize),
    /// Averages with time constants up to T, and the input.
    Levels(usize),
    /// Differences of neighbours among these, and the slowest average.
    Differences(usize),
    /// Resonators in a row.
    Kautz {
        /// Real part of the pole.
        re: f64,
        /// Imaginary part of the pole.
        im: f64,
        /// Number of resonators.
        count: usize,
    },
    /// The input, resonators, and averages: the poles of a linear model.
    Poles(Poles),
}

/// A few poles: of a conjugate pair the one above the real axis, the others between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Poles {
    count: usize,
    poles: [(f64, f64); Self::MOST],
}

impl Poles {
    /// Most poles of a basis.
    pub const MOST: usize = 8;

    /// The first of these, resonators before averages.
    pub fn new(poles: &[(f64, f64)]) -> Self {
        let mut made = Self { count: poles.len().min(Self::MOST), poles: [(0.0, 0.0); Self::MOST] };
        made.poles.iter_mut().zip(poles).for_each(|(to, from)| *to = *from);
        made.poles[..made.count].sort_by_key(|pole| pole.1 == 0.0);
        made
    }

    /// Real and imaginary parts.
    pub(crate) fn list(&self) -> &[(f64, f64)] {
        &self.poles[..self.count]
    }

    fn resonators(&self) -> usize {
        self.list().iter().filter(|pole| pole.1 != 0.0).count()
    }

    /// The resonator behind which one stands: the last one before it that is nearly the same, so that a double pole gives two different
    /// responses. All others stand beside each other: together they settle as fast as the slowest of them, in a row as their sum.
    fn before(&self, k: usize) -> Option<usize> {
        let (re, im) = self.list()[k];
        let distance = |&(other_re, other_im): &(f64, f64)| libm::hypot(re - other_re, im - other_im);
        let near = SAME * (1.0 - libm::hypot(re, im));
        (0..k.min(self.resonators())).rev().find(|&other| im != 0.0 && distance(&self.list()[other]) < near)
    }

    /// Averages stand beside each other, so that two with the same pole, as a file holds it, are one.
    fn has_equal_averages(&self) -> bool {
        let averages = &self.list()[self.resonators()..];
        let equal = |a: &(f64, f64), b: &(f64, f64)| a.0 as f32 == b.0 as f32;
        (1..averages.len()).any(|k| averages[..k].iter().any(|earlier| equal(earlier, &averages[k])))
    }
}

/// Poles are nearly the same within this part of their distance from the unit circle.
const SAME: f64 = 0.1;
/// Largest memory, time constant and number of resonators.
const LARGEST: usize = 1 << 20;
const RESONATORS: usize = 64;

impl Basis {
    /// Says what is wrong with the numbers.
    pub fn check(&self) -> Result<(), StageError> {
        let refuse = |finding: &str| {
            Err(StageError::Malformed { found: self.to_string(), finding: finding.to_string() })
        };
        match *self {
            Self::Lags(m) if !(1..=LARGEST).contains(&m) => refuse("M must be from 1 to 1048576"),
            Self::Levels(t) | Self::Differences(t) if !(1..=LARGEST).contains(&t) => {
                refuse("T must be from 1 to 1048576")
            }
            Self::Levels(t) | Self::Differences(t) if !t.is_power_of_two() => {
                let above = t.next_power_of_two();
                Err(StageError::Doubling { found: t, below: above / 2, above })
            }
            Self::Kautz { count, .. } if !(1..=RESONATORS).contains(&count) => {
                refuse("N must be from 1 to 64")
            }
            Self::Kautz { re, im, .. } if !(re.is_finite() && im.is_finite()) => {
                refuse("RE and IM must be finite")
            }
            Self::Kautz { re, im, .. } => resonator(re, im).map(|_| ()),
            Self::Poles(poles)
                if poles.list().iter().any(|pole| !(pole.0.is_finite() && pole.1.is_finite())) =>
            {
                refuse("RE and IM must be finite")
            }
            Self::Poles(poles)
                if poles.list().iter().any(|&(re, im)| im == 0.0 && !(re > 0.0 && re < 1.0)) =>
            {
                refuse("a real pole must lie between 0 and 1")
            }
            Self::Poles(poles) if poles.has_equal_averages() => {
                refuse("the same real pole stands twice: once is enough")
            }
            Self::Poles(poles) => poles.list().iter().try_for_each(|&(re, im)| pole(re, im).map(|_| ())),
            _ => Ok(()),
        }
    }

    /// Refuses data in which no record is as long as the memory of the filters.
    pub fn check_records(&self, data: &Dataset) -> Result<(), StageError> {
        let longest = data.records.iter().map(|record| record.rows.len()).max().unwrap_or(0);
        let needed = self.bank(1)?.history() + 1;
        let remedy = match self {
            Self::Lags(_) => "shorter memory",
            Self::Levels(_) | Self::Differences(_) => "shorter time constant",
            Self::Kautz { .. } | Self::Poles(_) => "pole that fades faster",
        };
        if longest >= needed {
            return Ok(());
        }
        let (origin, basis) = (data.origin.clone(), self.to_string());
        Err(StageError::TooShort { origin, longest, basis, needed, remedy })
    }

    /// Features of each input.
    pub fn features(&self) -> usize {
        match *self {
            Self::Lags(m) => m,
            Self::Levels(t) | Self::Differences(t) => 2 + t.max(1).ilog2() as usize,
            Self::Kautz { count, .. } => 2 * count,
            Self::Poles(poles) => 1 + poles.count + poles.resonators(),
        }
    }

    /// The sections and features of so many inputs, filter by filter for all inputs each, as in a lag window.
    pub fn bank(&self, inputs: usize) -> Result<Bank, StageError> {
        self.check()?;
        let filters = match *self {
            Self::Lags(_) => Vec::new(),
            Self::Levels(t) | Self::Differences(t) => {
                (0..=t.ilog2()).map(|k| average(libm::exp2(f64::from(k)))).collect()
            }
            Self::Kautz { re, im, count } => vec![resonator(re, im)?; count],
            Self::Poles(poles) => {
                poles.list().iter().map(|&(re, im)| pole(re, im)).collect::<Result<_, _>>()?
            }
        };
        let section = |k: usize, input: usize| Section {
            source: match self {
                Self::Kautz { .. } if k > 0 => Source::Section((k - 1) * inputs + input),
                Self::Poles(poles) => match poles.before(k) {
                    Some(earlier) => Source::Section(earlier * inputs + input),
                    None => Source::Input(input),
                },
                _ => Source::Input(input),
            },
            filter: filters[k],
        };
        let each = 0..filters.len();
        let sections =
            each.clone().flat_map(|k| (0..inputs).map(move |input| (k, input))).map(|(k, i)| section(k, i));
        let signals = |input: usize| -> Vec<Signal> {
            let output = |k: usize, output| Signal::Section { section: k * inputs + input, output };
            let now = Signal::Lag { input, lag: 0 };
            match *self {
                Self::Lags(m) => (0..m).map(|lag| Signal::Lag { input, lag }).collect(),
                Self::Kautz { .. } => each.clone().flat_map(|k| [output(k, 0), output(k, 1)]).collect(),
                Self::Poles(poles) => {
                    let rings = 0..poles.resonators();
                    let rings = rings.flat_map(|k| [output(k, 0), output(k, 1)]);
                    let fades = (poles.resonators()..poles.count).map(|k| output(k, 0));
                    std::iter::once(now).chain(rings).chain(fades).collect()
                }
                _ => std::iter::once(now).chain(each.clone().map(|k| output(k, 0))).collect(),
            }
        };
        let signals: Vec<Vec<Signal>> = (0..inputs).map(signals).collect();
        let feature = |k: usize, input: usize| {
            let minus = match self {
                Self::Differences(_) => signals[input].get(k + 1).copied(),
                _ => None,
            };
            Feature { input, signal: signals[input][k], minus }
        };
        let count = signals.first().map_or(0, Vec::len);
        let features =
            (0..count).flat_map(|k| (0..inputs).map(move |input| (k, input))).map(|(k, i)| feature(k, i));
        Ok(Bank { inputs, sections: sections.collect(), features: features.collect() })
    }
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lags(m) => write!(f, "lags:{m}"),
            Self::Levels(t) => write!(f, "levels:{t}"),
            Self::Differences(t) => write!(f, "differences:{t}"),
            Self::Kautz { re, im, count } => write!(f, "kautz:{re},{im},{count}"),
            Self::Poles(poles) => {
                let text = |(re, im): &(f64, f64)| format!("{re},{im}");
                write!(f, "poles:{}", poles.list().iter().map(text).collect::<Vec<_>>().join(","))
            }
        }
    }
}

impl FromStr for Basis {
    type Err = StageError;

    fn from_str(text: &str) -> Result<Self, StageError> {
        let refuse = |finding: String| StageError::Malformed { found: text.to_string(), finding };
        let (kind, numbers) =
            text.split_once(':').ok_or_else(|| refuse("there is no ':' after the kind".into()))?;
        let whole = |number: &str| {
            number.trim().parse::<usize>().map_err(|_| refuse(format!("'{number}' is no whole number")))
        };
        let real = |number: &str| {
            number.trim().parse::<f64>().map_err(|_| refuse(format!("'{number}' is no number")))
        };
        let basis = match kind {
            "lags" => Self::Lags(whole(numbers)?),
            "levels" => Self::Levels(whole(numbers)?),
            "differences" => Self::Differences(whole(numbers)?),
            "kautz" => {
                let parts: Vec<&str> = numbers.split(',').collect();
                let &[re, im, count] = parts.as_slice() else {
                    return Err(refuse(format!("{} numbers after kautz", parts.len())));
                };
                Self::Kautz { re: real(re)?, im: real(im)?, count: whole(count)? }
            }
            "poles" => {
                let parts: Vec<f64> = numbers.split(',').map(real).collect::<Result<_, _>>()?;
                let (pairs, rest) = parts.as_chunks::<2>();
                if !rest.is_empty() || pairs.len() > Poles::MOST {
                    return Err(refuse(format!(
                        "{} numbers after poles: two for each pole, {} poles at most",
                        parts.len(),
                        Poles::MOST
                    )));
                }
                Self::Poles(Poles::new(&pairs.iter().map(|&[re, im]| (re, im)).collect::<Vec<_>>()))
            }
            _ => return Err(refuse(format!("'{kind}' is no kind of basis"))),
        };
        basis.check()?;
        Ok(basis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::tests::counting;

    #[test]
    fn what_is_written_is_read_again() {
        for text in [
            "lags:5",
            "levels:64",
            "differences:1",
            "kautz:0.9,0.3,4",
            "kautz:-0.5,0.01,1",
            "poles:0.9,0.3,-0.2,0.5,0.97,0",
        ] {
            assert_eq!(text.parse::<Basis>().unwrap().to_string(), text);
        }
        assert_eq!("kautz: 0.9, 0.3, 4".parse(), Ok(Basis::Kautz { re: 0.9, im: 0.3, count: 4 }));
    }

    #[test]
    fn every_refusal_is_one_line_that_says_what_is_wrong() {
        for (text, finding) in [
            ("lags", "no ':'"),
            ("lags:", "'' is no whole number"),
            ("lags:-1", "'-1' is no whole number"),
            ("lags:0", "M must be from 1"),
            ("levels:2.5", "'2.5' is no whole number"),
            ("differences:100", "cannot end at 100; use 64 or 128"),
            ("laguerre:3", "'laguerre' is no kind"),
            ("kautz:0.9,0.3", "2 numbers after kautz"),
            ("kautz:0.9,x,2", "'x' is no number"),
            ("kautz:0.9,0.3,0", "N must be from 1"),
            ("kautz:NaN,0.3,1", "must be finite"),
            ("kautz:0.6,0.8,2", "modulus 1;"),
            ("kautz:1.2,0,2", "modulus 1.2"),
            ("kautz:0.6,0.799999999,2", "modulus 1;"),
            ("kautz:0.9,0,2", "does not ring"),
            ("poles:0.9", "1 numbers after poles"),
            ("poles:1,0", "between 0 and 1"),
            ("poles:0.6,0.8", "modulus 1;"),
            ("poles:0.9,inf", "must be finite"),
            ("poles:0.9,0,0.5,0.5,0.9,0", "stands twice"),
        ] {
            let said = text.parse::<Basis>().unwrap_err().to_string();
            assert!(said.contains(finding) && !said.contains('\n'), "{text}: {said}");
        }
    }

    #[test]
    fn records_must_be_as_long_as_the_memory() {
        let data = counting(&[40, 70]);
        let check = |text: &str| text.parse::<Basis>().unwrap().check_records(&data);
        assert!(check("lags:70").is_ok() && check("levels:64").is_ok() && check("kautz:0.8,0.3,1").is_ok());
        let said = check("differences:128").unwrap_err().to_string();
        assert!(said.contains("70 samples, but differences:128 needs 129"), "{said}");
        let said = check("kautz:0.98,0.1,1").unwrap_err().to_string();
        assert!(said.contains("fades faster"), "{said}");
        assert!(check("lags:71").is_err());
    }

    #[test]
    fn banks_are_lists_of_sections_and_features() {
        let bank = |text: &str| text.parse::<Basis>().unwrap().bank(2).unwrap();
        let lags = bank("lags:3");
        assert!(lags.sections.is_empty());
        let delays: Vec<_> = lags.features.iter().map(|feature| feature.signal).collect();
        let lag = |input, lag| Signal::Lag { input, lag };
        assert_eq!(delays, [lag(0, 0), lag(1, 0), lag(0, 1), lag(1, 1), lag(0, 2), lag(1, 2)]);

        let section = |section, output| Signal::Section { section, output };
        let of_second = |bank: &Bank| {
            let second = bank.features.iter().filter(|feature| feature.input == 1);
            second.map(|feature| (feature.signal, feature.minus)).collect::<Vec<_>>()
        };
        let (now, s1, s2) = (lag(1, 0), section(1, 0), section(3, 0));
        assert_eq!(of_second(&bank("levels:2")), [(now, None), (s1, None), (s2, None)]);
        assert_eq!(of_second(&bank("differences:2")), [(now, Some(s1)), (s1, Some(s2)), (s2, None)]);
        let kautz = bank("kautz:0.5,0.5,2");
        let sources: Vec<_> = kautz.sections.iter().map(|section| section.source).collect();
        assert_eq!(sources, [Source::Input(0), Source::Input(1), Source::Section(0), Source::Section(1)]);
        let outputs: Vec<_> = [(1, 0), (1, 1), (3, 0), (3, 1)].map(|(s, k)| (section(s, k), None)).into();
        assert_eq!(of_second(&kautz), outputs);
        // Resonators and averages stand beside each other, a resonator behind one that is nearly the same.
        let sources = |basis: &str| {
            bank(basis).sections.iter().map(|section| section.source).skip(2).collect::<Vec<_>>()
        };
        let inputs = [Source::Input(0), Source::Input(1)];
        let poles = "poles:0.9,0,0.5,0.5,0.5,0.6";
        assert_eq!(sources(poles), [inputs, inputs].concat());
        let first = [Source::Section(0), Source::Section(1)];
        assert_eq!(sources("poles:0.9,0,0.5,0.5,0.5,0.51"), [first, inputs].concat());
        let poles = bank(poles);
        let mut expected = vec![(now, None)];
        expected.extend(outputs);
        expected.push((section(5, 0), None));
        assert_eq!(of_second(&poles), expected);
        assert_eq!(
            poles.features.len(),
            2 * "poles:0.9,0,0.5,0.5,0.5,0.6".parse::<Basis>().unwrap().features()
        );
    }
}
