//! `tha-train fit`: from a data file to a model file.

use super::args::{ColumnArgs, Manner, ValidationArgs, beside, choice, read};
use super::error::{CliError, go_on};
use super::evaluate::out_of_range_in_words;
use super::fit_report::{self, Report, in_flags, words};
use super::quantize::{self, Counts, Numbers};
use super::subsets::strategy;
use super::watch::Watch;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Instant;
use tha_cli::{DataArgs, Status, summary};
use tha_core::RangePolicy;
use tha_train::output::{self, Kind, OutputError};
use tha_train::{Basis, Combine, Dataset, Decay, FitParams, Ridge, Solver, Strategy};

/// Fit a model to recorded inputs and outputs.
///
/// Rank, ridge, gamma, and the inputs and weights of heads are chosen on blocks that are held out in turn: whole records where
/// there are several, else five parts. Validation is on other samples, which chose nothing; then all of the data are fitted.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    pub data: DataArgs,
    #[command(flatten)]
    pub columns: ColumnArgs,
    /// Where the model goes; - is standard output, with the summary on standard error.
    #[arg(long, value_name = "MODEL.tha")]
    pub out: PathBuf,
    /// Samples of each input that an output depends on; the same as --basis lags:M.
    #[arg(long, value_name = "M", default_value_t = FitParams::MEMORY)]
    memory: usize,
    /// What the network sees of each input: lags:M, its last samples; levels:T, averages with time constants 1, 2, 4, ..., T samples
    /// beside the input; differences:T, the differences of neighbours among these; kautz:RE,IM,N, resonators with that pole;
    /// poles:RE,IM,RE,IM,..., the input, a resonator for each complex pole and an average for each real one.
    #[arg(long, value_name = "BASIS", conflicts_with = "memory")]
    basis: Option<Basis>,
    /// Piecewise-linear maps of all of these, of so many pieces between quantiles of the data, or none.
    #[arg(long, value_name = "none|J", default_value = "none", value_parser = or::<usize>("none", "a number of pieces"))]
    maps: Or<usize>,
    /// Degree of the polynomial.
    #[arg(long, value_name = "D", default_value_t = FitParams::DEGREE)]
    pub degree: usize,
    /// Largest tensor-train rank.
    #[arg(long, value_name = "R", default_value_t = FitParams::MAX_RANK)]
    max_rank: usize,
    /// Relative tolerance of rank decisions.
    #[arg(long, alias = "tolerance", value_name = "E", default_value = "1e-6")]
    tol: f64,
    /// ladder: choice, descent and search as docs/solver.md has them; mvmals, als: the published algorithms; direct: least
    /// squares over all monomials, cut down to --max-rank, which noisy data want larger (8 or more) than the ladder does.
    #[arg(long, default_value = "ladder", value_parser = choice(&FitParams::SOLVERS))]
    solver: Solver,
    /// Ridge parameter, or 'auto' to choose it on the held-out samples.
    #[arg(long, value_name = "V|auto", default_value = "auto", value_parser = or::<f64>("auto", "a number"))]
    ridge: Or<f64>,
    /// Weight of products against linear terms: mean square of all features together, that of the constant being one; 'auto' tries some.
    #[arg(long, value_name = "V|auto", default_value = "auto", value_parser = or::<f64>("auto", "a number"))]
    gamma: Or<f64>,
    /// Prior over the lags, for long memories: kernels are smooth and fade with this time constant, in samples. 'auto' tries
    /// some on the held-out samples (ladder, --memory 8 or more); 'none' leaves every lag for itself.
    #[arg(long, value_name = "TAU|auto|none", default_value = "auto", value_parser = decay)]
    decay: Decay,
    /// Starts that are raced against each other [default: 12 for the full model, 1 for each head of an ensemble].
    #[arg(long, value_name = "N")]
    restarts: Option<usize>,
    #[command(flatten)]
    pub validation: ValidationArgs,
    /// Choose everything: filters, maps, degree, rank, ridge, and heads with their inputs and weights. Options of the model do not go
    /// with it.
    #[arg(long, conflicts_with_all = [
        "memory", "basis", "maps", "degree", "max_rank", "tol", "solver", "ridge", "gamma", "decay", "restarts", "val", "val_fraction",
        "folds", "subset_size", "subsets", "combine", "no_refit", "range",
    ])]
    pub auto: bool,
    /// With --auto, time for everything: best effort [default: 3, unless there is --trials].
    #[arg(long, value_name = "T", requires = "auto", conflicts_with = "trials")]
    pub minutes: Option<f64>,
    /// With --auto, settings to try on all inputs, at most: the same model every time.
    #[arg(long, value_name = "N", requires = "auto")]
    pub trials: Option<usize>,
    /// With --auto --trials, numbers of settings to leave out: those for which a search with --minutes had not enough time, as
    /// its `command` names them.
    #[arg(long, value_name = "N,..", requires = "trials", value_delimiter = ',', hide_short_help = true)]
    pub skip: Vec<usize>,
    /// With --auto, deliver one head: smaller, and a little worse.
    #[arg(long, requires = "auto")]
    pub single: bool,
    /// Train an ensemble of this many heads, each on a subset of the inputs (Tensor Head Averaging). Without it, one
    /// head on all inputs: the full model. With --auto, heads on subsets that are tried [default: 12].
    #[arg(long, value_name = "K")]
    pub heads: Option<usize>,
    /// Inputs of each head; with --subsets per-output, at most [default: 4].
    #[arg(long, value_name = "S")]
    subset_size: Option<usize>,
    /// random; weighted: by relevance; covering: every product of inputs inside some head, which also finds K; adaptive:
    /// where the residual depends most; per-output: one head per output, on the inputs that serve it best, added one by
    /// one on the held-out samples; file:PATH: a JSON list of lists of names or indices (from 0) [default: random].
    #[arg(long, value_name = "STRATEGY")]
    pub subsets: Option<String>,
    /// average: convex weights; stack: free weights; additive: each head fitted to what the others leave
    /// [default: average].
    #[arg(long, value_parser = choice(&FitParams::COMBINATIONS))]
    combine: Option<Combine>,
    /// Keep every finished head in this folder, and go on from what is there.
    #[arg(long, value_name = "DIR")]
    pub checkpoint: Option<PathBuf>,
    /// The best ensemble whose model file has at most so many bytes.
    #[arg(long, value_name = "BYTES")]
    pub budget_flash: Option<usize>,
    /// The best ensemble with at most so many multiply-accumulates per sample.
    #[arg(long, value_name = "N")]
    pub budget_macs: Option<usize>,
    /// Keep the model that was chosen, without a refit on all of the data.
    #[arg(long, conflicts_with = "folds")]
    no_refit: bool,
    /// Outside the training range: pass, polynomials go on; clamp, what the network sees stays in its range; extend, the same, and
    /// a linear part goes on [default: clamp with --basis or --maps, but for lags pass].
    #[arg(long, value_parser = choice(&FitParams::RANGES))]
    range: Option<RangePolicy>,
    /// The part of new measured outputs that the intervals of `predict --interval` and of the device are to hold; their half-widths are
    /// quantiles of the errors on validation samples and go into the model.
    #[arg(long, value_name = "C", default_value_t = FitParams::COVERAGE)]
    pub coverage: f64,
    /// Numbers of the model file: f32, or i16 for processors without floating point or half the flash, as `quantize` makes them. With
    /// --auto the budget of flash is that of the file of integers.
    #[arg(long, value_parser = choice(&NUMBERS), default_value = "f32")]
    pub numbers: Numbers,
    #[command(flatten)]
    pub counts: Counts,
    /// Seed of everything.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// The same bytes on every processor, by kernels that do not depend on it; without this, other ones may differ in the last bits.
    #[arg(long)]
    pub portable: bool,
    /// Write a report with plots; - is standard output.
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    #[command(flatten)]
    pub manner: Manner,
}

