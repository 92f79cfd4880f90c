//! Damped Gauss-Newton steps without normal equations, for networks of thousands of coefficients.
//!
//! J v and J^T r are two products with X each, 4 N q C flops for the C components (k, a, b) of all cores, against
//! N (q C)^2 / 2 for J^T J. Conjugate gradients need few of them: in whitened coordinates J^T J is close to
//! Omega (x) I, Omega = sum_t w_t w_t^T being C x C, and its inverse is the preconditioner.

use super::jacobian::Components;
use super::rows::{Block, Rows, in_order};
use crate::linalg::{
    add_product, cholesky_in_place, cholesky_solve, product, transposed_product, view, view_mut,
};
use crate::network::Network;
use nalgebra::DMatrix;
use std::borrow::Cow;

/// Products with J^T J at most.
const STEPS: usize = 60;
/// Relative residual at which a step is good enough.
const PRECISION: f64 = 0.1;

/// The problem linearised at a network.
pub(super) struct Linearised<'a> {
    /// x and y, here for as long as the many products with them last.
    blocks: Cow<'a, [Block]>,
    components: Components,
    q: usize,
    /// Per block: w_c(t, j), rows x (outputs, components).
    weights: Vec<Vec<f64>>,
    /// Omega.
    pub(super) coupling: DMatrix<f64>,
    /// J^T r as q x C.
    gradient: DMatrix<f64>,
    pub(super) loss: f64,
}

impl<'a> Linearised<'a> {
    pub(super) fn new(rows: &'a Rows<'a>, network: &Network) -> Self {
        let components = Components::new(network, 0..network.degree());
        let unfolded = network.unfolded();
        let (q, size, outputs) = (network.q(), components.list.len(), network.outputs());
        let blocks = rows.batch(0..rows.blocks());
        let of_block = |k: usize| {
            let (x, y) = &blocks[k];
            let (weights, residual) = components.weights(network, &unfolded, x, y);
            let mut coupling = DMatrix::zeros(size, size);
            let mut weighted = vec![0.0; x.nrows() * size];
            for j in 0..outputs {
                let w = of_output(&weights, j, x.nrows(), size, outputs);
                add_product(view_mut(&mut coupling), view(&w).transpose(), view(&w));
                for (to, (w, c)) in weighted.iter_mut().zip(w.iter().zip((0..x.nrows()).cycle())) {
                    *to += w * residual[j * x.nrows() + c];
                }
            }
            let gradient = transposed_product(x, &DMatrix::from_vec(x.nrows(), size, weighted));
            let loss: f64 = residual.iter().map(|r| r * r).sum();
            (weights, coupling, gradient, loss)
        };
        let mut all = Vec::with_capacity(blocks.len());
        let (mut coupling, mut gradient, mut loss) =
            (DMatrix::zeros(size, size), DMatrix::zeros(q, size), 0.0);
        in_order(blocks.len(), of_block, |(weights, block_coupling, block_gradient, block_loss)| {
            all.push(weights);
            coupling += block_coupling;
            gradient += block_gradient;
            loss += block_loss;
        });
        Self { blocks, components, q, weights: all, coupling, gradient, loss }
    }

    /// The largest diagonal entry of J^T J, about.
    pub(super) fn scale(&self) -> f64 {
        self.coupling.diagonal().max().max(f64::MIN_POSITIVE)
    }

    /// J^T J v.
    fn apply(&self, v: &DMatrix<f64>) -> DMatrix<f64> {
        let size = v.ncols();
        let of_block = |k: usize| {
            let (x, y) = &self.blocks[k];
            let (n, outputs) = y.shape();
            let values = product(x, v);
            let mut back = vec![0.0; n * size];
            for j in 0..outputs {
                let weights = || self.weights[k].chunks_exact(n).skip(j).step_by(outputs);
                let mut sum = vec![0.0; n];
                for (w, values) in weights().zip(values.as_slice().chunks_exact(n)) {
                    sum.iter_mut().zip(w.iter().zip(values)).for_each(|(s, (w, v))| *s += w * v);
                }
                for (w, back) in weights().zip(back.chunks_exact_mut(n)) {
                    back.iter_mut().zip(w.iter().zip(&sum)).for_each(|(b, (w, s))| *b += w * s);
                }
            }
            transposed_product(x, &DMatrix::from_vec(n, size, back))
        };
        let mut product = DMatrix::zeros(v.nrows(), size);
        in_order(self.blocks.len(), of_block, |part| product += part);
        product
    }

