//! The study on paper: `baking.md` and its plots. Every sentence with a number in it is made from the rows.

use crate::study::{CORRELATIONS, DEGREE, ENSEMBLES, INPUTS, MEMORY, RANK, Row, SAMPLES, SEEDS};
use std::fmt::Write;
use tha_train::report::{Lines, SERIES, Series, lines, standalone};

/// Something of a row.
type Value = fn(&Row) -> f64;

/// The mean of something over the rows of one setting.
fn mean(rows: &[Row], correlation: f64, ensemble: (usize, usize), value: impl Fn(&Row) -> f64) -> f64 {
    let chosen: Vec<f64> = rows
        .iter()
        .filter(|row| row.correlation == correlation && (row.heads, row.size) == ensemble)
        .map(value)
        .collect();
    chosen.iter().sum::<f64>() / chosen.len().max(1) as f64
}

fn name((heads, size): (usize, usize)) -> String {
    format!("K = {heads}, k = {size}")
}

/// File names and SVG texts of the plots.
pub fn plots(rows: &[Row]) -> Vec<(String, String)> {
    let over = |ensemble: (usize, usize), value: &dyn Fn(&Row) -> f64| -> Vec<(f64, f64)> {
        CORRELATIONS.map(|c| (c, mean(rows, c, ensemble, value))).to_vec()
    };
    let plot = |y: &str, series: Vec<Series>, log: bool| {
        let series = series.into_iter().map(|s| Series { dots: true, ..s }).collect();
        let plot = Lines::new("correlation between inputs", y, series);
        standalone(&lines(Lines { size: (760, 360), log, ..plot }))
    };
    let reference = ENSEMBLES[1];
    let parts: [(&str, Value); 5] = [
        ("error", |r| r.error),
        ("bias (truncated)", |r| r.bias),
        ("bake", |r| r.bake),
        ("Theorem 3", |r| r.improved),
        ("Theorem 2", |r| r.triangle),
    ];
    let bounds =
        parts.iter().zip(SERIES).map(|((label, value), p)| Series::new(*label, p, over(reference, value)));
    let each = |value: &dyn Fn(&Row) -> f64| -> Vec<Series> {
        let ensembles = ENSEMBLES.into_iter().zip(SERIES);
        ensembles.map(|(e, paint)| Series::new(name(e), paint, over(e, value))).collect()
    };
    vec![
        (
            "baking-bounds.svg".into(),
            plot(&format!("relative to the full model, {}", name(reference)), bounds.collect(), true),
        ),
        ("baking-align.svg".into(), plot("alignment", each(&|r| r.align), false)),
        ("baking-error.svg".into(), plot("error against the full model", each(&|r| r.error), false)),
        ("baking-gain.svg".into(), plot("error / bias", each(&|r| r.error / r.bias), false)),
    ]
}

/// The page.
pub fn markdown(rows: &[Row]) -> String {
    let mut text = format!(
        "# Baking, measured\n\n\
         How far is an average of small heads from the full model, why, and what do the paper's bounds say about it?\n\
         `cargo run --release -p tha-train --example baking` makes this page and its plots anew; the same seeds give the\n\
         same numbers.\n\n\
         Systems: {} random tensor networks of p = {INPUTS} inputs, memory {MEMORY}, degree {DEGREE}, rank {RANK}, with any two inputs equally\n\
         correlated, {SAMPLES} samples, 1 % noise. Heads see k random inputs; weights are convex (`average`). The analysis is on\n\
         the training samples, in standardised coordinates; all numbers are relative to the norm of the full model's\n\
         prediction (alignment: to its square), means over the systems.\n\n",
        SEEDS.len(),
    );
    text += "Symbols: *bias* is the error of the truncated ensemble (the full model's own coefficients, masked), *bake* what\n\
             training changed, *align* how much of it goes against the bias: error² = bias² + bake² − 2 align (Theorem 1).\n\n";
    text += &findings(rows);
    text += "\n![error, bias, bake and both bounds](baking-bounds.svg)\n\n\
             ![alignment against correlation](baking-align.svg)\n\n\
             ![error against correlation](baking-error.svg)\n\n\
             ![error of the trained ensemble as a part of the truncated one's](baking-gain.svg)\n\n## Numbers\n\n\
             | correlation | K | k | error | bias | bake | align | Theorem 3 | Theorem 2 | incentive | test: full | test: ensemble |\n\
             |---|---|---|---|---|---|---|---|---|---|---|---|\n";
    for correlation in CORRELATIONS {
        for ensemble in ENSEMBLES {
            let of = |value: fn(&Row) -> f64| mean(rows, correlation, ensemble, value);
            let _ = writeln!(
                text,
                "| {correlation} | {} | {} | {:.3} | {:.3} | {:.3} | {:+.3} | {:.3} | {:.2} | {:.0} % | {:.3} | {:.3} |",
                ensemble.0,
                ensemble.1,
                of(|r| r.error),
                of(|r| r.bias),
                of(|r| r.bake),
                of(|r| r.align),
                of(|r| r.improved),
                of(|r| r.triangle),
                100.0 * of(|r| r.incentive),
                of(|r| r.test_full),
                of(|r| r.test_ensemble),
            );
        }
    }
    text += "\n*Theorem 3* is the root of the right-hand side. *incentive*: heads for which C is not orthogonal to the tangent\n\
             space (Theorem 4). *test*: relative residual on fresh, noise-free data.\n";
    text
}