const EXAMPLES: &str = "\
Examples:
  tha-train fit plant.csv --out model.tha --auto --minutes 3
  tha-train fit data/train.csv --out model.tha --memory 4 --degree 3
  tha-train fit plant.csv --inputs 'valve*,T_in' --outputs T_out --out plant.tha
  tha-train fit data/train.csv --out model.tha --folds 5 --range clamp
  tha-train fit array.csv --out array.tha --heads 24 --combine additive
  tha-train fit --u u.npy --y y.npy --out model.tha --json";

const NUMBERS: [(&str, Numbers); 2] = [("f32", Numbers::F32), ("i16", Numbers::I16)];

/// A number, or nothing where a word stands in its place.
#[derive(Clone, Copy, Debug)]
struct Or<T>(Option<T>);

fn or<T: FromStr>(
    word: &'static str,
    number: &'static str,
) -> impl Fn(&str) -> Result<Or<T>, String> + Clone {
    move |text| match text.parse() {
        _ if text == word => Ok(Or(None)),
        Ok(value) => Ok(Or(Some(value))),
        Err(_) => Err(format!("expected '{word}' or {number}")),
    }
}

fn decay(text: &str) -> Result<Decay, String> {
    match text {
        "auto" => Ok(Decay::Auto),
        "none" => Ok(Decay::None),
        _ => text
            .parse()
            .map(Decay::Fixed)
            .map_err(|_| "expected 'auto', 'none' or a number of samples".into()),
    }
}

