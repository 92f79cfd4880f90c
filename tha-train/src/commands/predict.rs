//! `tha-train predict`: a model's outputs for a data file.

use super::args::{Manner, beside, read};
use super::error::{CliError, go_on};
use super::evaluate::out_of_range_in_words;
use serde_json::json;
use std::path::PathBuf;
use tha_cli::{ModelAndData, Status, interrupt, summary};
use tha_train::Model;
use tha_train::internals::{Interval, write_csv};
use tha_train::output::{self, Kind, Staging};

/// Predict the outputs for recorded inputs.
///
/// Columns are matched by the model's channel names. The result has one line per sample and a column yhat_NAME per
/// output; the first M-1 lines of a record are empty. --interval adds ylow_NAME and yhigh_NAME, between which the measured output
/// lies as often as the coverage of the model says.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  tha-train predict model.tha data/test.csv --out prediction.csv\n  \
                  tha-train predict model.tha data/test.csv --out prediction.csv --interval")]
pub(super) struct Args {
    #[command(flatten)]
    files: ModelAndData,
    /// Where the prediction goes; - is standard output, with the summary on standard error.
    #[arg(long, value_name = "PRED.csv")]
    out: PathBuf,
    /// Write the ends of the intervals of the model too.
    #[arg(long)]
    interval: bool,
    #[command(flatten)]
    manner: Manner,
}

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    args.manner.threads.apply();
    let speech = beside(args.manner.speech, [&args.out])?;
    output::check(&args.out, Kind::Prediction, args.manner.replace.force, args.files.files())?;
    let model = Model::read(&args.files.model)?;
    let interval = model.interval().filter(|_| args.interval);
    if args.interval && interval.is_none() {
        return Err(CliError::Usage(format!(
            "--interval: {} has no intervals; fit it again with at least C / (1 - C) validation samples for the coverage C \
             (`--val`, `--val-fraction`, `--folds`, `--coverage`)",
            args.files.model.display()
        )));
    }
    let data = read(&args.files.data, &model.columns(false))?;
    data.check_memory(model.spec().settled())?;
    let out_of_range = model.out_of_range(&data);
    let warnings = [data.warnings(), out_of_range_in_words(&data.origin, &out_of_range)].concat();
    let status = Status::new(args.manner.speech, warnings);

    let rows = data.scored_rows(model.spec().settled());
    let prediction = model.predict(&data, &rows);
    let column = |j: usize| {
        let mut column = vec![f64::NAN; data.len()];
        rows.iter().zip(prediction.column(j).iter()).for_each(|(&row, &value)| column[row] = value);
        column
    };
    let mut columns: Vec<Vec<f64>> = (0..prediction.ncols()).map(column).collect();
    let outputs = model.output_names();
    let mut names: Vec<String> = outputs.iter().map(|name| format!("yhat_{name}")).collect();
    for (j, &width) in interval.iter().flat_map(|interval| interval.half_widths()).enumerate() {
        for (prefix, width) in [("ylow", -f64::from(width)), ("yhigh", f64::from(width))] {
            names.push(format!("{prefix}_{}", outputs[j]));
            columns.push(columns[j].iter().map(|value| value + width).collect());
        }
    }
    let columns: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();

    let stop_when_asked = || match interrupt::requested() {
        true => Err(std::io::ErrorKind::Interrupted.into()),
        false => Ok(()),
    };
    let mut staging = Staging::among_others(args.manner.replace.force);
    let written = staging.write(&args.out, |to| write_csv(to, &names, &columns, stop_when_asked));
    go_on()?;
    written?;
    staging.commit()?;
    status.done();
    let out = args.out.display().to_string();
    let object = json!({
        "out": out,
        "columns": names,
        "samples": data.len(),
        "predicted": rows.len(),
        "coverage": interval.map(Interval::coverage),
        "out_of_range": out_of_range,
    });
    summary(speech, &object, || format!("{out}: {} of {} samples predicted", rows.len(), data.len()));
    Ok(())
}
