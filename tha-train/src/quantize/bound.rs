//! How far an integer model can be from the model it was made of, for inputs in the training range while no limit changes anything.
//!
//! Everything in the units of the file. With errors dx of the features and dW of the coefficients as they were rounded,
//!
//! ```text
//! average     what comes in + 1 / (2 alpha) + what alpha's rounding moves          resonator   what comes in, and what is rounded times its growth
//! feature     what comes in times its gain + 1/2                                    map         2^bits times what it moves within dx and its nodes, + 9/8 |W' - W|
//! dt_ab    <= (|dB| + sum |dW| 2^bits + sum |W| dx) / 2^s + 1/2
//! dv'_a    <= sum over b of (|t_ab| dv_b + |v_b| dt_ab + dt_ab dv_b) / 2^z + 1/2    |v| <= 2^15, |t| as the parser bounds it
//! dy_j     <= sum over the heads of |w| dv + |dw| 2^15
//! ```

use tha_core::build::{Feature, Filter, Head, ModelSpec, Signal, Source, Units};
use tha_core::integer::{FINE, FRACTION, FeatureRecord, InputCounts, Model, VECTOR as LARGEST};

const VECTOR: f64 = LARGEST as f64;

/// Bounds for all outputs, physical units.
pub fn bounds(spec: &ModelSpec, model: &Model<'_>, units: &Units) -> Vec<f64> {
    let features = Errors::new(spec, model, units);
    let mut total = vec![0.0; spec.outputs.len()];
    for ((head, integers), gauges) in spec.heads.iter().zip(model.heads()).zip(&units.heads) {
        let rows = features.rows(spec, head, units);
        let mut right: Option<Vec<f64>> = None;
        for (k, core) in head.cores.iter().enumerate().rev() {
            let shifts = integers.shifts[k];
            let next = gauges.get(k + 1);
            let row = |a: usize| {
                let mut error = 0.0;
                for b in 0..core.right {
                    let product = next.map_or(1.0, |next| f64::from(1u32 << shifts.product) / next[b]);
                    let factor = gauges[k][a] * product * f64::from(1u32 << shifts.sum);
                    let (constant, coefficients) = integers.sum(k, a, b).expect("the same shape");
                    let exact = |i: usize| f64::from(core.data[(a * core.q + i) * core.right + b]) * factor;
                    // Without the half that rounds.
                    let constant = f64::from(constant) - f64::from((1u32 << shifts.sum) >> 1);
                    let (sum, size) = rows.sum(exact, constant, coefficients);
                    let one = f64::from(1u32 << shifts.sum);
                    let (dt, t) = (sum / one + 0.5, size / one);
                    error += right.as_ref().map_or(dt, |dv| t * dv[b] + VECTOR * dt + dt * dv[b]);
                }
                match right {
                    None => error,
                    Some(_) => error / f64::from(1u32 << shifts.product) + 0.5,
                }
            };
            right = Some((0..core.left).map(row).collect());
        }
        let dv = right.unwrap_or_default();
        for (own, j) in head.outputs.clone().enumerate() {
            let exact = f64::from(head.weights[own]) * units.outputs[j] / gauges[0][own];
            let weight = f64::from(integers.weights[own]);
            total[j] += weight.abs() * dv[own] + (weight - exact).abs() * VECTOR;
        }
    }
    let most = |j: usize| -> f64 {
        let of = |head: tha_core::integer::Head<'_>| {
            j.checked_sub(head.outputs().start)
                .and_then(|own| head.weights.get(own))
                .map_or(0.0, |w| f64::from(*w).abs())
        };
        model.heads().map(of).sum::<f64>() * VECTOR
    };
    let physical = |(j, counts): (usize, f64)| {
        let unit = f64::from(model.units()[j].unit);
        let factor = units.factors.get(j).copied().unwrap_or(1.0);
        // What the factor moves, and three roundings of f32 at the end.
        let moved = most(j) * unit * ((factor - 1.0).abs() + 2.0f64.powi(-22));
        unit * counts + moved + 2.0f64.powi(-23) * f64::from(spec.outputs[j].offset).abs()
    };
    total.into_iter().enumerate().map(physical).collect()
}

/// Errors of x: of the inputs, and of the features where they are listed.
struct Errors {
    inputs: Vec<f64>,
    features: Vec<f64>,
}

impl Errors {
    fn new(spec: &ModelSpec, model: &Model<'_>, units: &Units) -> Self {
        let input = |input: &InputCounts| {
            // Counts that are the physical units come without rounding.
            let count = if input.zero == 0.0 && input.rate == 1.0 { 0.0 } else { 0.51 };
            let unit = f64::from(1u32 << input.shift);
            count * f64::from(input.gain) / unit + 0.5 + 0.5 / unit
        };
        let inputs: Vec<f64> = model.inputs().iter().map(input).collect();
        let sections = section_errors(spec, &inputs);
        let (_, records, nodes) = model.stage();
        let fraction = f64::from(1u32 << FRACTION);
        let signal = |signal: Signal| match signal {
            Signal::Lag { input, .. } => inputs[input] * fraction,
            Signal::Section { section, .. } => sections[section],
        };
        let feature = |(feature, record): (&Feature, &FeatureRecord)| {
            let both = signal(feature.plus) + feature.minus.map_or(0.0, signal);
            both * f64::from(record.gain()) / (1u64 << record.shift()) as f64 + 0.5
        };
        let mut features: Vec<f64> = spec.stage.features.iter().zip(records).map(feature).collect();
        // The nodes of maps are elsewhere too.
        let maps: Vec<_> = nodes.collect();
        let plain = features.len() - maps.len();
        for (k, nodes) in maps.into_iter().enumerate() {
            let was = spec.stage.features[plain + k].nodes.iter();
            let unit = units.features[plain + k];
            let moved =
                nodes.iter().zip(was).map(|(node, was)| (f64::from(node.at) - f64::from(*was) * unit).abs());
            features[plain + k] += moved.fold(0.0, f64::max) * f64::from(1u32 << FINE);
        }
        Self { inputs, features }
    }

