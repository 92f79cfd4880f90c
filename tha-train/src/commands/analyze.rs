//! `tha-train analyze`: how far an ensemble is from the full model, and why.

use super::args::{Manner, beside, file_name, read};
use super::error::CliError;
use std::fmt::Write;
use std::path::PathBuf;
use tha_cli::{DataArgs, Status, count, figure, summary, table};
use tha_train::analysis::{self, Bound};
use tha_train::output::{self, Kind};
use tha_train::report;
use tha_train::{Analysis, AnalysisParams, Dataset, Model, Pair, Report};

/// Compare an ensemble with the full model on data: the error and its exact decomposition, bounds, and what drives each
/// head away from plain truncation.
///
/// Numbers are in the full model's standardised coordinates, but for the errors per output, which are in physical units.
/// Exit code 1: a theorem did not hold.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Example:\n  tha-train analyze --full full.tha --ensemble tha.tha train.csv --report r.html"
)]
pub(super) struct Args {
    /// The full model: all inputs in one head.
    #[arg(long, value_name = "FULL.tha")]
    full: PathBuf,
    /// The ensemble.
    #[arg(long, value_name = "THA.tha")]
    ensemble: PathBuf,
    #[command(flatten)]
    data: DataArgs,
    /// Try this many random directions per head: how often is one orthogonal to the tangent space (Proposition 1)?
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    measure_zero: u32,
    /// Seed of those directions.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Write a report with plots; - is standard output, with the summary on standard error.
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    #[command(flatten)]
    manner: Manner,
}

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    args.manner.threads.apply();
    let (full, ensemble) = (Model::read(&args.full)?, Model::read(&args.ensemble)?);
    let speech = beside(args.manner.speech, &args.report)?;
    if let Some(path) = &args.report {
        let read = args.data.files().chain([args.full.as_path(), args.ensemble.as_path()]);
        output::check(path, Kind::Text, args.manner.replace.force, read)?;
    }
    let data = read(&args.data, &full.columns(true))?;
    data.check_memory(full.spec().settled())?;
    let status = Status::new(args.manner.speech, data.warnings());
    let pair = Pair::from_models(&full, &ensemble, &data)?;
    status.now(|| format!("analysing {}", count(pair.heads.len(), "head")));
    let options = AnalysisParams {
        measure_zero: args.measure_zero as usize,
        seed: args.seed,
        ..AnalysisParams::default()
    };
    let analysis = analysis::analyze(&pair, &options);
    if let Some(path) = &args.report {
        status.now(|| "writing the report".into());
        let page = page(args, &full, &ensemble, &data, &analysis)?;
        output::write([(path.as_path(), page.as_bytes())], args.manner.replace.force)?;
    }
    status.done();
    summary(speech, &analysis, || words(&analysis));
    match analysis.failures() {
        failures if failures.is_empty() => Ok(()),
        failures => Err(CliError::Check(failures.join("; "))),
    }
}

fn page(
    args: &Args,
    full: &Model,
    ensemble: &Model,
    data: &Dataset,
    analysis: &Analysis,
) -> Result<String, CliError> {
    // The ensemble may read its channels in another order than the full model.
    let own = read(&args.data, &ensemble.columns(true))?;
    debug_assert_eq!(own.len(), data.len());
    let title = format!("{} against {}", file_name(&args.ensemble), file_name(&args.full));
    let data_name = args.data.data.as_ref().map_or_else(|| "The data".into(), |path| file_name(path));
    Ok(report::html(&Report {
        full: Some((full, full.to_bytes()?.len())),
        analysis: Some(analysis),
        ..Report::new(title, (ensemble, ensemble.to_bytes()?.len()), &own, data_name)
    }))
}

fn words(a: &Analysis) -> String {
    let row = |name: &str, value: f64| vec![name.to_owned(), figure(value)];
    let rows = [
        row("error: ensemble against full model", a.error),
        row("bias: truncated ensemble against full model", a.bias),
        row("bake: ensemble against truncated ensemble", a.bake),
        row("align: baking against bias", a.align),
        row("distance of the full model from the recording", a.full_residual),
        row("distance of the ensemble from the recording", a.ensemble_residual),
        row("tail ||T||", a.tail_norm),
        row(if a.lambda_exact { "lambda_max(G)" } else { "trace bound on lambda_max(G)" }, a.lambda_max),
    ];
    let mut text = table("", &rows);
    let bound = |bound: &Bound| match (bound.rhs, bound.holds) {
        (Some(rhs), Some(holds)) => {
            format!("{} <= {}: {}", figure(bound.lhs), figure(rhs), if holds { "holds" } else { "VIOLATED" })
        }
        _ => "not applicable, the weights are not convex".into(),
    };
    let _ = write!(
        text,
        "\nTheorem 1: {} = {} (to {:.1e})\nTheorem 2: {}\nTheorem 3: {}\n\n",
        figure(a.theorem1.lhs),
        figure(a.theorem1.rhs),
        a.identity_gap,
        bound(&a.theorem2),
        bound(&a.theorem3)
    );
    let head = "head, weight, epsilon, ||C||, ||P_T C||, incentive, omitted, step, inputs";
    let mut rows = Vec::new();
    for (k, h) in a.heads.iter().enumerate() {
        rows.push(vec![
            (k + 1).to_string(),
            figure(h.weight),
            figure(h.epsilon),
            figure(h.correlation_norm),
            figure(h.tangent_norm),
            if h.incentive { "yes" } else { "no" }.into(),
            figure(h.residual.omitted),
            h.als.map_or_else(|| "-".into(), |step| figure(step.realised)),
            h.inputs.join(" "),
        ]);
    }
    text += &table(head, &rows);
    let trials: Vec<_> = a.heads.iter().filter_map(|h| h.measure_zero).collect();
    if !trials.is_empty() {
        let _ = writeln!(
            text,
            "\n{} random directions, {} orthogonal to a tangent space; smallest share {}",
            trials.iter().map(|t| t.directions).sum::<usize>(),
            trials.iter().map(|t| t.orthogonal).sum::<usize>(),
            figure(trials.iter().map(|t| t.smallest).fold(f64::INFINITY, f64::min))
        );
    }
    let baking = if a.baking_helps() { "baking pays" } else { "baking does NOT pay here" };
    let _ = write!(
        text,
        "\n{baking}: bias {} against error {}; standardised coordinates",
        figure(a.bias),
        figure(a.error)
    );
    text
}
