//! The full model: one head on all inputs.

use super::judged::{Choice, ChosenHead, Procedure};
use super::{FitError, ValidFitParams};
use crate::checkpoint::{self, Checkpoint};
use crate::data::{Dataset, Split};
use crate::metrics::Metrics;
use crate::network::{Features, Network};
use crate::progress::Progress;
use crate::solve::{self, Problem};
use crate::stage::Staged;
use nalgebra::DMatrix;
use std::time::Instant;

/// How the full model is made.
pub(super) struct Full<'a> {
    pub data: &'a Dataset,
    pub options: &'a ValidFitParams<'a>,
    pub checkpoint: Option<&'a Checkpoint<'a>>,
    pub progress: &'a dyn Progress,
}

impl Procedure for Full<'_> {
    type Extra = ();

    fn choose(&self, rows: Vec<usize>) -> Result<(Choice, ()), FitError> {
        let start = Instant::now();
        let Self { data, options, checkpoint, progress } = *self;
        let stage = options.stage(data, &rows)?;
        let blocks = Split::blocks(data, &rows);
        let samples = stage.clone().rows(data, rows);
        let problem = Problem { x: &samples, y: &samples.y };
        let chosen = checkpoint::keep(checkpoint, "choice", &samples.rows, || {
            Ok(solve::choose(&problem, &blocks, &options.solve, progress)?)
        })?;
        let fit = checkpoint::keep(checkpoint, "fit", &(&chosen, &samples.rows), || {
            Ok(solve::fit(&problem, &chosen.settings, chosen.start(), &options.solve, progress)?)
        })?;
        let held_out = figures(data, &samples, held_out(&chosen.networks, &blocks, &samples));
        let inputs = (0..data.inputs.len()).collect();
        let outputs = 0..data.outputs.len();
        let seconds = start.elapsed().as_secs_f64();
        let head = ChosenHead { number: 0, inputs, weight: 1.0, fit, seconds, outputs };
        Ok((Choice { stage, rows: samples.rows, heads: vec![head], held_out, joint: false }, ()))
    }

    /// A network that fits all but exactly is found; settings for noisy data profit from more blocks.
    fn chooses_again(&self, choice: &Choice) -> bool {
        !choice.heads[0].fit.settings.exact
    }

    fn refit(&self, choice: &Choice, (): &(), rows: Vec<usize>, _: &str) -> Result<Choice, FitError> {
        let start = Instant::now();
        let (mut choice, samples) = choice.over(rows, self.data, self.options)?;
        let problem = Problem { x: &samples, y: &samples.y };
        let head = &mut choice.heads[0];
        let (settings, from) = (&head.fit.settings, Some(&head.fit.network));
        head.fit = checkpoint::keep(self.checkpoint, "refit", &(&head.fit, &samples.rows), || {
            Ok(solve::fit(&problem, settings, from, &self.options.solve, self.progress)?)
        })?;
        head.seconds += start.elapsed().as_secs_f64();
        Ok(choice)
    }

    fn note(&self, choice: &Choice, validation: &Metrics) -> String {
        format!("{} samples, validation NRMSE {:.4}", choice.rows.len(), validation.nrmse)
    }
}

/// Figures of standardised predictions for some samples.
pub(crate) fn figures(data: &Dataset, samples: &Staged<'_>, mut prediction: DMatrix<f64>) -> Metrics {
    samples.stage().scaling().restore(&mut prediction);
    Metrics::new(&data.outputs, &data.outputs_at(&samples.rows), &prediction)
}

/// What every row's network, the one that was fitted without its block, predicts for it.
pub(crate) fn held_out(networks: &[Network], blocks: &[usize], x: &dyn Features) -> DMatrix<f64> {
    let mut prediction = DMatrix::zeros(blocks.len(), networks[0].outputs());
    for (k, network) in networks.iter().enumerate() {
        let rows: Vec<usize> = (0..blocks.len()).filter(|&row| blocks[row] == k).collect();
        let values = network.evaluate(&x.select_rows(&rows));
        for (value, &row) in values.row_iter().zip(&rows) {
            prediction.row_mut(row).copy_from(&value);
        }
    }
    prediction
}
