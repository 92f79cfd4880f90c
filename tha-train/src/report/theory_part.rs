//! The part of a report that compares an ensemble with the full model: decomposition, bounds, baking.

use super::chart::{Bar, bars, short};
use super::page::{Page, escape, figure, table};
use super::palette::{BLUE, GREEN, MUTED, ORANGE, PURPLE, Paint, RED, TEAL};
use crate::analysis::step::Decrease;
use crate::analysis::{Analysis, HeadAnalysis};

/// Heads shown.
const HEADS: usize = 40;

pub(super) fn decomposition(page: &mut Page, a: &Analysis) {
    page.section(
        "How far from the full model, and why",
        &format!(
            "The squared difference between ensemble and full model is exactly the squared coverage bias, plus the \
             squared baking adjustment, less twice their alignment (Theorem 1). Numbers are in standardised \
             coordinates over {} samples; both sides agree to {:.0e}.",
            a.samples,
            a.identity_gap.max(1e-16)
        ),
    );
    let (bias, bake, gain) = (a.bias * a.bias, a.bake * a.bake, 2.0 * a.align);
    let bar = |label: &str, from: f64, to: f64, paint, note: String| Bar {
        label: label.into(),
        from,
        to,
        paint,
        note,
    };
    let error = a.theorem1.lhs;
    let steps = [
        bar("coverage bias²", 0.0, bias, ORANGE, short(bias)),
        bar("+ baking adjustment²", bias, bias + bake, BLUE, format!("+ {}", short(bake))),
        bar(
            "− 2 alignment",
            bias + bake,
            bias + bake - gain,
            if gain >= 0.0 { GREEN } else { RED },
            format!("{} {}", if gain >= 0.0 { "−" } else { "+" }, short(gain.abs())),
        ),
        bar("= error²", 0.0, error, PURPLE, format!("= {}", short(error))),
    ];
    let verdict = if !a.convex {
        "The weights are not convex: the truncated ensemble counts some coefficients more than once, so the bias is large \
         and no fair baseline, and the bounds of Theorems 2 and 3 do not apply. The identity holds all the same."
            .into()
    } else if a.baking_helps() {
        format!(
            "Baking pays: the truncated ensemble would be {} from the full model, the trained one is {}.",
            short(a.bias),
            short(a.error)
        )
    } else {
        format!(
            "<span class=\"bad\">Here the truncated ensemble ({}) is no farther from the full model than the trained \
             one ({}).</span>",
            short(a.bias),
            short(a.error)
        )
    };
    let sum = format!(
        "{} + {} {} {} = {}. {verdict}",
        short(bias),
        short(bake),
        if gain >= 0.0 { "−" } else { "+" },
        short(gain.abs()),
        short(error)
    );
    let mut cards = vec![figure("The error, added up (Theorem 1)", &bars(&steps, 540, true), &sum)];
    if a.convex {
        cards.push(bounds(a));
    }
    cards.extend(outputs(a));
    page.cards(&cards);
}

fn bounds(a: &Analysis) -> String {
    let mut listed =
        vec![Bar { label: "error".into(), from: 0.0, to: a.error, paint: PURPLE, note: short(a.error) }];
    let mut add = |label: &str, value: Option<f64>, paint| {
        if let Some(value) = value {
            listed.push(Bar { label: label.into(), from: 0.0, to: value, paint, note: short(value) });
        }
    };
    add("Theorem 3", a.theorem3.rhs.map(|rhs| rhs.max(0.0).sqrt()), TEAL);
    add("Theorem 2", a.theorem2.rhs, MUTED);
    let spectrum = if a.lambda_exact { "λ<sub>max</sub>(G)" } else { "trace bound on λ<sub>max</sub>(G)" };
    let caption = format!(
        "Theorem 2 is √λ<sub>max</sub> ‖T‖ + (Σ w ε²)<sup>½</sup> with {spectrum} = {} and ‖T‖ = {}; Theorem 3 is the root of \
         bias² + Σ w ε² − 2 align.",
        short(a.lambda_max),
        short(a.tail_norm)
    );
    figure("The error and its two bounds", &bars(&listed, 540, false), &caption)
}

