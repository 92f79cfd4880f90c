//! The part of a report that compares an ensemble with the full model: decomposition, bounds, baking.

use super::chart::{Bar, bars, short};
use super::page::{Page, escape, figure, table};
use super::palette::{BLUE, GREEN, MUTED, ORANGE, PURPLE, Paint, RED, TEAL};
use crate::analysis::{Analysis, HeadAnalysis, OutputAnalysis};

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
    let error = a.theorem1.lhs;
    let (sign, paint) = if gain >= 0.0 { ("−", GREEN) } else { ("+", RED) };
    let step = |label: &str, from: f64, to: f64, paint, sign: &str| Bar {
        from,
        note: format!("{sign} {}", short((to - from).abs())),
        ..Bar::new(label, to, paint)
    };
    let steps = [
        Bar::new("coverage bias²", bias, ORANGE),
        step("+ baking adjustment²", bias, bias + bake, BLUE, "+"),
        step("− 2 alignment", bias + bake, bias + bake - gain, paint, sign),
        step("= error²", 0.0, error, PURPLE, "="),
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
        "{} + {} {sign} {} = {}. {verdict}",
        short(bias),
        short(bake),
        short(gain.abs()),
        short(error)
    );
    let mut cards = vec![figure("The error, added up (Theorem 1)", &bars(&steps, true), &sum)];
    if a.convex {
        cards.push(bounds(a));
    }
    cards.extend(outputs(a));
    page.cards(&cards);
}

fn bounds(a: &Analysis) -> String {
    let values = [
        ("error", Some(a.error), PURPLE),
        ("Theorem 3", a.theorem3.rhs.map(|rhs| rhs.max(0.0).sqrt()), TEAL),
        ("Theorem 2", a.theorem2.rhs, MUTED),
    ];
    let bar = |(label, value, paint): (&str, Option<f64>, Paint)| Some(Bar::new(label, value?, paint));
    let listed: Vec<Bar> = values.into_iter().filter_map(bar).collect();
    let spectrum = if a.lambda_exact { "λ<sub>max</sub>(G)" } else { "trace bound on λ<sub>max</sub>(G)" };
    let caption = format!(
        "Theorem 2 is √λ<sub>max</sub> ‖T‖ + (Σ w ε²)<sup>½</sup> with {spectrum} = {} and ‖T‖ = {}; Theorem 3 is the root of \
         bias² + Σ w ε² − 2 align.",
        short(a.lambda_max),
        short(a.tail_norm)
    );
    figure("The error and its two bounds", &bars(&listed, false), &caption)
}

fn outputs(a: &Analysis) -> [String; 2] {
    let row = |o: &OutputAnalysis| vec![escape(&o.name), short(o.error), short(o.bias), short(o.bake)];
    let recording = [
        ("full model", a.full_residual),
        ("ensemble", a.ensemble_residual),
        ("truncated ensemble", a.truncated_residual),
    ];
    let bar = |(label, value)| Bar::new(label, value, BLUE);
    [
        figure(
            "Distance from the recording",
            &bars(&recording.map(bar), false),
            "‖Y − Ŷ‖ per sample, standardised.",
        ),
        table(
            "Against the full model, physical units",
            &["output", "error", "bias (truncated)", "baking adjustment"],
            &a.outputs.iter().map(row).collect::<Vec<_>>(),
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
    let heads = || a.heads.iter().take(HEADS).enumerate().map(|(k, h)| (format!("head {}", k + 1), h));
    let incentive = |(name, h): (String, &HeadAnalysis)| Bar {
        note: format!("{:.0} %", 100.0 * share(h)),
        ..Bar::new(&name, share(h), if h.incentive { GREEN } else { MUTED })
    };
    let listed: Vec<Bar> = heads().map(incentive).collect();
    let gaps: Vec<Bar> = heads().map(|(name, h)| Bar::new(&name, h.epsilon, BLUE)).collect();
    page.cards(&[
        figure(
            "Incentive: share of the correlation within reach",
            &bars(&listed, false),
            "Green: an incentive exists.",
        ),
        figure(
            "Truncation gap ε of each head",
            &bars(&gaps, false),
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
    let row = |(k, h): (usize, &HeadAnalysis)| {
        let incentive = if h.incentive { "<span class=\"good\">yes</span>" } else { "no" };
        let (als, mals) = (h.als.as_ref(), h.mals.as_ref());
        let figures = [
            Some(h.residual.noise),
            Some(h.residual.omitted),
            Some(h.residual.projection),
            als.map(|d| d.predicted),
            als.map(|d| d.realised),
            mals.map(|d| d.predicted),
            mals.map(|d| d.truncation),
            mals.map(|d| d.realised),
        ];
        let first = [(k + 1).to_string(), escape(&h.inputs.join(" ")), short(h.weight), incentive.into()];
        [first.to_vec(), figures.map(|figure| figure.map_or("-".into(), short)).to_vec()].concat()
    };
    page.cards(&[table(
        "Residual at the projection (Lemma 1) and the first step from it (Theorem 5)",
        &head,
        &a.heads.iter().take(HEADS).enumerate().map(row).collect::<Vec<_>>(),
        "Norms of noise, omitted dynamics and projection error; decrease of the squared residual by the best single core \
         (ALS) and by the first two cores (MALS), where the cut back to the head's \
         rank takes a part away, or more than all (negative).",
    )]);
}
