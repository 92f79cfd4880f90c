//! C99 for a model of 16-bit integers: its tables as they stand in the file, in `integer.h` and `integer.c`.
//!
//! What a device with a parser computes is in the tables: the counts of the means, the shifts of the nodes.

use super::SourceFile;
use super::c::{braces, common, files, hex, list, rows};
use tha_core::build::ModelSpec;
use tha_core::integer::{FINE, FeatureRecord, Head, InputCounts, Model, Node, Run};

/// The files `name`.h and `name`.c for a model of integers, which means `spec`.
pub(super) fn integers(name: &str, spec: &ModelSpec, model: &Model<'_>) -> [SourceFile; 2] {
    let (runs, features, nodes) = model.stage();
    let nodes: Vec<&[Node]> = nodes.collect();
    let (linear, linear_shifts) = model.linear();
    let heads: Vec<Head<'_>> = model.heads().collect();
    let most = |of: &dyn Fn(&Head<'_>) -> usize| heads.iter().map(of).max().unwrap_or(0).max(1);
    let (listed, plain) = (features.len(), features.len() - nodes.len());
    let gathered = most(&|head| if listed > 0 { head.features.len() } else { head.rows });
    let sums = most(&|head| head.constants.len());
    let signals = runs.iter().map(|run| run.rows() * run.count as usize).sum::<usize>().max(1);
    let (z, cells) = (listed.max(1), nodes.len().max(1));
    let window = spec.inputs.len() * spec.memory;
    let shorts = 3 * window + 2 * z + gathered + 2 * cells;
    let state_bytes = (4 * (4 + signals + sums) + 2 * shorts + spec.inputs.len()).next_multiple_of(4);
    let shape = |head: &Head<'_>| {
        let used = if listed > 0 { head.features.len() } else { head.inputs.len() };
        let own_plain = head.features.iter().filter(|&feature| feature < plain).count();
        let (outputs, degree, sums) = (head.outputs(), head.shifts.len(), head.constants.len());
        braces(list(&[used, own_plain, outputs.start, outputs.len(), degree, sums, head.rows]))
    };
    let subset = |head: &Head<'_>| match listed {
        0 => numbers(head.inputs),
        _ => numbers(&head.features.iter().collect::<Vec<_>>()),
    };
    let shifts = |head: &Head<'_>| {
        let own = head.shifts.iter().map(|shifts| braces(numbers(&[shifts.sum, shifts.product])));
        own.collect::<Vec<_>>().join(", ")
    };
    let floats = |values: Vec<f32>| values.into_iter().map(hex).collect::<Vec<_>>().join(", ");
    let linear_rows = linear.chunks(listed.max(1)).map(|row| braces(numbers(row)));
    let mut words = common(name, spec);
    words.extend([
        ("bits", model.bits().to_string()),
        ("runs", runs.len().to_string()),
        ("listed", listed.to_string()),
        ("plain", plain.to_string()),
        ("zeros", floats(model.inputs().iter().map(|input| input.zero).collect())),
        ("rates", floats(model.inputs().iter().map(|input| input.rate).collect())),
        ("offsets", floats(model.outputs().iter().map(|output| output.offset).collect())),
        ("units", floats(model.units().iter().map(|unit| unit.unit).collect())),
        ("bounds", floats(model.units().iter().map(|unit| unit.bound.min(f32::MAX)).collect())),
        ("state_bytes", state_bytes.to_string()),
        ("signals", signals.to_string()),
        ("sums", sums.to_string()),
        ("z", z.to_string()),
        ("features", gathered.to_string()),
        ("cells", cells.to_string()),
        ("input_table", rows(model.inputs().iter().map(input))),
        ("filter_table", rows(runs.iter().map(filter))),
        ("feature_table", rows(features.iter().map(feature))),
        ("fine", FINE.to_string()),
        ("node_table", rows(nodes.iter().map(|own| map(own, model.bits())))),
        ("count_table", rows(nodes.iter().map(|own| own.len().to_string()))),
        ("linear_table", rows(linear_rows)),
        ("linear_shift_table", rows(linear_shifts.iter().map(ToString::to_string))),
        ("shape_table", rows(heads.iter().map(shape))),
        ("weight_table", rows(heads.iter().map(|head| numbers(head.weights)))),
        ("subset_table", rows(heads.iter().map(subset))),
        ("rank_table", rows(heads.iter().map(|head| numbers(head.ranks)))),
        ("shift_table", rows(heads.iter().map(shifts))),
        ("constant_table", rows(heads.iter().map(|head| numbers(head.constants)))),
        ("core_table", rows(heads.iter().flat_map(coefficients))),
    ]);
    files(name, &words, [include_str!("integer.h"), include_str!("integer.c")])
}

fn numbers<T: ToString>(values: &[T]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn input(input: &InputCounts) -> String {
    let InputCounts { offset, gain, shift, low, high, .. } = *input;
    // Where x is 0: held before there is anything to hold.
    let mean = (-offset / i32::from(gain)).clamp(i16::MIN.into(), i16::MAX.into());
    braces(format!("{offset}, {gain}, {low}, {high}, {mean}, {shift}"))
}

fn filter(run: &Run) -> String {
    let coefficients = if run.kind == Run::AVERAGE { &run.coefficients[..1] } else { &run.coefficients[..] };
    braces(format!(
        "{}, {}, {}, {}, {{{}}}",
        run.rows(),
        run.shift,
        run.count,
        run.source,
        numbers(coefficients)
    ))
}

fn feature(record: &FeatureRecord) -> String {
    let FeatureRecord { plus, minus, low, high, .. } = *record;
    braces(format!("{plus}, {minus}, {}, {low}, {high}, {}", record.gain(), record.shift()))
}

/// The nodes of a map, each with how far the way from there is shifted so that 16 bits are left, and its product with the inverse after that.
fn map(nodes: &[Node], bits: u32) -> String {
    let node = |(k, node): (usize, &Node)| {
        let width = nodes.get(k + 1).map_or(1, |next| i32::from(next.at) - i32::from(node.at));
        let size = width.ilog2() + 1 + FINE;
        let down = size.saturating_sub(16);
        braces(format!("{}, {}, {down}, {}", node.at, node.inverse, 15 + size - down - bits))
    };
    nodes.iter().enumerate().map(node).collect::<Vec<_>>().join(", ")
}

/// The coefficients of a head, a line per pair of sums: those of V_d first, of V_1 last; the last sum alone where their number is odd.
fn coefficients(head: &Head<'_>) -> Vec<String> {
    let mut sums: Vec<Vec<i16>> = Vec::new();
    for k in (0..head.shifts.len()).rev() {
        let (left, right) = (head.ranks[k] as usize, head.ranks[k + 1] as usize);
        for (a, b) in (0..left).flat_map(|a| (0..right).map(move |b| (a, b))) {
            sums.extend(head.sum(k, a, b).map(|(_, own)| own.collect()));
        }
    }
    let line = |pair: &[Vec<i16>]| {
        let row = |i: usize| pair.iter().map(move |sum| sum[i]);
        numbers(&(0..head.rows).flat_map(row).collect::<Vec<_>>())
    };
    sums.chunks(2).map(line).collect()
}