    /// An approximate solution of (J^T J + ridge + damping) delta = J^T r - ridge theta, both in the order of the
    /// coefficients: (delta, right-hand side).
    pub(super) fn solve(&self, theta: &[f64], ridge: f64, damping: f64) -> Option<(Vec<f64>, Vec<f64>)> {
        let shift = ridge + damping;
        let rhs = &self.gradient - ridge * self.gather(theta);
        let mut factor = self.coupling.clone();
        (0..factor.nrows()).for_each(|c| factor[(c, c)] += shift);
        if !cholesky_in_place(&mut factor) {
            return None;
        }
        let precondition = |r: &DMatrix<f64>| {
            let mut z = r.transpose();
            cholesky_solve(&factor, &mut z);
            z.transpose()
        };
        let goal = PRECISION.powi(2) * rhs.dot(&precondition(&rhs));
        let apply = |direction: &DMatrix<f64>| self.apply(direction) + shift * direction;
        let (delta, _) = conjugate_gradients(&rhs, apply, precondition, STEPS, |_, product| product <= goal);
        Some((self.scatter(&delta), self.scatter(&rhs)))
    }

    /// The slices V_k(a, :, b) of coefficients as columns, in the order of the components.
    pub(super) fn gather(&self, theta: &[f64]) -> DMatrix<f64> {
        let list = &self.components.list;
        DMatrix::from_fn(self.q, list.len(), |i, c| theta[list[c].3 + i * list[c].4])
    }

    fn scatter(&self, values: &DMatrix<f64>) -> Vec<f64> {
        let mut ordered = vec![0.0; values.len()];
        for (c, &(.., start, stride)) in self.components.list.iter().enumerate() {
            for i in 0..self.q {
                ordered[start + i * stride] = values[(i, c)];
            }
        }
        ordered
    }
}

/// Solves `apply(z) = rhs` from zero by at most so many preconditioned steps: z, and the residual that it leaves. `done` ends it, given
/// the residual and its product with its preconditioned self.
pub(super) fn conjugate_gradients(
    rhs: &DMatrix<f64>,
    apply: impl Fn(&DMatrix<f64>) -> DMatrix<f64>,
    precondition: impl Fn(&DMatrix<f64>) -> DMatrix<f64>,
    steps: usize,
    done: impl Fn(&DMatrix<f64>, f64) -> bool,
) -> (DMatrix<f64>, DMatrix<f64>) {
    let mut solution = DMatrix::zeros(rhs.nrows(), rhs.ncols());
    let mut residual = rhs.clone();
    let mut direction = precondition(&residual);
    let mut product = residual.dot(&direction);
    for _ in 0..steps {
        if done(&residual, product) {
            break;
        }
        let image = apply(&direction);
        let curvature = direction.dot(&image);
        if curvature <= 0.0 || !curvature.is_finite() {
            break;
        }
        let length = product / curvature;
        solution += length * &direction;
        residual -= length * image;
        let z = precondition(&residual);
        let next = residual.dot(&z);
        direction = z + (next / product) * direction;
        product = next;
    }
    (solution, residual)
}

/// w_c(t, j) of one output as rows x components.
fn of_output(weights: &[f64], j: usize, rows: usize, size: usize, outputs: usize) -> DMatrix<f64> {
    DMatrix::from_fn(rows, size, |t, c| weights[(c * outputs + j) * rows + t])
}
