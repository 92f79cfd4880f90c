//! What `tune` says: the front as JSON and as a table, and the `fit` command of each point.

use super::shell::quoted;
use super::tune::Args;
use serde::Serialize;
use std::ffi::OsString;
use std::path::PathBuf;
use tha_cli::{count, figure, table, with_flags};
use tha_train::output::MARK;
use tha_train::tune::{Candidate, Settings, Tuning};

/// The contents of front.json. No times: the same search gives the same bytes.
#[derive(Serialize)]
pub(super) struct Found {
    note: String,
    /// Points on a front, by rising flash.
    pub front: Vec<Entry>,
    /// Which of them is recommended, from 0.
    recommended: Option<usize>,
    /// Models that are on no front.
    others: Vec<Entry>,
    complete: bool,
    fits: usize,
    untried: usize,
    failed: Vec<Failure>,
    hint: Option<String>,
}

#[derive(Serialize)]
struct Failure {
    setting: String,
    reason: String,
}

#[derive(Serialize)]
pub(super) struct Entry {
    held_out_nrmse: f64,
    nrmse: f64,
    relative_residual: f64,
    flash_bytes: usize,
    macs_per_sample: usize,
    memory: usize,
    degree: usize,
    max_rank: usize,
    ranks: Vec<usize>,
    heads: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    subset_size: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    combine: Option<&'static str>,
    on_flash_front: bool,
    on_macs_front: bool,
    fit: String,
}

impl Entry {
    fn new(args: &Args, point: &Candidate) -> Self {
        let Candidate { settings, figures, .. } = point;
        Self {
            held_out_nrmse: figures.held_out,
            nrmse: figures.nrmse,
            relative_residual: figures.relative_residual,
            flash_bytes: figures.flash_bytes,
            macs_per_sample: figures.macs_per_sample,
            memory: settings.memory,
            degree: settings.degree,
            max_rank: settings.max_rank,
            ranks: figures.ranks.clone(),
            heads: figures.heads,
            subset_size: settings.heads.as_ref().map(|heads| heads.subset_size),
            combine: settings.heads.as_ref().map(|heads| heads.combine_name()),
            on_flash_front: point.on_flash_front,
            on_macs_front: point.on_macs_front,
            fit: command(args, settings),
        }
    }
}

impl Found {
    pub(super) fn new(args: &Args, tuning: &Tuning) -> Self {
        let front: Vec<&Candidate> = tuning.candidates.iter().filter(|point| point.on_front()).collect();
        Self {
            note: format!("{MARK}train tune`"),
            recommended: front.iter().position(|point| point.recommended),
            front: front.into_iter().map(|point| Entry::new(args, point)).collect(),
            others: tuning
                .candidates
                .iter()
                .filter(|point| !point.on_front())
                .map(|p| Entry::new(args, p))
                .collect(),
            complete: tuning.complete,
            fits: tuning.fits,
            untried: tuning.untried.len(),
            failed: tuning
                .failures
                .iter()
                .map(|(setting, reason)| Failure { setting: setting.to_string(), reason: with_flags(reason) })
                .collect(),
            hint: tuning.hint.as_deref().map(with_flags),
        }
    }
}

/// What is printed as JSON.
#[derive(Serialize)]
pub(super) struct Report<'a> {
    #[serde(flatten)]
    pub found: &'a Found,
    pub seconds: f64,
}

