//! MVMALS as published (Batselier, Chen, Wong 2017): two neighbouring cores at a time.
//!
//! The super-core of cores k and k+1 enters linearly: y = L (x (x) x) R. Columns (i, i') and (i', i) of its design are
//! equal, so q(q+1)/2 of them are kept, those of unequal indices times sqrt(2): the minimal-norm solution then gives
//! both entries the same value. Left of the first core stands the identity, so its outputs decouple: one
//! factorisation, l right-hand sides. With more unknowns than rows the dual is solved, an elementwise product of small
//! Gram matrices. A singular value decomposition, cut at the tolerance and the cap, splits the super-core again; what
//! that costs is logged with every step (Theorem 5 of the paper).

use super::direct::UNKNOWNS;
use super::log::{Step, StepKind, record};
use super::rows::Rows;
use super::{Problem, Run, SolveError, SolveParams};
use crate::linalg::{add_gram_lower, add_product, minimal_norm, product, svd, view, view_mut};
use crate::network::{BLOCK, Contraction, Core, Network, Normal, kept};
use nalgebra::DMatrix;

/// Eigenvalues below this fraction of the largest count as zero: the square root of the machine precision, squared.
const CUTOFF: f64 = 1e-14;

/// Sweeps both ways from a random network of rank one until the loss no longer falls.
pub(super) fn fit(problem: &Problem, ridge: f64, run: Run<'_>) -> Result<(Network, usize), SolveError> {
    let Run { options, progress } = run;
    let (q, outputs, degree) = (problem.x.ncols(), problem.y.ncols(), options.degree);
    let mut normal = Normal::new(options.seed);
    let mut network = Network::random(outputs, q, &vec![1; degree - 1], &mut normal);
    let rows = Rows::new(problem, 1);
    if degree == 1 {
        let steps = super::als::sweeps(&mut network, &rows, ridge, 2, options.tolerance, progress)?;
        return Ok((network, steps));
    }
    network.orthogonalize_right();
    let unit = rows.square;
    let mut best = (rows.loss(&network), network.clone());
    for sweep in 0..options.sweeps {
        let before = best.0;
        let order = (0..degree - 1).map(|k| (k, true)).chain((0..degree - 1).rev().map(|k| (k, false)));
        for (k, rightward) in order {
            let pair = Pair { problem, network: &network, k };
            let (next, gain, truncation) = pair.update(options, ridge, rightward)?;
            network = next;
            let loss = rows.loss(&network);
            if loss < best.0 {
                best = (loss, network.clone());
            }
            let (kind, ranks) = (StepKind::SuperCore(k), network.ranks());
            let (loss, gain, truncation) = (loss / unit, gain / unit, truncation / unit);
            record(progress, Step { kind, loss, gain, truncation, ranks })?;
        }
        if before - best.0 <= options.tolerance * before || best.0 <= options.tolerance.powi(2) * unit {
            return Ok((best.1, sweep + 1));
        }
    }
    Ok((best.1, options.sweeps))
}

/// One update of the super-core of cores k and k + 1, without penalty and cut to rank `cap`: the updated network, the
/// gain of the least squares and the loss of the truncation (Theorem 5), as sums of squares.
pub(crate) fn step(
    problem: &Problem,
    network: &Network,
    k: usize,
    cap: usize,
) -> Result<(Network, f64, f64), SolveError> {
    let options = SolveParams { max_rank: cap, tolerance: 1e-12, ..SolveParams::default() };
    Pair { problem, network, k }.update(&options, 0.0, true)
}

/// Cores k and k + 1 of a network, and the rows that judge them.
struct Pair<'a> {
    problem: &'a Problem<'a>,
    network: &'a Network,
    k: usize,
}

