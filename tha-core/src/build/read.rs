//! From a file, of any format, to its [`ModelSpec`].

mod integer;

use alloc::{string::ToString, vec::Vec};

use super::{
    AlignedBytes, Core, Feature, Filter, Head, InputChannel, Interval, ModelSpec, OutputChannel, Provenance,
    Resonator, Section, Signal, Source, Stage,
};
use crate::error::ParseError;
use crate::facts::{Facts, OutputScaling};
use crate::head::HeadView;
use crate::model::{InputScaling, Model};
use crate::stage::{FeatureRecord, Run, Stage as Tables};

impl ModelSpec {
    /// The model in a `.tha` file, at any address.
    ///
    /// # Errors
    /// [`ParseError`] as from [`Model::parse`], and for names and provenance that the device does not look at.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ParseError> {
        let bytes = AlignedBytes::new(bytes);
        let model = Model::parse(&bytes)?;
        model.check_about()?;
        Ok(Self::from_model(&model))
    }

    /// The owned copy of a parsed model.
    #[must_use]
    pub fn from_model(model: &Model<'_>) -> Self {
        let stage = Stage::read(&model.stage, model);
        Self::from_facts(model, model.inputs(), stage, model.heads().map(|view| Head::read(&view)).collect())
    }

    /// A model that says this of itself.
    pub(super) fn from_facts(
        model: &Facts<'_>,
        inputs: &[InputScaling],
        stage: Stage,
        heads: Vec<Head>,
    ) -> Self {
        let mut names = model.input_names();
        let input = inputs.iter().map(|scaling| {
            let InputScaling { offset, gain, low, high } = *scaling;
            InputChannel { name: names.next().unwrap_or_default().into(), offset, gain, low, high }
        });
        let inputs = input.collect();
        let mut names = model.output_names();
        let output = model.outputs().iter().map(|scaling| {
            let OutputScaling { offset, scale, residual } = *scaling;
            OutputChannel { name: names.next().unwrap_or_default().into(), offset, scale, residual }
        });
        let provenance = model.provenance();
        Self {
            inputs,
            outputs: output.collect(),
            memory: model.shape().memory,
            stage,
            range: model.range_policy(),
            non_finite: model.non_finite_policy(),
            interval: Interval::read(model),
            heads,
            provenance: Provenance {
                tool: provenance.tool.to_string(),
                seed: provenance.seed,
                data_hash: provenance.data_hash,
                note: provenance.note.to_string(),
            },
        }
    }
}

impl Stage {
    pub(super) fn read(stage: &Tables<'_>, model: &Facts<'_>) -> Self {
        let shape = model.shape();
        let window = shape.inputs * shape.memory;
        let mut sections: Vec<Section> = Vec::new();
        // First section, first value and run of every run so far.
        let mut runs: Vec<(usize, usize, Run)> = Vec::new();
        let signal = |runs: &[(usize, usize, Run)], position: usize| {
            let value = match position.checked_sub(window) {
                None => return (position, 0, false),
                Some(value) => value,
            };
            let of =
                |&&(_, start, run): &&(usize, usize, Run)| value >= start && value < start + run.values();
            let Some(&(first, start, run)) = runs.iter().find(of) else { return (0, 0, false) };
            let (own, count) = (value - start, (run.count as usize).max(1));
            (first + own % count, own / count, true)
        };
        let mut start = 0;
        for run in stage.runs {
            let first = sections.len();
            let filter = match run.kind {
                Run::AVERAGE => Filter::Average { alpha: run.coefficients[0] },
                _ => Filter::Resonator(Resonator::of(run)),
            };
            for own in 0..run.count as usize {
                let source = match signal(&runs, run.source as usize + own) {
                    (input, _, false) => Source::Input(input),
                    (section, ..) => Source::Section(section),
                };
                sections.push(Section { source, filter });
            }
            runs.push((first, start, *run));
            start += run.values();
        }
        let signal = |position: u32| match signal(&runs, position as usize) {
            (position, _, false) => {
                Signal::Lag { input: position % shape.inputs.max(1), lag: position / shape.inputs.max(1) }
            }
            (section, output, true) => Signal::Section { section, output },
        };
        let mut nodes = stage.nodes.iter().copied();
        let plain = stage.plain();
        let feature = |(index, record): (usize, &FeatureRecord)| {
            let count = index.checked_sub(plain).and_then(|map| stage.counts.get(map)).copied().unwrap_or(0);
            Feature {
                plus: signal(record.plus),
                minus: (record.minus != FeatureRecord::NONE).then(|| signal(record.minus)),
                low: record.low,
                high: record.high,
                nodes: nodes.by_ref().take(count as usize).collect(),
            }
        };
        let features = stage.features.iter().enumerate().map(feature).collect();
        let (settled, felt) = model.extra_samples();
        Self { sections, features, linear: stage.linear.to_vec(), settled, felt }
    }
}

impl Head {
    fn read(view: &HeadView<'_>) -> Self {
        let cores = (0..view.ranks.len() - 1).filter_map(|k| view.core(k)).map(|core| {
            let data = (0..core.left * core.q * core.right)
                .filter_map(|at| {
                    core.get(at / core.right / core.q, at / core.right % core.q, at % core.right)
                })
                .collect();
            Core { left: core.left, q: core.q, right: core.right, data }
        });
        let indices = |words: &[u32]| words.iter().map(|&index| index as usize).collect();
        Self {
            inputs: indices(view.inputs),
            outputs: view.outputs(),
            weights: view.weights().collect(),
            features: indices(view.features),
            cores: cores.collect(),
        }
    }
}
