//! `tha-firmware-sim watch`: a recording as it runs.

use super::{Answer, read};
use crate::replay::ReplayError;
use crate::watch::{Playback, screen};
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};
use std::time::Duration;
use tha_cli::{ModelAndData, Speech, print, summary};

/// Watch a recording run: measured and predicted curves, flags, shares of the heads, running error.
///
/// Without a terminal, and with --plain, one line of comma-separated values per sample.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  tha-firmware-sim watch model.tha test.csv --speed 200")]
pub(super) struct Args {
    #[command(flatten)]
    files: ModelAndData,
    /// Samples per second; + and - change it. In plain lines: as fast as possible unless given.
    #[arg(long, value_name = "RATE")]
    speed: Option<f64>,
    /// Plain lines in place of the screen.
    #[arg(long)]
    plain: bool,
    #[command(flatten)]
    speech: Speech,
}

pub(super) fn run(args: &Args) -> Answer {
    if let Some(speed) = args.speed.filter(|speed| !(*speed > 0.0 && speed.is_finite())) {
        return Err(format!("--speed: {speed} is out of range; expected samples per second above 0").into());
    }
    // A recording without outputs can be watched too, if only the prediction.
    let (file, data) = read(&args.files, true).or_else(|_| read(&args.files, false))?;
    let mut playback = Playback::new(&file, &data).map_err(ReplayError::from)?;
    if args.speech.json {
        while playback.step() {}
        summary(args.speech, &object(&playback), String::new);
    } else if args.plain || !std::io::stdout().is_terminal() {
        print(|out| plain(&mut playback, args.speed, out))?;
    } else {
        screen::show(&mut playback, args.speed.unwrap_or(50.0))
            .map_err(|error| format!("the terminal cannot be used: {error}; try --plain"))?;
    }
    Ok(true)
}

fn plain(playback: &mut Playback<'_>, speed: Option<f64>, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "{}", playback.plain_head())?;
    while playback.step() {
        writeln!(out, "{}", playback.plain_line())?;
        if let Some(speed) = speed {
            out.flush()?;
            std::thread::sleep(Duration::from_secs_f64(1.0 / speed));
        }
    }
    Ok(())
}

fn object(playback: &Playback<'_>) -> Value {
    let outputs: Vec<Value> = playback
        .output_names()
        .iter()
        .zip(&playback.errors)
        .map(|(name, error)| json!({ "name": name, "rmse": error.rmse(), "nrmse": error.nrmse() }))
        .collect();
    json!({ "samples": playback.next, "flagged": playback.flagged, "outputs": outputs })
}
