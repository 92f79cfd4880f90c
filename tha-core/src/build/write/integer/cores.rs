//! The cores of a head in integers: gauge, shifts, rounding.

use alloc::{vec, vec::Vec};

use super::{TOO_LARGE, exp2};
use crate::build::{Core, Head, ModelSpec};
use crate::integer::{LIMIT, Node, Shifts, VECTOR};

impl ModelSpec {
    /// What x is worth in each row of a head but the first.
    pub(super) fn row_units(&self, head: &Head, bits: u32, inputs: &[f64], features: &[f64]) -> Vec<f64> {
        if head.features.is_empty() {
            let own = head.inputs.iter().map(|&input| inputs.get(input).copied().unwrap_or(1.0));
            let own: Vec<f64> = own.collect();
            return (0..self.memory).flat_map(|_| own.iter().copied()).collect();
        }
        let rows = head.features.iter().flat_map(|&k| {
            let nodes = self.stage.features.get(k).map_or(0, |feature| feature.nodes.len());
            let unit = features.get(k).copied().unwrap_or(1.0);
            let unit = if nodes == 0 { unit } else { f64::from(1u32 << bits) };
            core::iter::repeat_n(unit, nodes.max(1))
        });
        rows.collect()
    }

    /// The head with its maps read off at the nodes as they are in the file, which may be far from where they were where some are close.
    pub(super) fn at_nodes(&self, head: &Head, nodes: &[Vec<Node>], units: &[f64]) -> Head {
        let mut moved = head.clone();
        for (core, old) in moved.cores.iter_mut().zip(&head.cores) {
            let mut first = 1;
            for &k in &head.features {
                let was = self.stage.features.get(k).map_or(&[][..], |feature| &feature.nodes);
                let now = nodes.get(k).map_or(&[][..], |nodes| nodes);
                let unit = units.get(k).copied().unwrap_or(1.0);
                for (row, node) in now.iter().enumerate() {
                    let (cell, t) = cell(was, f64::from(node.at) / unit);
                    for sum in 0..core.left * core.right {
                        let value = |row: usize| coefficient(old, sum, first + row);
                        let value = (1.0 - t) * value(cell) + t * value(cell + 1);
                        if let Some(place) = core.data.get_mut(place(old, sum, first + row)) {
                            *place = value as f32;
                        }
                    }
                }
                first += now.len().max(1);
            }
        }
        moved
    }

    /// How many rows each feature of a head has.
    pub(super) fn groups(&self, head: &Head) -> Vec<usize> {
        match head.features.is_empty() {
            true => vec![1; head.inputs.len() * self.memory],
            false => head
                .features
                .iter()
                .map(|&k| self.stage.features.get(k).map_or(1, |feature| feature.rows()))
                .collect(),
        }
    }
}

/// A head in integers: shifts of V1, ..., Vd; sum by sum, Vd first, constants and coefficients; the units of v at the left of each core.
pub(super) struct IntegerCores {
    pub shifts: Vec<Shifts>,
    pub constants: Vec<i32>,
    pub coefficients: Vec<Vec<i16>>,
    pub units: Vec<Vec<f64>>,
}

