//! C99: the arithmetic of tha-core's `FORMAT.md` in a header and a source file, with the model as tables.
//!
//! `runtime.h` and `runtime.c` are the text; `@words@` in it are replaced. Coefficients are written as hexadecimal
//! floats, which every C99 compiler reads to the bit.

use super::SourceFile;
use super::names::{c_literal, comment};
use tha_core::build::{Feature, Filter, Head, Interval, ModelSpec, Section, Signal, Source, Stage};
use tha_core::{NonFinitePolicy, RangePolicy};

/// Sums that the C code adds up side by side.
const BLOCK: usize = 4;

/// The files `name`.h and `name`.c for a model of floats.
pub(super) fn floats(name: &str, spec: &ModelSpec) -> [SourceFile; 2] {
    let stage = &spec.stage;
    let sums = |head: &Head| head.cores.iter().map(|core| core.left * core.right).sum::<usize>();
    let most = |of: &dyn Fn(&Head) -> usize| spec.heads.iter().map(of).max().unwrap_or(0).max(1);
    let used = |head: &Head| match stage.features.len() {
        0 => head.inputs.len() * spec.memory,
        _ => head.features.len(),
    };
    let (features, most_sums) = (most(&used), most(&sums));
    let rank = most(&|head| head.cores.iter().map(|core| core.left).max().unwrap_or(0));
    let (p, window) = (spec.inputs.len(), spec.inputs.len() * spec.memory);
    let (listed, plain) =
        (stage.features.len(), stage.features.iter().filter(|f| f.nodes.is_empty()).count());
    let (places, signals) = places(stage, window);
    let (z, signals, cells) = (listed.max(1), (signals - window).max(1), (listed - plain).max(1));
    let state_bytes = p.next_multiple_of(4)
        + (2 * cells).next_multiple_of(4)
        + 4 * (4 + 3 * window + signals + 2 * z + features + most_sums + 2 * rank);
    let ranks = |head: &Head| {
        let lefts = head.cores.iter().map(|core| core.left.to_string());
        lefts.chain(["1".into()]).collect::<Vec<_>>().join(", ")
    };
    let inputs = spec.inputs.iter().map(|c| [c.offset, c.gain, c.low, c.high].map(hex).join(", "));
    let outputs = spec.outputs.iter().map(|c| [c.offset, c.scale].map(hex).join(", "));
    let signal = |signal: Signal| match signal {
        Signal::Lag { input, lag } => lag * p + input,
        Signal::Section { section, output } => match stage.sections[section].filter {
            Filter::Average { .. } => places[section],
            Filter::Resonator(_) => places[section] + output,
        },
    };
    let filter = |(k, section): (usize, &Section)| {
        let source = match section.source {
            Source::Input(input) => input,
            Source::Section(earlier) => match stage.sections[earlier].filter {
                Filter::Average { .. } => places[earlier],
                Filter::Resonator(_) => places[earlier] + 2,
            },
        };
        let resonates = usize::from(matches!(section.filter, Filter::Resonator(_)));
        braces(list(&[resonates, source, places[k] - window]))
    };
    let coefficients_of = |section: &Section| match section.filter {
        Filter::Average { alpha } => braces(hex(alpha)),
        Filter::Resonator(r) => {
            let all: Vec<String> = r.state.into_iter().chain([r.gain]).chain(r.all_pass).map(hex).collect();
            braces(all.join(", "))
        }
    };
    let feature =
        |f: &Feature| braces(list(&[signal(f.plus), f.minus.map_or(usize::from(u16::MAX), signal)]));
    let mapped = &stage.features[plain..];
    let shape = |head: &Head| {
        let rows = head.cores[0].q;
        let (outputs, degree) = (&head.outputs, head.cores.len());
        let sizes =
            [head.inputs.len(), outputs.start, outputs.len(), degree, head.features.len(), sums(head), rows];
        braces(list(&sizes))
    };
    let subset = |head: &Head| list(if listed > 0 { &head.features } else { &head.inputs });
    let floats = |values: &[f32]| values.iter().map(|&value| hex(value)).collect::<Vec<_>>().join(", ");
    let mut words = common(name, spec);
    words.extend([
        ("sections", stage.sections.len().to_string()),
        ("listed", listed.to_string()),
        ("plain", plain.to_string()),
        ("state_bytes", state_bytes.to_string()),
        ("signals", signals.to_string()),
        ("z", z.to_string()),
        ("cells", cells.to_string()),
        ("features", features.to_string()),
        ("sums", most_sums.to_string()),
        ("rank", rank.to_string()),
        ("input_table", rows(inputs.map(braces))),
        ("output_table", rows(outputs.map(braces))),
        ("filter_table", rows(stage.sections.iter().enumerate().map(filter))),
        ("coefficient_table", rows(stage.sections.iter().map(coefficients_of))),
        ("signal_table", rows(stage.features.iter().map(feature))),
        ("range_table", rows(stage.features.iter().map(|f| braces(floats(&[f.low, f.high]))))),
        ("count_table", rows(mapped.iter().map(|f| f.nodes.len().to_string()))),
        ("node_table", rows(mapped.iter().map(|f| floats(&f.nodes)))),
        ("linear_table", rows(stage.linear.chunks(listed.max(1)).map(|row| braces(floats(row))))),
        ("shape_table", rows(spec.heads.iter().map(shape))),
        ("weight_table", rows(spec.heads.iter().map(|head| floats(&head.weights)))),
        ("subset_table", rows(spec.heads.iter().map(subset))),
        ("rank_table", rows(spec.heads.iter().map(ranks))),
        ("core_table", rows(spec.heads.iter().flat_map(coefficients))),
    ]);
    files(name, &words, [include_str!("runtime.h"), include_str!("runtime.c")])
}

