//! The least-squares problem of one core, and its solution by conjugate gradients.
//!
//! Its matrix is sum_t (x_t x_t^T) (x) (A_t^T A_t) + ridge with A_t = L_t (x) R_t, what stands left and right of the core. Were x and A
//! independent it would be N S (x) C + ridge with their second moments S and C, and that is the preconditioner. Rows are read
//! in blocks; neither the design nor its Gram matrix exists. Where the monomials are few, [`super::quadratic`] stands for the rows.

use super::around::{gathered, predicted, spread};
use super::conjugate::conjugate_gradients;
use super::precondition::{Covariance, Preconditioner};
use super::rows::{Rows, in_order};
use crate::linalg::{add_gram_lower, columns, view_mut};
use crate::network::{Contraction, Design, Network, fold, unfold};
use nalgebra::DMatrix;

/// Blocks of rows per task.
const GROUP: usize = 8;
/// Conjugate gradients end when the squared residual has fallen to this part.
const PRECISION: f64 = 1e-5;

/// What a descent lowers: the squared residual of some rows.
pub(super) trait Objective {
    /// The least-squares problem of core `k` with the others as they are.
    fn local<'a>(&'a self, network: &Network, k: usize) -> Local<'a>;

    /// ||y||^2.
    fn square(&self) -> f64;
}

/// A matrix by its products with coefficients of a core.
pub(super) type Product<'a> = Box<dyn Fn(&DMatrix<f64>) -> DMatrix<f64> + 'a>;

/// The least-squares problem of one core.
pub(super) struct Local<'a> {
    pub(super) k: usize,
    /// Number of rows.
    pub(super) count: usize,
    /// A^T A summed over the rows. The outputs share that of the first core.
    pub(super) coupling: DMatrix<f64>,
    /// X^T (y - f) A, q x (r_{k-1} r_k).
    pub(super) gradient: DMatrix<f64>,
    /// ||y - f||^2.
    pub(super) loss: f64,
    /// v -> sum_t x_t x_t^T v A_t^T A_t.
    pub(super) apply: Product<'a>,
}

impl Local<'_> {
    /// Conjugate gradients from the core of `network`, which is replaced; J before and after.
    pub(super) fn descend(
        &self,
        network: &mut Network,
        covariance: &Covariance,
        ridge: f64,
        steps: usize,
    ) -> (f64, f64) {
        let core = unfold(&network.cores[self.k]);
        let before = self.loss + ridge * core.norm_squared();
        let rhs = &self.gradient - ridge * &core;
        let start = rhs.norm_squared();
        let Some(precondition) = Preconditioner::new(covariance, &self.coupling, self.count, ridge) else {
            return (before, before);
        };
        let (delta, residual) = conjugate_gradients(
            &rhs,
            |direction| (self.apply)(direction) + ridge * direction,
            |residual| precondition.apply(residual),
            steps,
            |residual, _| residual.norm_squared() <= PRECISION * start,
        );
        let (left, right) = (network.cores[self.k].left, network.cores[self.k].right);
        network.cores[self.k] = fold(left, right, &(core + &delta));
        // A quadratic: what is left of the gradient says how far it has fallen.
        (before, before - delta.dot(&(rhs + residual)))
    }
}

impl Objective for Rows<'_> {
    fn local<'a>(&'a self, network: &Network, k: usize) -> Local<'a> {
        let rows = self;
        let unfolded = network.unfolded();
        let core = &network.cores[k];
        let (q, bonds, outputs) = (core.q, (core.left, core.right), network.outputs());
        let width = if k == 0 { core.right } else { core.left * core.right };
        let of_group = |group: usize| {
            let mut coupling = DMatrix::zeros(width, width);
            let mut gradient = DMatrix::zeros(q, core.left * core.right);
            let (mut loss, mut around) = (0.0, Vec::new());
            each(rows, group, |_, x, y| {
                let n = x.nrows();
                let mut parts = Contraction::new(network, &unfolded, x);
                let residual: Vec<f64> =
                    y.as_slice().iter().zip(parts.outputs()).map(|(y, f)| y - f).collect();
                loss += residual.iter().map(|r| r * r).sum::<f64>();
                let (left, right) =
                    (std::mem::take(&mut parts.left[k]), std::mem::take(&mut parts.right[k + 1]));
                let mut add = |pairs: &[f64]| {
                    add_gram_lower(view_mut(&mut coupling), columns(pairs, n, width));
                };
                if k == 0 {
                    add(&right);
                } else {
                    left.chunks_exact(n * core.left).for_each(|left| add(&spread(left, &right, n, bonds)));
                }
                let weighted = spread(&gathered(&left, residual, n, core.left), &right, n, bonds);
                x.add_transposed_times(&weighted, &mut gradient);
                around.push((left, right));
            });
            (coupling, gradient, loss, around)
        };
        let mut around = Vec::with_capacity(rows.blocks());
        let mut coupling = DMatrix::zeros(width, width);
        let mut gradient = DMatrix::zeros(q, core.left * core.right);
        let mut loss = 0.0;
        in_order(groups(rows), of_group, |part| {
            coupling += part.0;
            gradient += part.1;
            loss += part.2;
            around.extend(part.3);
        });
        let around = Around { rows, bonds, outputs: (k > 0).then_some(outputs), parts: around };
        let apply = Box::new(move |v: &DMatrix<f64>| around.apply(v));
        Local { k, count: rows.count, coupling, gradient, loss, apply }
    }

    fn square(&self) -> f64 {
        self.square
    }
}

