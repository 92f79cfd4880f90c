//! What a file of integers means: the model that it would be without rounding, in its own units.

use alloc::vec::Vec;

use crate::build::{AlignedBytes, Core, Head, ModelSpec, Stage};
use crate::error::ParseError;
use crate::integer::{ALPHA, FINE, FRACTION, FeatureRecord, InputCounts, Model, Run};
use crate::model::InputScaling;
use crate::stage;

impl ModelSpec {
    /// The model in a `.tha` file of integers, at any address: inputs are standardised to the units of x, coefficients are those of the
    /// file. Its outputs differ from those of the device by what the device rounds.
    ///
    /// # Errors
    /// [`ParseError`] as from [`integer::Model::parse`](crate::integer::Model::parse), and for names and provenance that the device does not look at.
    pub fn from_integers(bytes: &[u8]) -> Result<Self, ParseError> {
        let bytes = AlignedBytes::new(bytes);
        let model = Model::parse(&bytes)?;
        model.check_about()?;
        Ok(Self::meaning(&model))
    }

    /// The same for a parsed model.
    #[must_use]
    pub fn meaning(model: &Model<'_>) -> Self {
        let inputs: Vec<InputScaling> = model.inputs().iter().map(InputCounts::meaning).collect();
        let tables = Tables::new(model);
        let stage = Stage::read(&tables.view(), model);
        let rows = |head: &crate::integer::Head<'_>| tables.rows(head, model.bits());
        let heads = model.heads().map(|head| Head::meaning(&head, &rows(&head))).collect();
        let mut spec = Self::from_facts(model, &inputs, stage, heads);
        // Outputs keep their scale: the weights say how many of it a unit of v is.
        for head in &mut spec.heads {
            let scales = model.outputs().iter().zip(model.units()).skip(head.outputs.start);
            for (weight, (output, unit)) in head.weights.iter_mut().zip(scales) {
                *weight = (f64::from(*weight) * f64::from(unit.unit) / f64::from(output.scale)) as f32;
            }
        }
        let scales = model.outputs().iter().zip(model.units());
        let rows = spec.stage.linear.chunks_mut(spec.stage.features.len().max(1));
        for (row, (output, unit)) in rows.zip(scales) {
            row.iter_mut().for_each(|value| *value *= unit.unit / output.scale);
        }
        spec
    }
}

impl InputCounts {
    /// x = (u - offset) gain without rounding, and the range in physical units.
    fn meaning(&self) -> InputScaling {
        let half = if self.shift == 0 { 0.0 } else { exp2(self.shift) / 2.0 };
        let (zero, rate, gain) = (f64::from(self.zero), f64::from(self.rate), f64::from(self.gain));
        let physical = |counts: i16| (zero + f64::from(counts) / rate) as f32;
        InputScaling {
            offset: (zero - (f64::from(self.offset) - half) / gain / rate) as f32,
            gain: (gain * rate / exp2(self.shift)) as f32,
            low: physical(self.low),
            high: physical(self.high),
        }
    }
}

impl Head {
    /// The cores in units of v, with the powers of two of their shifts.
    fn meaning(head: &crate::integer::Head<'_>, rows: &[f64]) -> Self {
        let core = |k: usize| {
            let (left, right) = (*head.ranks.get(k)? as usize, *head.ranks.get(k + 1)? as usize);
            let (shifts, q) = (head.shifts.get(k)?, head.rows + 1);
            let last = k + 1 == head.shifts.len();
            let factor = exp2(shifts.sum) * if last { 1.0 } else { exp2(shifts.product) };
            let half = if shifts.sum == 0 { 0.0 } else { exp2(shifts.sum) / 2.0 };
            let mut data = alloc::vec![0.0; left * q * right];
            for (a, b) in (0..left).flat_map(|a| (0..right).map(move |b| (a, b))) {
                let (constant, coefficients) = head.sum(k, a, b)?;
                let of = coefficients.zip(rows).map(|(value, row)| f64::from(value) * row);
                for (i, value) in core::iter::once(f64::from(constant) - half).chain(of).enumerate() {
                    *data.get_mut((a * q + i) * right + b)? = (value / factor) as f32;
                }
            }
            Some(Core::new(left, q, right, data))
        };
        Self {
            inputs: head.inputs.iter().map(|&input| input.into()).collect(),
            outputs: head.outputs(),
            weights: head.weights.iter().map(|&weight| weight.into()).collect(),
            features: head.features.iter().collect(),
            cores: (0..head.shifts.len()).filter_map(core).collect(),
        }
    }
}

