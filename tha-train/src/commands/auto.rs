//! `tha-train fit --auto`: everything by itself, and what it says of it.

use super::args::ColumnArgs;
use super::error::{CliError, go_on};
use super::fit::Args;
use super::fit_report::{Figures, Part, about_the_fit};
use super::quantize::{self, Numbers};
use super::shell::quoted;
use super::watch::Watch;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};
use tha_cli::{DataArgs, Speech, Status, count, figure, interrupt, summary, table, with_flags};
use tha_train::internals::{Delivered, Honest, OutOfRange, Recipe, Setting, Tried};
use tha_train::{AutoOutcome, AutoParams, Dataset, report};

/// Time where nobody says.
pub(super) const MINUTES: f64 = 3.0;

/// Integers are pointed out where they are better than floats in the same flash by this factor.
const WORTH_SAYING: f64 = 0.97;

/// The JSON object of an automatic fit.
#[derive(Serialize)]
pub(super) struct Report<'a> {
    train: Part,
    val: Val,
    /// The best linear model of lags, on the same blocks.
    linear: Option<Linear>,
    nothing_better_than_linear: bool,
    heads: Vec<Head>,
    basis: String,
    maps: Option<usize>,
    gamma: f64,
    #[serde(flatten)]
    figures: Figures<'a>,
    /// What models of so many bytes at most would cost in error.
    budgets: Vec<Budget>,
    /// What integers would cost within a budget that was asked for.
    in_integers: Option<f64>,
    tried: &'a [Tried],
    failed: Vec<Failed>,
    complete: bool,
    /// Gives the same bytes again; not known to those who have not read the data from files.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    out_of_range: Vec<OutOfRange>,
}

#[derive(Serialize)]
struct Val {
    #[serde(flatten)]
    part: Part,
    error: f64,
    standard_error: f64,
    blocks: Vec<f64>,
}

#[derive(Serialize)]
struct Linear {
    nrmse: f64,
    standard_error: f64,
}

#[derive(Serialize)]
struct Budget {
    flash_bytes: usize,
    nrmse: Option<f64>,
}

#[derive(Serialize)]
pub(super) struct Failed {
    pub setting: String,
    pub reason: String,
}

impl Failed {
    pub(super) fn new((setting, reason): &(Setting, String)) -> Self {
        Self { setting: setting.to_string(), reason: with_flags(reason) }
    }
}

#[derive(Serialize)]
struct Head {
    inputs: Vec<String>,
    outputs: Vec<String>,
    basis: String,
    maps: Option<usize>,
    degree: usize,
    ranks: Vec<usize>,
    weight: f64,
    weights: Vec<f64>,
    gamma: f64,
    ridge: f64,
    decay: Option<f64>,
    train_residual: f64,
    val_residual: Option<f64>,
}

impl Head {
    fn new(data: &Dataset, head: &Delivered) -> Self {
        let setting = &head.setting;
        let inputs = setting.inputs.clone().unwrap_or_else(|| (0..data.inputs.len()).collect());
        Self {
            inputs: inputs.iter().map(|&k| data.inputs[k].clone()).collect(),
            outputs: data.outputs[head.outputs.clone()].to_vec(),
            basis: setting.basis.to_string(),
            maps: setting.maps,
            degree: setting.degree,
            ranks: head.ranks.clone(),
            weight: head.weights.iter().sum::<f64>() / head.weights.len().max(1) as f64,
            weights: head.weights.clone(),
            gamma: setting.gamma,
            ridge: head.ridge,
            decay: setting.decay,
            train_residual: head.train_residual,
            val_residual: None,
        }
    }
}

/// The parameters that are asked for.
pub(super) fn params(args: &Args, minutes: Option<f64>) -> AutoParams {
    AutoParams::new()
        .minutes(minutes)
        .trials(args.trials)
        .heads(args.heads)
        .skip(args.skip.clone())
        .single(args.single)
        .budget_flash(args.budget_flash.unwrap_or(AutoParams::BUDGET_FLASH))
        .budget_macs(args.budget_macs)
        .integers((args.numbers == Numbers::I16).then(|| args.counts.params()))
        .coverage(args.coverage)
        .checkpoint(args.checkpoint.clone())
        .seed(args.seed)
        .portable(args.portable)
}

pub(super) fn run(args: &Args, speech: Speech, data: &Dataset, start: Instant) -> Result<(), CliError> {
    let minutes = args.minutes.or(args.trials.is_none().then_some(MINUTES));
    let params = params(args, minutes);
    params.check(data)?;
    let status = Status::new(args.manner.speech, [data.warnings(), data.device_warnings()].concat());
    let mut watch = Watch::new(&status);
    watch.until = minutes.map(|minutes| start + Duration::from_secs_f64(60.0 * minutes));
    interrupt::wait_for_me();
    let outcome = params.fit(data, &watch)?;
    let quantized = outcome.quantized.as_ref();
    quantized.iter().for_each(|made| quantize::warn(made, &status));
    let bytes = quantized.map_or(&outcome.model, |made| &made.model).to_bytes()?;
    args.write(&bytes, || {
        let report = about_the_fit(&args.out, (&outcome.model, bytes.len()), data);
        report::html(&report::Report { auto: Some(&outcome), ..report })
    })?;
    status.done();
    let mut command = vec![command(&args.data, &args.columns, &args.out, args.seed, &outcome.recipe)];
    if args.numbers == Numbers::I16 {
        command.push("--numbers i16".into());
        command.extend(args.counts.flags());
    }
    if args.portable {
        command.push("--portable".into());
    }
    let mut report = Report::new(data, &outcome, bytes.len(), start, Some(command.join(" ")));
    report.figures.numbers = args.numbers.name();
    report.figures.quantized = quantized;
    summary(speech, &report, || words(&args.out, &outcome, &report));
    go_on()
}