/// What stands around a core.
struct Around<'a> {
    rows: &'a Rows<'a>,
    /// Width of the bonds to the left and right of the core.
    bonds: (usize, usize),
    /// Their number, but for the first core, which has slices for each.
    outputs: Option<usize>,
    /// Per block: L, rows x (l r_{k-1}), empty for the first core, where it is the identity; R, rows x r_k.
    parts: Vec<(Vec<f64>, Vec<f64>)>,
}

impl Around<'_> {
    /// sum_t x_t x_t^T v A_t^T A_t.
    fn apply(&self, v: &DMatrix<f64>) -> DMatrix<f64> {
        let (q, size) = v.shape();
        let (a, _) = self.bonds;
        let of_group = |group: usize| {
            let mut sum = DMatrix::zeros(q, size);
            each(self.rows, group, |block, x, _| {
                let (left, right) = &self.parts[block];
                let n = x.nrows();
                let values = x.times(v);
                let inner = predicted(&values, right, n, a);
                let prediction = match self.outputs {
                    None => inner,
                    Some(outputs) => predicted(left, &inner, n, outputs),
                };
                let back = spread(&gathered(left, prediction, n, a), right, n, self.bonds);
                x.add_transposed_times(&back, &mut sum);
            });
            sum
        };
        let mut sum = DMatrix::zeros(q, size);
        in_order(groups(self.rows), of_group, |part| sum += part);
        sum
    }
}

/// Groups of blocks of rows; a part of mapped rows is one.
fn groups(rows: &Rows) -> usize {
    match rows.hats() {
        Some((parts, _)) => parts.len(),
        None => rows.blocks().div_ceil(GROUP),
    }
}

/// The blocks of a group, each with its number.
fn each(rows: &Rows, group: usize, mut visit: impl FnMut(usize, &dyn Design, &DMatrix<f64>)) {
    if let Some((parts, outputs)) = rows.hats() {
        return visit(group, &parts[group], &outputs[group]);
    }
    rows.group(group, GROUP).iter().enumerate().for_each(|(at, (x, y))| visit(group * GROUP + at, x, y));
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::Problem;
    use super::super::choose::Settings;
    use super::super::frame::Frame;
    use super::super::quadratic::{Forms, Framed, Quadratic};
    use super::*;
    use crate::network::Normal;

    pub(in super::super) fn problem(
        seed: u64,
        count: usize,
        q: usize,
        outputs: usize,
    ) -> (DMatrix<f64>, DMatrix<f64>) {
        let mut normal = Normal::new(seed);
        let x = DMatrix::from_fn(count, q, |_, i| if i == 0 { 1.0 } else { 0.5 * normal.draw() });
        (x, DMatrix::from_fn(count, outputs, |_, _| normal.draw()))
    }

    /// The columns that the coefficients of core `k` multiply, (N l) x size, in the order of the coefficients.
    fn design(network: &Network, k: usize, x: &DMatrix<f64>) -> DMatrix<f64> {
        let size = network.cores[k].data.len();
        let column = |at: usize| {
            let mut unit = network.clone();
            unit.cores[k].data.fill(0.0);
            unit.cores[k].data[at] = 1.0;
            nalgebra::DVector::from_column_slice(unit.evaluate(x).as_slice())
        };
        DMatrix::from_columns(&(0..size).map(column).collect::<Vec<_>>())
    }

    #[test]
    fn a_core_solves_its_ridge_regression_from_rows_and_from_moments() {
        let (q, outputs, ridge) = (4, 2, 0.7);
        let (x, y) = problem(1, 300, q, outputs);
        let rows = Problem { x: &x, y: &y };
        let forms = Forms::new(q, 3);
        let quadratic = Quadratic::new(&forms, &forms.pairs.sums(&rows)).unwrap();
        // The problem's own coordinates.
        let settings = Settings { ranks: vec![2, 3], gamma: 3.0, ridge, decay: None, exact: false };
        let frame = Frame::of((&(x.transpose() * &x), 300, 1.0), &settings, 1).unwrap();
        let covariance = Covariance::new(&(x.transpose() * &x)).unwrap();
        let (rows, framed) = (Rows::new(&rows, 1), Framed { quadratic: &quadratic, frame: &frame });
        let sources: [&dyn Objective; 2] = [&rows, &framed];
        for k in 0..3 {
            let start = Network::random(outputs, q, &[2, 3], &mut Normal::new(2));
            let a = design(&start, k, &x);
            let normal = a.transpose() * &a + DMatrix::identity(a.ncols(), a.ncols()) * ridge;
            let truth = DMatrix::from_column_slice(y.len(), 1, y.as_slice());
            let wanted = normal.lu().solve(&(a.transpose() * &truth)).unwrap();
            let loss = (&truth - &a * &wanted).norm_squared() + ridge * wanted.norm_squared();
            for source in sources {
                let mut network = start.clone();
                let mut solve = || source.local(&network, k).descend(&mut network, &covariance, ridge, 200);
                // A solution ends at a part of the gradient that it began with.
                let (before, _) = solve();
                let (_, after) = (0..5).map(|_| solve()).last().unwrap();
                let found = DMatrix::from_column_slice(wanted.len(), 1, &network.cores[k].data);
                assert!((&found - &wanted).norm() < 1e-3 * wanted.norm(), "core {k}");
                assert!(after < before && (after / loss - 1.0).abs() < 1e-4, "core {k}: {after}, {loss}");
                let direct = rows.loss(&network) + ridge * found.norm_squared();
                assert!((after / direct - 1.0).abs() < 1e-8, "the loss it says is the loss it has");
            }
        }
    }
}
