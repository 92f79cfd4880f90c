//! `tha-train quantize`: a model in 16-bit integers.

use super::args::{Manner, beside, read};
use super::error::CliError;
use super::fit;
use super::shell::quoted;
use std::path::PathBuf;
use tha_cli::{ModelAndData, Status, figure, summary, table};
use tha_train::internals::OutputError;
use tha_train::output::{self, Kind};
use tha_train::{Dataset, Model, QuantizeParams, Quantized, quantize};

/// Make 16-bit integers of a model, for processors without floating point.
///
/// The data should be those the model was fitted to: they tell how large everything inside it becomes. What the counts of a converter
/// mean is taken from the data where an input consists of whole numbers (then these are the counts), and else chosen so that they reach half
/// the training range beyond it; --counts says it where the device has a converter of its own.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  tha-train quantize model.tha data/train.csv --out model16.tha\n  \
                  tha-train quantize model.tha train.csv --out m16.tha --counts p=-1.25:0.000305")]
pub(super) struct Args {
    #[command(flatten)]
    files: ModelAndData,
    /// Where the model of integers goes.
    #[arg(long, value_name = "MODEL16.tha")]
    out: PathBuf,
    #[command(flatten)]
    counts: Counts,
    #[command(flatten)]
    manner: Manner,
}

/// What the counts of a converter mean.
#[derive(clap::Args, Debug, Default)]
pub(super) struct Counts {
    /// The physical value at 0 counts and that of one count, by input; repeat for several.
    #[arg(long, value_name = "INPUT=ZERO:STEP", value_parser = meaning)]
    counts: Vec<(String, (f64, f64))>,
}

/// The numbers of a model file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Numbers {
    F32,
    I16,
}

impl Numbers {
    pub(super) fn name(self) -> &'static str {
        if self == Self::F32 { "f32" } else { "i16" }
    }
}

/// The file of a model that has been fitted, and what making integers cost where they are asked for.
pub(super) fn bytes(
    args: &fit::Args,
    model: &Model,
    data: &Dataset,
    status: &Status,
) -> Result<(Vec<u8>, Option<Quantized>), CliError> {
    if args.numbers == Numbers::F32 {
        return Ok((model.to_bytes()?, None));
    }
    let made = quantize(model, data, &args.counts.params())?;
    warn(&made, status);
    Ok((made.model.to_bytes()?, Some(made)))
}

/// Warns where integers cost much.
pub(super) fn warn(made: &Quantized, status: &Status) {
    if let Some(head) = made.blame {
        status.warning(blame(head));
    }
}

/// Which head loses most, and what to do.
fn blame(head: usize) -> String {
    format!(
        "integers let the error grow by more than 5 %, most of all through head {}; keep f32, or fit with a lower --degree or a larger --ridge",
        head + 1
    )
}

impl Counts {
    /// The same as flags.
    pub(super) fn flags(&self) -> impl Iterator<Item = String> {
        self.counts
            .iter()
            .map(|(name, (zero, step))| format!("--counts {}", quoted(format!("{name}={zero}:{step}"))))
    }

    pub(super) fn params(&self) -> QuantizeParams {
        QuantizeParams { counts: self.counts.iter().cloned().collect() }
    }
}

fn meaning(text: &str) -> Result<(String, (f64, f64)), String> {
    let expected = || "expected INPUT=ZERO:STEP with a positive STEP, as pressure=-1.25:0.0003".to_owned();
    let (name, numbers) = text.rsplit_once('=').ok_or_else(expected)?;
    let (zero, step) = numbers.split_once(':').ok_or_else(expected)?;
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|value| (*value as f32).is_finite());
    let (zero, step) = number(zero).zip(number(step)).ok_or_else(expected)?;
    let usable = step > 0.0 && ((1.0 / step) as f32).is_finite() && (1.0 / step) as f32 > 0.0;
    if usable { Ok((name.to_owned(), (zero, step))) } else { Err(expected()) }
}

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    args.manner.threads.apply();
    let speech = beside(args.manner.speech, [&args.out])?;
    output::check(&args.out, Kind::Model, args.manner.replace.force, args.files.files())?;
    let model = Model::read(&args.files.model)?;
    let data = read(&args.files.data, &model.columns(true))?;
    data.check_memory(model.spec().settled())?;
    let status = Status::new(args.manner.speech, data.warnings());
    let made = quantize(&model, &data, &args.counts.params())?;
    output::write([(args.out.as_path(), &made.model.to_bytes()?[..])], args.manner.replace.force)?;
    status.done();
    summary(speech, &made, || format!("{}: {}", args.out.display(), words(&made)));
    Ok(())
}

/// What the integers cost, and what to do where that is much.
pub(super) fn words(made: &Quantized) -> String {
    let share = 100.0 * made.flash_after as f64 / made.flash_before as f64;
    let mut text = format!(
        "{} bytes of 16-bit integers, {share:.0} % of the {} before; features of {} bits\n\n",
        made.flash_after, made.flash_before, made.bits
    );
    let row = |(j, output): (usize, &OutputError)| {
        let figures =
            [made.nrmse_before[j], made.nrmse_after[j], output.rms_error, output.max_abs_error, output.bound];
        std::iter::once(output.name.clone()).chain(figures.map(figure)).collect()
    };
    let rows: Vec<Vec<String>> = made.outputs.iter().enumerate().map(row).collect();
    text += &table("output, NRMSE before, after, RMS difference, largest, its bound", &rows);
    if made.saturated > 0 {
        text +=
            &format!("\na vector was limited to 16 bits in {} samples: they are flagged\n", made.saturated);
    }
    if let Some(head) = made.blame {
        text += &format!("\n{}\n", blame(head));
    }
    text
}