/// Replacements that all templates have.
pub(super) fn common(name: &str, spec: &ModelSpec) -> Vec<(&'static str, String)> {
    let names = |names: Vec<&str>| names.into_iter().map(c_literal).collect::<Vec<_>>().join(", ");
    let flag = |set: bool| if set { "1" } else { "0" }.to_owned();
    let interval = spec.interval.as_ref();
    vec![
        ("name", name.into()),
        ("NAME", name.to_uppercase()),
        ("inputs", spec.inputs.len().to_string()),
        ("outputs", spec.outputs.len().to_string()),
        ("memory", spec.memory.to_string()),
        ("settled", spec.settled().to_string()),
        ("felt", spec.felt().to_string()),
        ("degree", spec.degree().to_string()),
        ("heads", spec.heads.len().to_string()),
        ("tool", comment(&spec.provenance.tool)),
        ("interval", interval.map_or_else(String::new, |interval| interval_lines(name, interval))),
        ("input_names", names(spec.inputs.iter().map(|channel| channel.name.as_str()).collect())),
        ("output_names", names(spec.outputs.iter().map(|channel| channel.name.as_str()).collect())),
        ("clamp", flag(spec.range != RangePolicy::Pass)),
        ("extend", flag(spec.range == RangePolicy::Extend && !spec.stage.linear.is_empty())),
        ("refuse", flag(spec.non_finite == NonFinitePolicy::Refuse)),
    ]
}

/// The header and the source `name` from their templates.
pub(super) fn files(name: &str, words: &[(&str, String)], [header, source]: [&str; 2]) -> [SourceFile; 2] {
    [("h", header), ("c", source)].map(|(ending, template)| SourceFile {
        name: format!("{name}.{ending}"),
        text: fill(template, words),
    })
}

/// What the header says of the intervals.
fn interval_lines(name: &str, interval: &Interval) -> String {
    let widths: Vec<String> = interval.half_widths().iter().map(|&width| hex(width)).collect();
    format!(
        "\n/* A measured output lies within its half-width of y[j] as often as {prefix}_COVERAGE says:\n \
         * static const float half_widths[{prefix}_OUTPUTS] = {prefix}_HALF_WIDTHS; */\n\
         #define {prefix}_COVERAGE {}f\n#define {prefix}_HALF_WIDTHS {{{}}}\n",
        interval.coverage(),
        widths.join(", "),
        prefix = name.to_uppercase(),
    )
}

/// Where the values of every section begin, behind the window, and where they end: one of an average, three of a resonator.
fn places(stage: &Stage, window: usize) -> (Vec<usize>, usize) {
    let mut next = window;
    let place = |section: &Section| {
        let place = next;
        next += if matches!(section.filter, Filter::Resonator(_)) { 3 } else { 1 };
        place
    };
    let places = stage.sections.iter().map(place).collect();
    (places, next)
}

pub(super) fn braces(row: String) -> String {
    format!("{{{row}}}")
}

/// Replaces every `@word@`.
fn fill(template: &str, words: &[(&str, String)]) -> String {
    let mut text = String::with_capacity(2 * template.len());
    for (k, piece) in template.split('@').enumerate() {
        let value = if k % 2 == 1 { words.iter().find(|(word, _)| *word == piece) } else { None };
        text.push_str(value.map_or(piece, |(_, value)| value));
    }
    text
}

/// One line per item.
pub(super) fn rows(items: impl Iterator<Item = String>) -> String {
    items.map(|item| format!("    {item},\n")).collect()
}

pub(super) fn list(numbers: &[usize]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The coefficients of a head, a line per block and feature: the sums of V_d first, of V_1 last.
fn coefficients(head: &Head) -> Vec<String> {
    let mut sums: Vec<Vec<f32>> = Vec::new();
    for core in head.cores.iter().rev() {
        for (a, b) in (0..core.left).flat_map(|a| (0..core.right).map(move |b| (a, b))) {
            sums.push((0..core.q).map(|i| core.data[(a * core.q + i) * core.right + b]).collect());
        }
    }
    let (blocks, rest) = sums.split_at(sums.len() / BLOCK * BLOCK);
    let line = |values: Vec<f32>| values.into_iter().map(hex).collect::<Vec<_>>().join(", ");
    let mut lines = Vec::new();
    for block in blocks.chunks(BLOCK) {
        lines.extend((0..block[0].len()).map(|i| line(block.iter().map(|sum| sum[i]).collect())));
    }
    lines.extend(rest.iter().map(|sum| line(sum.clone())));
    lines
}

/// A float to the bit, as C99 writes it: `0x1.8p+1f`.
pub(super) fn hex(value: f32) -> String {
    let bits = value.to_bits();
    let sign = if bits >> 31 == 1 { "-" } else { "" };
    let (exponent, fraction) = ((bits >> 23 & 0xff) as i32, (bits & 0x7f_ffff) << 1);
    match (exponent, fraction) {
        (0, 0) => format!("{sign}0.0f"),
        (0, _) => format!("{sign}0x0.{fraction:06x}p-126f"),
        _ => format!("{sign}0x1.{fraction:06x}p{:+}f", exponent - 127),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_to_the_bit() {
        for (value, expected) in [
            (0.0, "0.0f"),
            (-0.0, "-0.0f"),
            (3.0, "0x1.800000p+1f"),
            (-0.1, "-0x1.99999ap-4f"),
            (1e-45, "0x0.000002p-126f"),
            (f32::MAX, "0x1.fffffep+127f"),
        ] {
            assert_eq!(hex(value), expected);
        }
    }

    #[test]
    fn words_are_replaced() {
        assert_eq!(fill("a @b@ c@b@", &[("b", "x".into())]), "a x cx");
    }
}
