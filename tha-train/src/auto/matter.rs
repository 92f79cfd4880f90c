//! Which inputs matter: of many sensors a few often say it all, and what the others add is noise and flash.
//!
//! A network of degree two is fitted to all inputs; an input matters as much as the outputs of the network change
//! without it. That is found again on every set of rows that is fitted: no row that judges takes part.

use super::ground::Ground;
use super::setting::Setting;
use crate::fit::FitError;
use crate::network::{Features, Network};
use crate::progress::{OnlyStop, Progress};
use crate::solve::{Problem, along};

/// The inputs that a setting sees: those it names, or as many of those that matter most in these rows as it keeps. Of the rows
/// on which settings are compared, that is.
pub(super) fn inputs(
    ground: &Ground<'_>,
    setting: &Setting,
    rows: &[usize],
    ridges: &[f64],
    progress: &dyn Progress,
) -> Result<Vec<usize>, FitError> {
    let Some(keep) = setting.keep else { return Ok(setting.seen(ground.data)) };
    let all: Vec<usize> = (0..ground.data.inputs.len()).collect();
    let with_all = setting.with_all();
    let staged = ground.compared(&with_all, rows.to_vec())?;
    let x = staged.of_inputs(&all);
    // Neither the strongest ridges, which flatten what is small, nor the weakest.
    let ridges = &ridges[..=ridges.len() / 2];
    let mut networks: Vec<Network> = Vec::new();
    let course = ground.course(&with_all, ridges);
    along(&Problem { x: &x, y: &staged.y }, &course, None, &OnlyStop(progress), |ridge, _, network| {
        if ridge + 1 == ridges.len() {
            networks.push(network);
        }
    })?;
    let whole = x.rows(0, x.nrows());
    let change = |&input: &usize| -> f64 {
        let mut without = whole.clone();
        x.columns_of(input).into_iter().for_each(|column| without.column_mut(column).fill(0.0));
        let of_network =
            |network: &Network| (network.evaluate(&without) - network.evaluate(&whole)).norm_squared();
        networks.iter().map(of_network).sum()
    };
    let mut ranked: Vec<(f64, usize)> = all.iter().map(|input| (change(input), *input)).collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut kept: Vec<usize> = ranked.into_iter().take(keep).map(|(_, input)| input).collect();
    kept.sort_unstable();
    Ok(kept)
}
