//! The part of a report that tells how an automatic fit came to its model: what was tried, what it gave, what was chosen.

use super::chart::{Bar, bars, short};
use super::page::{Page, escape, figure, table};
use super::palette::{BLUE, MUTED, ORANGE};
use super::scatter::{Cloud, Panel, scatter};
use crate::auto::{AutoOutcome, Honest, Tried, front};

/// Settings that are listed.
const LISTED: usize = 12;

pub(super) fn auto(page: &mut Page, outcome: &AutoOutcome, bytes: usize) {
    let with = |honest: &Honest| format!("{} ± {}", short(honest.error), short(honest.standard_error));
    let linear = outcome.linear.as_ref().map_or_else(String::new, |linear| {
        format!(" The best linear model of lags gives {} there.", with(linear))
    });
    let verdict = if outcome.nothing_better {
        " Nothing that was tried is better, so this model is linear."
    } else {
        ""
    };
    page.section(
        "What was tried",
        &format!(
            "{} settings were fitted without each block of the data and judged on it. Expected on new data, from blocks that took \
             no part in the choice: NRMSE {}.{linear}{verdict}",
            outcome.tried.len(),
            with(&outcome.nested),
        ),
    );
    let mut whole: Vec<&Tried> =
        outcome.tried.iter().filter(|tried| tried.setting.inputs.is_none()).collect();
    whole.sort_by(|a, b| a.error.total_cmp(&b.error));
    let panel = |x, size: &dyn Fn(&Tried) -> usize, chosen: usize| {
        let place = |tried: &&Tried| (size(tried) as f64, tried.error, String::new());
        let front = front(&whole.iter().map(|tried| (tried.error, size(tried))).collect::<Vec<_>>());
        let on_front = whole.iter().zip(front).filter(|(_, on_front)| *on_front);
        let mut on_front: Vec<_> = on_front.map(|(tried, _)| place(tried)).collect();
        on_front.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (rest, delivered) = (
            whole.iter().map(place).collect(),
            vec![(chosen as f64, outcome.nested.error, "delivered".to_owned())],
        );
        let clouds = vec![
            Cloud::new("one setting", MUTED, 3, false, rest),
            Cloud::new("front", BLUE, 4, true, on_front),
            Cloud::new("delivered", ORANGE, 6, false, delivered),
        ];
        Panel { x, y: "NRMSE on blocks", clouds }
    };
    let picture = scatter(&[
        panel("flash, bytes", &|tried| tried.flash_bytes, bytes),
        panel("multiply-accumulates per sample", &|tried| tried.macs_per_sample, outcome.model.macs()),
    ]);
    // As wide as the page.
    let wide = |picture: &str| picture.replacen("<svg ", "<svg style=\"max-width:100%\" ", 1);
    let row = |tried: &&Tried| {
        vec![
            escape(&tried.setting.to_string()),
            format!("{} ± {}", short(tried.error), short(tried.standard_error)),
            tried.flash_bytes.to_string(),
            tried.macs_per_sample.to_string(),
        ]
    };
    let mut sizes = vec![Bar::new(&format!("this model, {bytes} bytes"), outcome.nested.error, BLUE)];
    for (budget, error) in outcome.budgets {
        if let Some(error) = error {
            sizes.push(Bar::new(&format!("at most {} KiB", budget / 1024), error, MUTED));
        }
    }
    if let Some(linear) = &outcome.linear {
        sizes.push(Bar::new("linear", linear.error, MUTED));
    }
    page.cards(&[figure(
        "Error against cost",
        &wide(&picture),
        if outcome.heads.len() > 1 { "The model that is delivered has several heads." } else { "" },
    )]);
    page.cards(&[
        table(
            "The best settings, each alone",
            &["setting", "NRMSE on blocks", "flash bytes", "MACs"],
            &whole.iter().take(LISTED).map(row).collect::<Vec<_>>(),
            "± one standard error over the blocks. The least of many such figures flatters: believe the one above.",
        ),
        figure("What a smaller model costs", &bars(&sizes, false), "NRMSE on blocks that chose nothing."),
    ]);
}