/// The command that fits these settings, for a POSIX shell.
fn command(args: &Args, settings: &Settings) -> String {
    let mut words: Vec<OsString> = vec!["tha-train".into(), "fit".into()];
    let path = |path: &PathBuf| path.clone().into_os_string();
    words.extend(args.data.data.as_ref().map(path));
    let mut option =
        |name: &str, value: Option<OsString>| words.extend(value.into_iter().flat_map(|v| [name.into(), v]));
    option("--u", args.data.u.as_ref().map(path));
    option("--y", args.data.y.as_ref().map(path));
    option("--inputs", (!args.columns.inputs.is_empty()).then(|| args.columns.inputs.join(",").into()));
    option("--outputs", (!args.columns.outputs.is_empty()).then(|| args.columns.outputs.join(",").into()));
    option("--val", args.validation.val.as_ref().map(path));
    option("--val-fraction", args.validation.val_fraction.map(|fraction| fraction.to_string().into()));
    option("--folds", args.validation.folds.map(|folds| folds.to_string().into()));
    option("--seed", (args.seed != 0).then(|| args.seed.to_string().into()));
    if settings.heads.is_some() {
        option("--budget-flash", args.budget_flash.map(|budget| budget.to_string().into()));
        option("--budget-macs", args.budget_macs.map(|budget| budget.to_string().into()));
    }
    option("--memory", Some(settings.memory.to_string().into()));
    option("--degree", Some(settings.degree.to_string().into()));
    option("--max-rank", Some(settings.max_rank.to_string().into()));
    if let Some(heads) = &settings.heads {
        option("--heads", heads.count.map(|count| count.to_string().into()));
        option("--subsets", heads.count.is_none().then(|| "covering".into()));
        option("--subset-size", Some(heads.subset_size.to_string().into()));
        option("--combine", Some(heads.combine_name().into()));
    }
    words.extend(["--out".into(), "model.tha".into()]);
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// The front in words, and what there is to say about the search.
pub(super) fn words(args: &Args, tuning: &Tuning, report: &Report<'_>) -> String {
    let Found { front, recommended, .. } = report.found;
    let head = ", held out, NRMSE, flash bytes, MACs, memory, degree, ranks, heads, combine, front";
    let mut rows = Vec::new();
    for (k, entry) in front.iter().enumerate() {
        let ranks: Vec<String> = entry.ranks.iter().map(ToString::to_string).collect();
        let fronts = match (entry.on_flash_front, entry.on_macs_front) {
            (true, true) => "both",
            (true, false) => "flash",
            _ => "MACs",
        };
        rows.push(vec![
            format!("{}{}", k + 1, if *recommended == Some(k) { " *" } else { "" }),
            figure(entry.held_out_nrmse),
            figure(entry.nrmse),
            entry.flash_bytes.to_string(),
            entry.macs_per_sample.to_string(),
            entry.memory.to_string(),
            entry.degree.to_string(),
            if ranks.is_empty() { "-".into() } else { ranks.join(" ") },
            entry.subset_size.map_or_else(|| "full".into(), |size| format!("{} of {size}", entry.heads)),
            entry.combine.unwrap_or("-").into(),
            fronts.into(),
        ]);
    }
    let mut text = String::new();
    if !front.is_empty() {
        text += &table(head, &rows);
        text += "\n";
        for (k, entry) in front.iter().enumerate() {
            text += &format!("{:>2}  {}\n", k + 1, entry.fit);
        }
        text += "\n";
    }
    if let Some(k) = recommended {
        text += &format!(
            "recommended: {}, the smallest within 5 % of the least error on the held-out samples; {}\n",
            k + 1,
            match args.validation.folds {
                None => "NRMSE is on others, which chose nothing",
                Some(_) =>
                    "with --folds every sample helped to compare settings: judge the model on another file",
            }
        );
    }
    if let Some(hint) = &report.found.hint {
        text += &format!("hint: {hint}\n");
    }
    if let Some(Failure { setting, reason }) = report.found.failed.first() {
        text += &format!(
            "{} could not be fitted, the first: {setting}: {reason}\n",
            count(tuning.failures.len(), "setting")
        );
    }
    if !tuning.complete {
        text += "stopped before the end";
        if let Some(next) = tuning.untried.first() {
            text += &format!("; not tried: {}, the next: {next}", count(tuning.untried.len(), "setting"));
        }
        text += "; the same command goes on from here\n";
    }
    let folder = args.out.display();
    text + &format!(
        "{}, {:.0} s; the front is in {folder}/front.json and {folder}/front.svg",
        count(tuning.fits, "fit"),
        report.seconds
    )
}
