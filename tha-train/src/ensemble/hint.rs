//! What other choices would have given on the samples held out to choose on, where that is cheap to know.

use super::Combine;
use super::heads::Material;
use super::weights::{Products, average, stack};
use crate::fit::held_out;
use crate::network::Features;
use crate::progress::OnlyStop;
use crate::solve::{self, Problem};
use nalgebra::DVector;

/// Heads up to which there is a hint: other weights take a factorisation for each pair of folds and each penalty.
const CHEAP_HEADS: usize = 200;
/// Coefficients of the full model, and multiplications of a step of its fit, up to which it is fitted for comparison.
const CHEAP_PARAMETERS: usize = 400;
const CHEAP_WORK: f64 = 1e9;

/// For heads that predict Y: the other weights, by cross-validation among the held-out samples, and the full model.
pub(super) fn for_weights(
    material: &Material<'_>,
    all: &Products,
    folds: &[Products],
    combine: Combine,
) -> Option<String> {
    if all.truth.len() > CHEAP_HEADS {
        return None;
    }
    let crossed = |weights: &dyn Fn(usize) -> DVector<f64>| {
        let loss: f64 = (0..folds.len()).map(|k| folds[k].loss(&weights(k))).sum();
        (loss / all.square.max(f64::MIN_POSITIVE)).sqrt()
    };
    let averaged = |k: usize| average(&all.minus(&folds[k]));
    // The penalty is found among the other folds alone.
    let stacked = |k: usize| {
        let others: Vec<Products> = folds[..k].iter().chain(&folds[k + 1..]).cloned().collect();
        stack(&all.minus(&folds[k]), &others)
    };
    let mine = if combine == Combine::Stack { crossed(&stacked) } else { crossed(&averaged) };
    let mut better = Vec::new();
    // Where the held-out samples do not pay for more, stacking gives the average's weights.
    if (stack(all, folds) - average(all)).amax() >= 1e-3 {
        let (other, name) = match combine {
            Combine::Stack => (crossed(&averaged), "`combine` average"),
            _ => (crossed(&stacked), "`combine` stack"),
        };
        if other < 0.98 * mine {
            better.push(format!("{name} {other:.4}"));
        }
    }
    better.extend(better_full_model(material, mine));
    say(mine, &better)
}

/// For additive heads: the full model.
pub(super) fn for_additive(material: &Material<'_>, mine: f64) -> Option<String> {
    say(mine, better_full_model(material, mine).as_slice())
}

fn say(mine: f64, better: &[String]) -> Option<String> {
    (!better.is_empty()).then(|| {
        format!(
            "on the samples held out to choose on this leaves a relative residual of {mine:.4}; {} would have left less",
            better.join(" and ")
        )
    })
}

/// The full model in words, where it leaves less.
fn better_full_model(material: &Material<'_>, mine: f64) -> Option<String> {
    let full = full_model(material).filter(|full| *full < 0.98 * mine)?;
    Some(format!("the full model (without `heads`) {full:.4}"))
}

/// The residual of one head on all inputs on the held-out samples, if it is cheap.
fn full_model(material: &Material<'_>) -> Option<f64> {
    let s = material.run.solve;
    let (q, r, d) = (material.samples.ncols(), s.max_rank, s.degree);
    let parameters = q * r * r * d.saturating_sub(2) + 2 * q * r;
    let work = (material.samples.nrows() as f64) * (parameters as f64).powi(2);
    if parameters > CHEAP_PARAMETERS || work > CHEAP_WORK {
        return None;
    }
    let problem = Problem { x: &material.samples, y: &material.samples.y };
    let options = solve::SolveParams { restarts: s.restarts.min(2), ..s.clone() };
    let choice =
        solve::choose(&problem, &material.blocks, &options, &OnlyStop(material.run.progress)).ok()?;
    let error = held_out(&choice.networks, &material.blocks, problem.x) - problem.y;
    Some(error.norm() / problem.y.norm().max(f64::MIN_POSITIVE))
}