/// What the rows say about the paper's claims.
fn findings(rows: &[Row]) -> String {
    let all = rows.len();
    let count = |test: &dyn Fn(&&Row) -> bool| rows.iter().filter(test).count();
    let correlated = count(&|r| r.correlation >= 0.5);
    let aligned = count(&|r| r.correlation >= 0.5 && r.align > 0.0);
    let better = count(&|r| r.correlation >= 0.5 && r.error < r.bias);
    let weak = all - correlated;
    let weak_better = count(&|r| r.correlation < 0.5 && r.error < r.bias);
    let weak_aligned = count(&|r| r.correlation < 0.5 && r.align > 0.0);
    let gap = rows.iter().map(|r| r.identity_gap).fold(0.0, f64::max);
    let held = count(&|r| r.bounds_hold);
    let tightness = |value: fn(&Row) -> f64| {
        let mut ratios: Vec<f64> = rows.iter().map(|r| value(r) / r.error).collect();
        ratios.sort_by(f64::total_cmp);
        (ratios.get(all / 2).copied().unwrap_or(f64::NAN), ratios.last().copied().unwrap_or(f64::NAN))
    };
    let ((middle3, worst3), (middle2, worst2)) = (tightness(|r| r.improved), tightness(|r| r.triangle));
    let mut text = format!(
        "## Findings\n\n\
         - Theorem 1 holds to {gap:.0e} in all {all} runs; Theorems 2 and 3 hold in {held} of {all}.\n\
         - Alignment is positive in {aligned} of {correlated} runs with correlation 0.5 or more, and in {weak_aligned} of \
         {weak} below.\n\
         - The truncated ensemble is worse than the trained one in {better} of {correlated} runs with correlation 0.5 or \
         more, and in {weak_better} of {weak} below.\n\
         - Theorem 3 is {middle3:.2} times the error in the median and {worst3:.1} times at worst; Theorem 2 {middle2:.0} \
         times and {worst2:.0} times.\n"
    );
    let exceptions: Vec<String> = rows
        .iter()
        .filter(|r| r.error >= r.bias || r.align <= 0.0)
        .map(|r| {
            format!(
                "correlation {}, {}, system {}: error {:.3}, bias {:.3}, align {:+.3}",
                r.correlation,
                name((r.heads, r.size)),
                r.seed,
                r.error,
                r.bias,
                r.align
            )
        })
        .collect();
    let (low, high) = rows.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), r| {
        (low.min(r.correlation), high.max(r.correlation))
    });
    let looseness = |correlation: f64| {
        let ratios: Vec<f64> =
            rows.iter().filter(|r| r.correlation == correlation).map(|r| r.triangle / r.error).collect();
        ratios.iter().sum::<f64>() / ratios.len().max(1) as f64
    };
    let _ = writeln!(
        text,
        "- Theorem 2 loosens with correlation, from {:.0} times the error at {low} to {:.0} times at {high}: lambda_max\n  \
         grows while the error shrinks.",
        looseness(low),
        looseness(high)
    );
    let _ = writeln!(
        text,
        "- Every head has an incentive to bake (Theorem 4) in {} of {all} runs. With finitely many samples the correlation\n  \
         C vanishes for no head, not even for independent inputs: the theorem says whether baking pays, the alignment how\n  \
         much.",
        count(&|r| r.incentive == 1.0)
    );
    if exceptions.is_empty() {
        text += "- No run contradicts the paper's claim that training beats truncation.\n";
    } else {
        text += "- Runs that contradict the claim that training beats truncation:\n";
        for exception in exceptions {
            let _ = writeln!(text, "  - {exception}");
        }
    }
    text
}