/// The tables of the stage as those of f32: signals in units of x.
struct Tables {
    runs: Vec<stage::Run>,
    records: Vec<stage::FeatureRecord>,
    counts: Vec<u32>,
    nodes: Vec<f32>,
    linear: Vec<f32>,
    /// x of each feature per unit of its signal.
    units: Vec<f64>,
}

impl Tables {
    fn new(model: &Model<'_>) -> Self {
        let (runs, features, nodes) = model.stage();
        let shape = model.shape();
        let window = shape.inputs * shape.memory;
        // For every value how many of its units make one of its input, without the fraction.
        let mut factors: Vec<f64> = Vec::new();
        let run = |run: &Run| {
            let source = (run.source as usize).checked_sub(window);
            let from = source.map_or(1.0, |value| factors.get(value).copied().unwrap_or(1.0));
            let [c11, c12, b, c21, c22, d, e1, e2, unit] =
                run.coefficients.map(|value| f64::from(value) / exp2(run.shift));
            let average = run.kind == Run::AVERAGE;
            let factor = if average { from } else { from * unit };
            factors.extend(core::iter::repeat_n(factor, run.values()));
            let coefficients = match average {
                true => {
                    [f64::from(run.coefficients[0]) / exp2(ALPHA as u16), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
                }
                false => [c11, c12, c21, c22, b / unit, d / unit, e1, e2],
            };
            stage::Run {
                kind: run.kind.into(),
                source: run.source,
                count: run.count,
                coefficients: coefficients.map(|value| value as f32),
            }
        };
        let runs = runs.iter().map(run).collect();
        let unit = |feature: &FeatureRecord| {
            let value = usize::from(feature.plus).checked_sub(window);
            let factor = value.map_or(1.0, |value| factors.get(value).copied().unwrap_or(1.0));
            f64::from(feature.gain()) / exp2(feature.shift() as u16) * exp2(FRACTION as u16) * factor
        };
        let mapped: Vec<_> = nodes.collect();
        let plain = features.len() - mapped.len();
        // Mapped features are finer than their unit.
        let fine = exp2(FINE as u16);
        let unit = |(k, feature): (usize, &FeatureRecord)| unit(feature) / if k < plain { 1.0 } else { fine };
        let units: Vec<f64> = features.iter().enumerate().map(unit).collect();
        let record = |(feature, unit): (&FeatureRecord, &f64)| stage::FeatureRecord {
            plus: feature.plus.into(),
            minus: match feature.minus {
                FeatureRecord::NONE => stage::FeatureRecord::NONE,
                minus => minus.into(),
            },
            low: (f64::from(feature.low) / unit) as f32,
            high: (f64::from(feature.high) / unit) as f32,
        };
        let records: Vec<_> = features.iter().zip(&units).map(record).collect();
        let (mut counts, mut places) = (Vec::new(), Vec::new());
        for (own, unit) in mapped.iter().zip(units.iter().skip(plain)) {
            counts.push(own.len() as u32);
            places.extend(own.iter().map(|node| (f64::from(node.at) / unit) as f32));
        }
        let (linear, shifts) = model.linear();
        let linear = linear.chunks(units.len().max(1)).zip(shifts).flat_map(|(row, &shift)| {
            row.iter()
                .zip(&units)
                .map(move |(value, unit)| (f64::from(*value) * unit / exp2(shift as u16)) as f32)
        });
        let linear = linear.collect();
        Self { runs, records, counts, nodes: places, linear, units }
    }

    fn view(&self) -> stage::Stage<'_> {
        stage::Stage {
            runs: &self.runs,
            features: &self.records,
            counts: &self.counts,
            nodes: &self.nodes,
            linear: &self.linear,
            signals: 0,
        }
    }

    /// What a coefficient of each row of a head but the first is worth for a feature in units of its signal, or for a node.
    fn rows(&self, head: &crate::integer::Head<'_>, bits: u32) -> Vec<f64> {
        if head.features.is_empty() {
            return alloc::vec![1.0; head.rows];
        }
        let plain = self.records.len() - self.counts.len();
        let rows = head.features.iter().flat_map(|feature| {
            let unit = self.units.get(feature).copied().unwrap_or(1.0);
            match feature.checked_sub(plain).and_then(|map| self.counts.get(map)) {
                None => core::iter::repeat_n(unit, 1),
                Some(&count) => core::iter::repeat_n(f64::from(1u32 << bits), count as usize),
            }
        });
        rows.collect()
    }
}

fn exp2(shift: u16) -> f64 {
    (1u64 << shift) as f64
}