impl Pair<'_> {
    /// The updated network, the gain of the least squares and the loss of the truncation.
    fn update(
        &self,
        options: &SolveParams,
        ridge: f64,
        rightward: bool,
    ) -> Result<(Network, f64, f64), SolveError> {
        let (first, second) = (&self.network.cores[self.k], &self.network.cores[self.k + 1]);
        let (left, q, right) = (first.left, first.q, second.right);
        let decoupled = self.k == 0;
        let unknowns = if decoupled { 1 } else { left } * right * q * (q + 1) / 2;
        let equations = self.problem.x.nrows() * if decoupled { 1 } else { self.network.outputs() };
        if unknowns.min(equations) > UNKNOWNS {
            let needed = unknowns.min(equations);
            let advice = "lower the rank cap, or use the ladder, which never forms super-cores";
            return Err(SolveError::TooLarge { what: "a super-core", needed, limit: UNKNOWNS, advice });
        }
        let penalty = ridge * self.problem.y.len() as f64;
        let solution =
            if unknowns <= equations { self.primal(unknowns, penalty) } else { self.dual(penalty) };
        let solution = solution.ok_or(SolveError::Numerical { what: "least squares of a super-core" })?;
        let matrix = self.unpack(&solution);

        let parts = svd(&matrix).ok_or(SolveError::Numerical { what: "singular value decomposition" })?;
        let norm: f64 = parts.s.iter().map(|s| s * s).sum();
        let cap = options.ranks.as_ref().map_or(options.max_rank, |ranks| ranks[self.k]);
        let rank = kept(&parts.s, options.tolerance.powi(2) * norm).min(cap).max(1);
        let (mut u, mut v) = (parts.u.columns(0, rank).into_owned(), parts.v.columns(0, rank).into_owned());
        let weighted = if rightward { &mut v } else { &mut u };
        weighted.column_iter_mut().zip(&parts.s).for_each(|(mut column, s)| column *= *s);
        let mut network = self.network.clone();
        network.cores[self.k] = Core::from_unfolding(left, q, rank, &u);
        network.cores[self.k + 1] = Core::from_unfolding(rank, q, right, &v.transpose());

        let truncated = &u * v.transpose();
        let (mut before, mut after, mut lost) = (0.0, 0.0, 0.0);
        let current = first.tall() * second.wide();
        for (rows, parts, y) in self.blocks() {
            let error = |m: &DMatrix<f64>| self.values(m, &rows, &parts) - &y;
            before += error(&current).norm_squared();
            after += error(&matrix).norm_squared();
            lost += self.values(&(&matrix - &truncated), &rows, &parts).norm_squared();
        }
        Ok((network, before - after, lost))
    }

    fn blocks(&self) -> impl Iterator<Item = (DMatrix<f64>, Contraction, DMatrix<f64>)> {
        let unfolded = self.network.unfolded();
        let count = self.problem.x.nrows();
        (0..count).step_by(BLOCK).map(move |at| {
            let size = BLOCK.min(count - at);
            let x = self.problem.x.rows(at, size);
            let parts = Contraction::new(self.network, &unfolded, &x);
            (x, parts, self.problem.y.rows(at, size).into_owned())
        })
    }

    /// Design rows of output j: left x (i <= i') x right, flattened in that order.
    fn design(&self, j: usize, x: &DMatrix<f64>, parts: &Contraction) -> DMatrix<f64> {
        let (q, n) = (x.ncols(), x.nrows());
        let right_rank = self.network.cores[self.k + 1].right;
        let left_rank = if self.k == 0 { 1 } else { self.network.cores[self.k].left };
        let right = |b: usize| &parts.right[self.k + 2][b * n..][..n];
        let mut design = DMatrix::zeros(n, left_rank * right_rank * q * (q + 1) / 2);
        let mut columns = design.column_iter_mut();
        for a in 0..left_rank {
            for i in 0..q {
                for e in i..q {
                    let factor = if e == i { 1.0 } else { std::f64::consts::SQRT_2 };
                    for b in 0..right_rank {
                        let mut to = columns.next().expect("as many columns as unknowns");
                        for t in 0..n {
                            to[t] = factor * x[(t, i)] * x[(t, e)] * right(b)[t];
                        }
                        if self.k > 0 {
                            let left = &parts.left[self.k][(j * left_rank + a) * n..][..n];
                            to.iter_mut().zip(left).for_each(|(to, l)| *to *= l);
                        }
                    }
                }
            }
        }
        design
    }

    /// Coefficients (unknowns x 1, or x l where the outputs decouple) by the normal equations.
    fn primal(&self, unknowns: usize, penalty: f64) -> Option<DMatrix<f64>> {
        let outputs = self.network.outputs();
        let decoupled = self.k == 0;
        let mut gram = DMatrix::zeros(unknowns, unknowns);
        let mut rhs = DMatrix::zeros(unknowns, if decoupled { outputs } else { 1 });
        for (x, parts, y) in self.blocks() {
            for j in 0..if decoupled { 1 } else { outputs } {
                let design = self.design(j, &x, &parts);
                let y = if decoupled { y.clone() } else { y.columns(j, 1).into_owned() };
                add_gram_lower(view_mut(&mut gram), view(&design));
                add_product(view_mut(&mut rhs), view(&design).transpose(), view(&y));
            }
        }
        (0..unknowns).for_each(|i| gram[(i, i)] += penalty);
        minimal_norm(&gram, &rhs, CUTOFF)
    }

    /// The same through A A^T = (L L^T) .* (X X^T) .* (X X^T) .* (R R^T).
    fn dual(&self, penalty: f64) -> Option<DMatrix<f64>> {
        let outputs = self.network.outputs();
        let decoupled = self.k == 0;
        let n = self.problem.x.nrows();
        let x = self.problem.x.rows(0, n);
        let parts = Contraction::new(self.network, &self.network.unfolded(), &x);
        let right =
            DMatrix::from_column_slice(n, self.network.cores[self.k + 1].right, &parts.right[self.k + 2]);
        let inputs = product(&x, &x.transpose());
        let mut shared = product(&right, &right.transpose());
        shared.iter_mut().zip(inputs.iter()).for_each(|(s, x)| *s *= x * x);
        let (mut kernel, rhs) = if decoupled {
            (shared, self.problem.y.clone())
        } else {
            let rank = self.network.cores[self.k].left;
            // Rows (j, t) of L, output after output as in vec(Y).
            let left = DMatrix::from_fn(n * outputs, rank, |row, a| {
                parts.left[self.k][((row / n) * rank + a) * n + row % n]
            });
            let mut kernel = product(&left, &left.transpose());
            for (at, value) in kernel.iter_mut().enumerate() {
                *value *= shared[(at % (n * outputs) % n, at / (n * outputs) % n)];
            }
            (kernel, DMatrix::from_column_slice(n * outputs, 1, self.problem.y.as_slice()))
        };
        (0..kernel.nrows()).for_each(|i| kernel[(i, i)] += penalty);
        let dual = minimal_norm(&kernel, &rhs, CUTOFF)?;
        let mut solution: Option<DMatrix<f64>> = None;
        let mut at = 0;
        for (x, parts, y) in self.blocks() {
            for j in 0..if decoupled { 1 } else { outputs } {
                let part = self.design(j, &x, &parts).tr_mul(&dual.rows(j * n + at, y.nrows()));
                solution = Some(solution.map_or(part.clone(), |sum| sum + part));
            }
            at += y.nrows();
        }
        solution
    }

    /// The super-core as a (left q) x (q right) matrix.
    fn unpack(&self, solution: &DMatrix<f64>) -> DMatrix<f64> {
        let (first, second) = (&self.network.cores[self.k], &self.network.cores[self.k + 1]);
        let (q, right) = (first.q, second.right);
        let mut matrix = DMatrix::zeros(first.left * q, q * right);
        for a in 0..first.left {
            let (column, mut at) = if self.k == 0 { (a, 0) } else { (0, a * right * q * (q + 1) / 2) };
            for i in 0..q {
                for e in i..q {
                    for b in 0..right {
                        let value = solution[(at, column)];
                        at += 1;
                        let value = if e == i { value } else { value * std::f64::consts::FRAC_1_SQRT_2 };
                        matrix[(a * q + i, e * right + b)] = value;
                        matrix[(a * q + e, i * right + b)] = value;
                    }
                }
            }
        }
        matrix
    }

    /// Outputs of the rows for a super-core given as a matrix.
    fn values(&self, matrix: &DMatrix<f64>, x: &DMatrix<f64>, parts: &Contraction) -> DMatrix<f64> {
        let (first, second) = (&self.network.cores[self.k], &self.network.cores[self.k + 1]);
        let (q, right, n, outputs) = (first.q, second.right, x.nrows(), self.network.outputs());
        let mut y = DMatrix::zeros(n, outputs);
        for a in 0..first.left {
            for b in 0..right {
                let block = DMatrix::from_fn(q, q, |i, e| matrix[(a * q + i, e * right + b)]);
                let product = x * block;
                for t in 0..n {
                    let value = product.row(t).dot(&x.row(t)) * parts.right[self.k + 2][b * n + t];
                    if self.k == 0 {
                        y[(t, a)] += value;
                    } else {
                        for j in 0..outputs {
                            y[(t, j)] += value * parts.left[self.k][(j * first.left + a) * n + t];
                        }
                    }
                }
            }
        }
        y
    }
}