fn outputs(a: &Analysis) -> [String; 2] {
    let mut rows =
        vec![["output", "error", "bias (truncated)", "baking adjustment"].map(String::from).to_vec()];
    for o in &a.outputs {
        rows.push(vec![escape(&o.name), short(o.error), short(o.bias), short(o.bake)]);
    }
    let recording = [
        ("full model", a.full_residual),
        ("ensemble", a.ensemble_residual),
        ("truncated ensemble", a.truncated_residual),
    ];
    let bar = |(label, value): (&str, f64)| Bar {
        label: label.into(),
        from: 0.0,
        to: value,
        paint: BLUE,
        note: short(value),
    };
    [
        figure(
            "Distance from the recording",
            &bars(&recording.map(bar), 540, false),
            "‖Y − Ŷ‖ per sample, standardised.",
        ),
        table(
            "Against the full model, physical units",
            &rows,
            "Root-mean-square differences of each output.",
        ),
    ]
}

pub(super) fn baking(page: &mut Page, a: &Analysis) {
    page.section(
        "Baking, head by head",
        "A head is pushed away from the plain truncation of the full model where its inputs correlate with what it omits: \
         C = U<sub>k</sub>ᵀ R<sub>omitted</sub> must not be orthogonal to the tangent space at the feasible projection \
         (Theorem 4). The share of C that a head of its rank can follow is ‖P<sub>T</sub> C‖ / ‖C‖.",
    );
    let share = |h: &HeadAnalysis| {
        if h.correlation_norm > 0.0 { h.tangent_norm / h.correlation_norm } else { 0.0 }
    };
    let per_head = |of: &dyn Fn(&HeadAnalysis) -> (f64, Paint, String)| -> Vec<Bar> {
        let bar = |(k, h)| {
            let (to, paint, note) = of(h);
            Bar { label: format!("head {}", k + 1), from: 0.0, to, paint, note }
        };
        a.heads.iter().take(HEADS).enumerate().map(bar).collect()
    };
    let listed = per_head(&|h| {
        (share(h), if h.incentive { GREEN } else { MUTED }, format!("{:.0} %", 100.0 * share(h)))
    });
    let gaps = per_head(&|h| (h.epsilon, BLUE, short(h.epsilon)));
    page.cards(&[
        figure(
            "Incentive: share of the correlation within reach",
            &bars(&listed, 540, false),
            "Green: an incentive exists.",
        ),
        figure(
            "Truncation gap ε of each head",
            &bars(&gaps, 540, false),
            "How far training moved the head's prediction.",
        ),
    ]);
    let head = [
        "head",
        "inputs",
        "weight",
        "incentive",
        "noise",
        "omitted",
        "projection",
        "1 core: predicted",
        "realised",
        "2 cores: predicted",
        "cut",
        "realised",
    ];
    let mut rows = vec![head.map(String::from).to_vec()];
    let step = |d: Option<Decrease>, field: fn(&Decrease) -> f64| d.map_or("-".into(), |d| short(field(&d)));
    for (k, h) in a.heads.iter().enumerate().take(HEADS) {
        rows.push(vec![
            (k + 1).to_string(),
            escape(&h.inputs.join(" ")),
            short(h.weight),
            if h.incentive { "<span class=\"good\">yes</span>".into() } else { "no".into() },
            short(h.residual.noise),
            short(h.residual.omitted),
            short(h.residual.projection),
            step(h.als, |d| d.predicted),
            step(h.als, |d| d.realised),
            step(h.mals, |d| d.predicted),
            step(h.mals, |d| d.truncation),
            step(h.mals, |d| d.realised),
        ]);
    }
    page.cards(&[table(
        "Residual at the projection (Lemma 1) and the first step from it (Theorem 5)",
        &rows,
        "Norms of noise, omitted dynamics and projection error; decrease of the squared residual by the best single core \
         (ALS) and by the first two cores (MALS), where the cut back to the head's \
         rank takes a part away, or more than all (negative).",
    )]);
}