/// The command that gives the same bytes again.
pub(super) fn command(
    data: &DataArgs,
    columns: &ColumnArgs,
    out: &Path,
    seed: u64,
    recipe: &Recipe,
) -> String {
    let mut words = vec!["tha-train fit".to_owned()];
    words.extend(data.data.iter().map(quoted));
    for (flag, file) in [("--u", &data.u), ("--y", &data.y)] {
        words.extend(file.iter().map(|file| format!("{flag} {}", quoted(file))));
    }
    for (flag, names) in [("--inputs", &columns.inputs), ("--outputs", &columns.outputs)] {
        if !names.is_empty() {
            words.push(format!("{flag} {}", quoted(names.join(","))));
        }
    }
    words.push(format!("--out {} --seed {seed}", quoted(out)));
    words.extend(recipe.coverage.map(|coverage| format!("--coverage {coverage}")));
    if let Some((memory, degree)) = recipe.plain {
        words.push(format!("--memory {memory} --degree {degree}"));
        return words.join(" ");
    }
    words.push(format!("--auto --trials {} --heads {}", recipe.trials, recipe.heads));
    if !recipe.skip.is_empty() {
        let numbers: Vec<String> = recipe.skip.iter().map(usize::to_string).collect();
        words.push(format!("--skip {}", numbers.join(",")));
    }
    if recipe.single {
        words.push("--single".into());
    }
    for (flag, budget) in [("--budget-flash", recipe.budget_flash), ("--budget-macs", recipe.budget_macs)] {
        words.extend(budget.map(|budget| format!("{flag} {budget}")));
    }
    words.join(" ")
}

impl<'a> Report<'a> {
    pub(super) fn new(
        data: &Dataset,
        outcome: &'a AutoOutcome,
        flash_bytes: usize,
        start: Instant,
        command: Option<String>,
    ) -> Self {
        let Honest { metrics, error, standard_error, blocks, .. } = &outcome.nested;
        let bases: BTreeSet<String> =
            outcome.heads.iter().map(|head| head.setting.basis.to_string()).collect();
        Self {
            train: (&outcome.train).into(),
            val: Val {
                part: metrics.into(),
                error: *error,
                standard_error: *standard_error,
                blocks: blocks.clone(),
            },
            linear: outcome
                .linear
                .as_ref()
                .map(|linear| Linear { nrmse: linear.error, standard_error: linear.standard_error }),
            nothing_better_than_linear: outcome.nothing_better,
            heads: outcome.heads.iter().map(|head| Head::new(data, head)).collect(),
            basis: Vec::from_iter(bases).join(" "),
            maps: outcome.heads.iter().filter_map(|head| head.setting.maps).max(),
            gamma: outcome.heads.first().map_or(1.0, |head| head.setting.gamma),
            figures: Figures::new(&outcome.model, flash_bytes, start),
            budgets: outcome
                .budgets
                .iter()
                .map(|&(flash_bytes, nrmse)| Budget { flash_bytes, nrmse })
                .collect(),
            in_integers: outcome.in_integers,
            tried: &outcome.tried,
            failed: outcome.failures.iter().map(Failed::new).collect(),
            complete: outcome.complete,
            command,
            out_of_range: Vec::new(),
        }
    }
}

/// What to expect, beside what a linear model gives.
pub(super) fn expected(nested: &Honest, linear: Option<&Honest>, nothing_better: bool) -> String {
    let with = |honest: &Honest| format!("{} ± {}", figure(honest.error), figure(honest.standard_error));
    match linear {
        Some(linear) if nothing_better => {
            format!(
                "NRMSE {}: nothing that was tried is better than a linear model, so this is one",
                with(linear)
            )
        }
        Some(linear) => format!("NRMSE {}; a linear model gives {}", with(nested), with(linear)),
        None => format!("NRMSE {}", with(nested)),
    }
}

pub(super) fn words(out: &Path, outcome: &AutoOutcome, report: &Report<'_>) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut best: Vec<&Tried> = outcome.tried.iter().filter(|tried| tried.setting.inputs.is_none()).collect();
    best.sort_by(|a, b| a.error.total_cmp(&b.error));
    for tried in best.into_iter().take(5) {
        rows.push(vec![
            tried.setting.to_string(),
            figure(tried.error),
            tried.flash_bytes.to_string(),
            tried.macs_per_sample.to_string(),
        ]);
    }
    let mut text = table("best single settings, NRMSE on blocks, bytes, MACs", &rows);
    let nrmse = expected(&outcome.nested, outcome.linear.as_ref(), outcome.nothing_better);
    text += &format!("expected on new data, from blocks that chose nothing: {nrmse}\n");
    let cost = |&(bytes, error): &(usize, Option<f64>)| match error {
        Some(error) => format!("{} KiB {}", bytes / 1024, figure(error)),
        None => format!("{} KiB nothing", bytes / 1024),
    };
    let costs: Vec<String> = outcome.budgets.iter().map(cost).collect();
    text += &format!("with a smaller --budget-flash: {}\n", costs.join(", "));
    if let Some(error) = outcome.in_integers.filter(|error| *error < WORTH_SAYING * outcome.nested.error) {
        text += &format!("within the same bytes --numbers i16 would give: {}\n", figure(error));
    }
    if !outcome.complete {
        text += "the search was cut short; more --minutes may give more\n";
    }
    text +=
        &report.command.as_ref().map_or_else(String::new, |command| format!("the same again: {command}\n"));
    text + &report.figures.words(out, &count(outcome.model.spec().heads.len(), "head"))
}