    /// For the rows of a head.
    fn rows(&self, spec: &ModelSpec, head: &Head, units: &Units) -> Rows {
        let one = f64::from(1u32 << units.bits);
        let mut rows = Rows { one, groups: Vec::new() };
        if head.features.is_empty() {
            for _ in 0..spec.memory {
                rows.groups.extend(head.inputs.iter().map(|&input| Group {
                    unit: units.inputs[input],
                    error: self.inputs[input],
                    distances: Vec::new(),
                }));
            }
        }
        for &k in &head.features {
            let nodes = &spec.stage.features[k].nodes;
            let unit = units.features[k];
            let fine = unit * f64::from(1u32 << FINE);
            let distance = |pair: &[f32]| (f64::from(pair[1]) - f64::from(pair[0])) * fine;
            rows.groups.push(Group {
                unit: if nodes.is_empty() { unit } else { one },
                error: self.features[k],
                distances: nodes.windows(2).map(distance).collect(),
            });
        }
        rows
    }
}

/// Of the sections in their own units, which follow from the inputs.
fn section_errors(spec: &ModelSpec, inputs: &[f64]) -> Vec<f64> {
    let fraction = f64::from(1u32 << FRACTION);
    let most = f64::from(1u32 << 30);
    let mut errors: Vec<f64> = Vec::new();
    for section in &spec.stage.sections {
        let from = match section.source {
            Source::Input(input) => inputs[input] * fraction,
            Source::Section(earlier) => errors[earlier],
        };
        errors.push(match section.filter {
            Filter::Average { alpha } => {
                let alpha = f64::from(alpha);
                from + 0.5 / alpha + 0.5 / most / alpha * 2.0 * most
            }
            Filter::Resonator(resonator) => {
                // The unit is at most one over the growth: what comes in grows by no more than itself. What is rounded in every step does not pass
                // the gain: half a unit of each output, and three coefficients with 30 bits behind the point, times signals of at most 30 bits.
                let gain = f64::from(resonator.gain).abs();
                from + 2.0 * (1.0 + resonator.measure().0) * resonator.growth() / gain + 2.0
            }
        });
    }
    errors
}

/// A feature of a head: one row, or one for each of its nodes.
struct Group {
    /// What x is worth in its rows.
    unit: f64,
    /// Of x, or of z where it is mapped.
    error: f64,
    /// Between the nodes, in units of z.
    distances: Vec<f64>,
}

struct Rows {
    /// 2^bits.
    one: f64,
    groups: Vec<Group>,
}

impl Rows {
    /// The error and the size of a sum, given its coefficients as they should be and its constant and coefficients as they are.
    fn sum(
        &self,
        exact: impl Fn(usize) -> f64,
        constant: f64,
        mut coefficients: impl Iterator<Item = i16>,
    ) -> (f64, f64) {
        let mut error = (constant - exact(0)).abs();
        let mut size = exact(0).abs();
        let mut row = 1;
        for group in &self.groups {
            let rows = if group.distances.is_empty() { 1 } else { group.distances.len() + 1 };
            let own: Vec<f64> = (row..row + rows).map(|i| exact(i) / group.unit).collect();
            let rounded =
                own.iter().zip(coefficients.by_ref()).map(|(w, integer)| (w - f64::from(integer)).abs());
            error += rounded.fold(0.0, f64::max) * self.one;
            size += own.iter().fold(0.0f64, |most, w| most.max(w.abs())) * self.one;
            error += match group.distances.as_slice() {
                [] => own[0].abs() * group.error,
                distances => {
                    // The most that the map moves while z moves by its error and as far as the nodes did, over as many cells as that takes; and
                    // how far it has come in a cell is cut off to 16 bits (half a unit of t at most), multiplied by a rounded inverse (an
                    // eighth), and rounded (a half).
                    let (far, jump) = (group.error, |k: usize| (own[k + 1] - own[k]).abs());
                    let from = |start: usize| {
                        let (mut sum, mut left) = (0.0, far);
                        for (k, distance) in distances.iter().enumerate().skip(start) {
                            sum += jump(k) * (far / distance).min(1.0);
                            left -= if k > start { *distance } else { 0.0 };
                            if left <= 0.0 {
                                break;
                            }
                        }
                        sum
                    };
                    let most = (0..distances.len()).map(from).fold(0.0, f64::max);
                    let step = (0..distances.len()).map(jump).fold(0.0, f64::max);
                    self.one * most + 1.125 * step
                }
            };
            row += rows;
        }
        (error, size + error)
    }
}