impl Args {
    /// What is asked for, but for the inputs of the heads, whose names the data have.
    pub fn params(&self) -> FitParams<'_> {
        FitParams::new()
            .basis(self.basis.unwrap_or(Basis::Lags(self.memory)))
            .maps(self.maps.0)
            .degree(self.degree)
            .max_rank(self.max_rank)
            .tolerance(self.tol)
            .solver(self.solver)
            .ridge(self.ridge.0.map_or(Ridge::Auto, Ridge::Fixed))
            .decay(self.decay)
            .gamma(self.gamma.0)
            .restarts(self.restarts)
            .validation(self.validation.meant(None))
            .refit(!self.no_refit)
            .range(self.range)
            .coverage(self.coverage)
            .seed(self.seed)
            .heads(self.heads)
            .subset_size(self.subset_size)
            .subsets(self.subsets.as_ref().map(|_| Strategy::default()))
            .combine(self.combine)
            .checkpoint(self.checkpoint.clone())
            .budget_flash(self.budget_flash)
            .budget_macs(self.budget_macs)
            .portable(self.portable)
    }

    /// Writes the model, and the page where a report is asked for.
    pub fn write(&self, model: &[u8], page: impl FnOnce() -> String) -> Result<(), OutputError> {
        let page = self.report.as_ref().map(|path| (path, page()));
        let page = page.iter().map(|(path, page)| (path.as_path(), page.as_bytes()));
        output::write([(self.out.as_path(), model)].into_iter().chain(page), self.manner.replace.force)
    }
}

/// How the inputs of the heads are chosen, by the names that the data have.
pub(super) fn strategy_of(args: &Args, data: &Dataset) -> Result<Option<Strategy>, CliError> {
    args.subsets.as_ref().map(|text| strategy(text, &data.inputs)).transpose()
}

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let start = Instant::now();
    args.manner.threads.apply();
    if !args.auto {
        args.params().check_values()?;
    }
    let speech = beside(args.manner.speech, [&args.out].into_iter().chain(&args.report))?;
    for (path, kind) in [(Some(&args.out), Kind::Model), (args.report.as_ref(), Kind::Text)] {
        let read = args.data.files().chain(args.validation.val.as_deref());
        path.map_or(Ok(()), |path| output::check(path, kind, args.manner.replace.force, read))?;
    }
    if args.report.as_ref().is_some_and(|report| output::same(report, &args.out)) {
        let name = args.out.display();
        return Err(CliError::Usage(format!("--report: {name} is where the model goes; give another name")));
    }
    let data = read(&args.data, &args.columns.columns())?;
    if args.auto {
        return super::auto::run(args, speech, &data, start);
    }
    let validation = args.validation.read(&data)?;
    let params = args
        .params()
        .subsets(strategy_of(args, &data)?)
        .validation(args.validation.meant(validation.as_ref()));
    let params = params.check(&data)?;

    let status = Status::new(args.manner.speech, args.validation.warnings(&data, validation.as_ref()));
    let watch = Watch::new(&status);
    let mut outcome = params.fit(&data, &watch)?;
    outcome.ensemble = outcome.ensemble.map(in_flags);
    let out_of_range = validation.map_or_else(Vec::new, |data| {
        let found = outcome.model.out_of_range(&data);
        out_of_range_in_words(&data.origin, &found).into_iter().for_each(|text| status.warning(text));
        found
    });
    let (bytes, quantized) = quantize::bytes(args, &outcome.model, &data, &status)?;
    go_on()?;
    args.write(&bytes, || fit_report::page(&args.out, &data, &outcome, bytes.len(), &watch.course))?;
    status.done();
    let mut report = Report::new(&args.params(), &outcome, bytes.len(), start, args.heads, out_of_range);
    report.figures.numbers = args.numbers.name();
    report.figures.quantized = quantized.as_ref();
    summary(speech, &report, || words(args, &outcome, &report));
    Ok(())
}