/// The cores with x in `rows` units and v in the units `wanted`, or in smaller ones where those leave no room.
pub(super) fn integer_cores(
    head: &Head,
    rows: &[f64],
    groups: &[usize],
    wanted: &[Vec<f64>],
    bits: u32,
) -> Option<IntegerCores> {
    let mut made = IntegerCores {
        shifts: Vec::new(),
        constants: Vec::new(),
        coefficients: Vec::new(),
        units: Vec::new(),
    };
    // The units of the vector from the right; none at the last core.
    let mut right: Vec<f64> = Vec::new();
    for (core, wanted) in head.cores.iter().zip(wanted).rev() {
        let mut left: Vec<f64> = wanted.clone();
        let sizes: Vec<f64> =
            (0..core.left * core.right).map(|sum| size(core, sum, rows, groups, bits)).collect();
        let mut product = 0;
        if !right.is_empty() {
            // The sums of a row times the largest vector must have room.
            let most = |a: usize, unit: f64| {
                let own = sizes.iter().skip(a * core.right).zip(&right).take(core.right);
                own.map(|(size, right)| size * unit / right + 2.0).sum::<f64>() * f64::from(VECTOR)
            };
            for (a, unit) in left.iter_mut().enumerate() {
                while most(a, *unit) + 1.0 >= TOO_LARGE {
                    *unit /= 2.0;
                    if *unit < 1e-12 {
                        return None;
                    }
                }
            }
            let fits = |shift: &u16| {
                left.iter()
                    .enumerate()
                    .all(|(a, unit)| most(a, unit * exp2(*shift)) + exp2(*shift) < TOO_LARGE)
            };
            product = (0..=30u16).rev().find(fits)?;
        }
        let unit = |sum: usize| {
            let own = left.get(sum / core.right).copied().unwrap_or(1.0);
            own * exp2(product) / right.get(sum % core.right).copied().unwrap_or(1.0)
        };
        let fits = |shift: &u16| {
            (0..sizes.len()).all(|sum| {
                let factor = unit(sum) * exp2(*shift);
                let most = sizes.get(sum).copied().unwrap_or(0.0) * factor;
                // A half of rounding in every coefficient and the constant, and the half that rounds.
                let rounding = (groups.len() as f64 + 1.0) * exp2(bits as u16) + exp2(*shift);
                let coefficients = (0..rows.len()).all(|i| {
                    let row = rows.get(i).copied().unwrap_or(1.0);
                    (coefficient(core, sum, i + 1) * factor / row).abs() < f64::from(LIMIT)
                });
                coefficients && most + rounding < TOO_LARGE
            })
        };
        let shift = (0..=30u16).rev().find(fits)?;
        for sum in 0..sizes.len() {
            let factor = unit(sum) * exp2(shift);
            let half = exp2(shift) / 2.0;
            let half = if shift == 0 { 0.0 } else { half };
            made.constants.push(libm::round(coefficient(core, sum, 0) * factor + half) as i32);
            let row =
                |(i, unit): (usize, &f64)| libm::round(coefficient(core, sum, i + 1) * factor / unit) as i16;
            made.coefficients.push(rows.iter().enumerate().map(row).collect());
        }
        made.shifts.insert(0, Shifts { sum: shift, product });
        made.units.insert(0, left.clone());
        right = left;
    }
    Some(made)
}

/// The cell of `nodes` that `at` lies in, and how far it has come there, 0 to 1.
fn cell(nodes: &[f32], at: f64) -> (usize, f64) {
    let inner = nodes.get(1..nodes.len().saturating_sub(1)).unwrap_or_default();
    let cell = inner.iter().filter(|&&node| f64::from(node) <= at).count();
    let end = |k: usize| nodes.get(k).map_or(0.0, |&node| f64::from(node));
    let t = (at - end(cell)) / (end(cell + 1) - end(cell));
    (cell, if t.is_finite() { t.clamp(0.0, 1.0) } else { 0.0 })
}

/// V(a, i, b) of the sum (a, b).
fn coefficient(core: &Core, sum: usize, i: usize) -> f64 {
    core.data.get(place(core, sum, i)).map_or(0.0, |&value| value.into())
}

fn place(core: &Core, sum: usize, i: usize) -> usize {
    (sum / core.right * core.q + i) * core.right + sum % core.right
}

/// The most that a sum can be: of a mapped feature the largest of its nodes counts.
fn size(core: &Core, sum: usize, rows: &[f64], groups: &[usize], bits: u32) -> f64 {
    let mut i = 0;
    let mut most = coefficient(core, sum, 0).abs();
    for &rows_of in groups {
        let own = (i..i + rows_of)
            .map(|i| coefficient(core, sum, i + 1).abs() / rows.get(i).copied().unwrap_or(1.0));
        most += own.fold(0.0, f64::max) * f64::from(1u32 << bits);
        i += rows_of;
    }
    most
}
