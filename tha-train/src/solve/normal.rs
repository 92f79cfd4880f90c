//! Normal equations of the linearised problem, for all cores or some of them, without the Jacobian.
//!
//! The derivative of y_t(j) by V_k(a, i, b) is w_c(t, j) x_i(t) with the component c = (k, a, b) and
//! w_c = L_k(t)[j, a] R_k(t)[b]: what stands left and right of the core. So
//! J^T J at ((c, i), (c', i')) = sum_t (sum_j w_c w_c') (x_i x_i'): one product W^T Z of the distinct pairs of
//! components with the distinct pairs of inputs, half the flops of a symmetric product of J, in which the outputs
//! are summed before the expensive step and J never exists.

use super::Problem;
use super::moments::Moments;
use crate::linalg::{add_product, columns, columns_mut};
use crate::network::{BLOCK, Contraction, Network, evaluate_block, unfold};
use nalgebra::DMatrix;
use rayon::prelude::*;
use std::borrow::Cow;
use std::ops::Range;

/// Columns of Z per task.
const PANEL: usize = 128;
/// Multiplications below which waking other threads costs more than it saves.
const WORTH_A_THREAD: usize = 1 << 25;
/// Entries of x up to which the rows are kept; above, making them again at every step costs a tenth to a third more time.
pub(crate) const KEPT: usize = 1 << 25;
/// Entries of W held at a time, and of x.
const BUFFER: usize = 1 << 20;
const READ: usize = 1 << 22;

/// J^T J, J^T r and ||r||^2 for the cores in question, with the buffers they are made in: large allocations at every
/// step cost more than the arithmetic of a small problem.
#[derive(Default)]
pub(super) struct NormalEquations {
    /// Lower triangle of J^T J, in the order of the coefficients.
    pub(super) gram: DMatrix<f64>,
    /// J^T (y - f).
    pub(super) gradient: DMatrix<f64>,
    /// ||y - f||^2.
    pub(super) loss: f64,
    products: Vec<f64>,
    pairs: Vec<f64>,
}

impl NormalEquations {
    /// A gram matrix of zeros.
    pub(super) fn clear(&mut self, size: usize) {
        if self.gram.nrows() == size {
            self.gram.fill(0.0);
        } else {
            self.gram = DMatrix::zeros(size, size);
        }
    }
}

/// x and y of up to [`BLOCK`] rows, each column-major by itself.
pub(super) type Block = (DMatrix<f64>, DMatrix<f64>);

/// Rows cut into blocks.
#[derive(Clone)]
pub(super) struct Rows<'a> {
    kind: Kind<'a>,
    /// Number of rows N.
    pub(super) count: usize,
    outputs: usize,
    /// ||y||^2.
    square: f64,
}

#[derive(Clone)]
enum Kind<'a> {
    /// Made once, read by every step.
    Kept(Vec<Block>),
    /// Too many to keep: every `stride`-th row of a problem, made at every step.
    Read(Problem<'a>, usize),
    /// What stands for rows that are not here.
    Condensed(&'a Moments),
}

impl<'a> Rows<'a> {
    /// All rows of a problem, or every `stride`-th.
    pub(super) fn new(problem: &Problem<'a>, stride: usize) -> Self {
        let (count, outputs) = (problem.x.nrows().div_ceil(stride), problem.y.ncols());
        let mut rows = Self { kind: Kind::Read(*problem, stride), count, outputs, square: 0.0 };
        let square = |k| problem.y.select_rows(&numbers(k, stride, count)).norm_squared();
        rows.square = (0..rows.blocks()).map(square).sum();
        if count * problem.x.ncols() <= KEPT {
            rows.kind = Kind::Kept(rows.batch(0..rows.blocks()).into_owned());
        }
        rows
    }

    /// All rows of a problem, made at every step however few they are.
    pub(super) fn read(problem: &Problem<'a>) -> Self {
        let (count, outputs) = (problem.x.nrows(), problem.y.ncols());
        Self { kind: Kind::Read(*problem, 1), count, outputs, square: problem.y.norm_squared() }
    }

    /// All rows of a problem, kept however many they are.
    pub(super) fn kept(problem: &Problem<'_>) -> Rows<'static> {
        let (count, outputs) = (problem.x.nrows(), problem.y.ncols());
        let block = |k: usize| -> Block {
            let rows = BLOCK.min(count - k * BLOCK);
            (problem.x.rows(k * BLOCK, rows), problem.y.rows(k * BLOCK, rows).into_owned())
        };
        let blocks: Vec<Block> = (0..count.div_ceil(BLOCK)).map(block).collect();
        let square = blocks.iter().map(|(_, y)| y.norm_squared()).sum();
        Rows { kind: Kind::Kept(blocks), count, outputs, square }
    }

    /// Rows known by their moments only.
    pub(super) fn condensed(moments: &'a Moments) -> Self {
        let outputs = moments.outputs();
        Self { kind: Kind::Condensed(moments), count: moments.count, outputs, square: moments.square }
    }

    /// What stands for rows that are not here.
    pub(super) fn moments(&self) -> Option<&Moments> {
        match self.kind {
            Kind::Condensed(moments) => Some(moments),
            _ => None,
        }
    }

    /// The rows themselves are not here.
    pub(super) fn are_condensed(&self) -> bool {
        matches!(self.kind, Kind::Condensed(_))
    }

    /// Number of values N l.
    pub(super) fn entries(&self) -> usize {
        self.count * self.outputs
    }

    /// ||y||^2.
    pub(super) fn square(&self) -> f64 {
        self.square
    }

    /// Number of blocks.
    pub(super) fn blocks(&self) -> usize {
        match self.kind {
            Kind::Condensed(_) => 0,
            _ => self.count.div_ceil(BLOCK),
        }
    }

    /// Block `k`.
    fn block(&self, k: usize) -> Cow<'_, Block> {
        match &self.kind {
            Kind::Kept(blocks) => Cow::Borrowed(&blocks[k]),
            Kind::Read(problem, stride) => {
                let rows = numbers(k, *stride, self.count);
                Cow::Owned((problem.x.select_rows(&rows), problem.y.select_rows(&rows)))
            }
            Kind::Condensed(_) => unreachable!("moments have no blocks"),
        }
    }

    /// Some blocks.
    pub(super) fn batch(&self, range: Range<usize>) -> Cow<'_, [Block]> {
        match &self.kind {
            Kind::Kept(blocks) => Cow::Borrowed(&blocks[range]),
            _ => Cow::Owned(range.into_par_iter().map(|k| self.block(k).into_owned()).collect()),
        }
    }

    /// Group `k` of `size` blocks.
    pub(super) fn group(&self, k: usize, size: usize) -> Cow<'_, [Block]> {
        let range = k * size..((k + 1) * size).min(self.blocks());
        match &self.kind {
            Kind::Kept(blocks) => Cow::Borrowed(&blocks[range]),
            _ => Cow::Owned(range.map(|k| self.block(k).into_owned()).collect()),
        }
    }

    /// ||y - f||^2.
    pub(super) fn loss(&self, train: &Network) -> f64 {
        if let Kind::Condensed(moments) = self.kind {
            return moments.loss(train);
        }
        let unfolded: Vec<_> = train.cores.iter().map(unfold).collect();
        let loss = |k: usize| -> f64 {
            let (x, y) = &*self.block(k);
            let values = evaluate_block(train, &unfolded, x.as_slice(), x.nrows());
            values.iter().zip(y.as_slice()).map(|(f, y)| (y - f).powi(2)).sum()
        };
        if self.count * train.parameters() < WORTH_A_THREAD {
            return (0..self.blocks()).map(loss).sum();
        }
        let losses: Vec<f64> = (0..self.blocks()).into_par_iter().map(loss).collect();
        losses.iter().sum()
    }

    /// The normal equations for the cores in `cores`, into `out`.
    pub(super) fn normal_equations(&self, train: &Network, cores: Range<usize>, out: &mut NormalEquations) {
        let q = train.q();
        let components = Components::new(train, cores);
        if let Kind::Condensed(moments) = self.kind {
            return moments.normal_equations(train, &components, out);
        }
        let inputs: Vec<(usize, usize)> = (0..q).flat_map(|i| (0..=i).map(move |j| (i, j))).collect();
        let width = components.columns;
        let unfolded: Vec<_> = train.cores.iter().map(unfold).collect();
        out.products.clear();
        out.products.resize(width * inputs.len(), 0.0);
        let mut gradient = vec![0.0; components.list.len() * q];
        out.loss = 0.0;
        let blocks = self.blocks();
        let batch = (BUFFER / (width * BLOCK)).min(READ / (q * BLOCK)).clamp(1, blocks.max(1));
        out.pairs.resize(batch * width * BLOCK, 0.0);
        for start in (0..blocks).step_by(batch) {
            let batch = self.batch(start..(start + batch).min(blocks));
            let parallel = batch.len() * BLOCK * width * inputs.len() >= WORTH_A_THREAD;
            let weigh =
                |((x, y), pairs): (&Block, &mut [f64])| components.weigh(train, &unfolded, x, y, pairs);
            let parts: Vec<_> = if parallel {
                batch.par_iter().zip(out.pairs.par_chunks_mut(width * BLOCK)).map(weigh).collect()
            } else {
                batch.iter().zip(out.pairs.chunks_mut(width * BLOCK)).map(weigh).collect()
            };
            for (part, loss) in &parts {
                gradient.iter_mut().zip(part).for_each(|(g, p)| *g += p);
                out.loss += loss;
            }
            let pairs = &out.pairs;
            let multiply = |(products, inputs): (&mut [f64], &[(usize, usize)])| {
                let mut z = vec![0.0; BLOCK * inputs.len()];
                for ((x, _), w) in batch.iter().zip(pairs.chunks_exact(width * BLOCK)) {
                    let rows = x.nrows();
                    let column = |i: usize| &x.as_slice()[i * rows..][..rows];
                    for (&(i, j), z) in inputs.iter().zip(z.chunks_exact_mut(rows)) {
                        z.iter_mut().zip(column(i)).zip(column(j)).for_each(|((z, a), b)| *z = a * b);
                    }
                    let z = columns(&z[..rows * inputs.len()], rows, inputs.len());
                    let w = columns(&w[..rows * width], rows, width);
                    add_product(columns_mut(products, width, inputs.len()), w.transpose(), z);
                }
            };
            if parallel {
                let panels = out.products.par_chunks_mut(width * PANEL);
                panels.zip(inputs.par_chunks(PANEL)).for_each(multiply);
            } else {
                out.products.chunks_mut(width * PANEL).zip(inputs.chunks(PANEL)).for_each(multiply);
            }
        }
        components.assemble(q, &gradient, out);
    }
}

/// The numbers of the rows in block `k` of `count` rows, every `stride`-th of all.
fn numbers(k: usize, stride: usize, count: usize) -> Vec<usize> {
    (k * BLOCK..((k + 1) * BLOCK).min(count)).map(|row| row * stride).collect()
}

/// `work` for 0..count on all threads, its results taken in order and never many at a time.
pub(super) fn in_order<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync, mut take: impl FnMut(T)) {
    let wave = 4 * rayon::current_num_threads();
    for start in (0..count).step_by(wave) {
        let results: Vec<T> = (start..(start + wave).min(count)).into_par_iter().map(&work).collect();
        results.into_iter().for_each(&mut take);
    }
}

/// The components (k, a, b) of some cores and the columns of W that their pairs share.
pub(super) struct Components {
    /// (core, a, b) and the position of V_k(a, 0, b) among the coefficients, with the stride from i to i + 1.
    pub(super) list: Vec<(usize, usize, usize, usize, usize)>,
    /// Column of W for the pair (c, c'), c' <= c, or `usize::MAX` where the product is zero.
    column: Vec<usize>,
    columns: usize,
    /// Components of the first core, and its right bond.
    first: usize,
    first_bond: usize,
    outputs: usize,
}

impl Components {
    pub(super) fn new(train: &Network, cores: Range<usize>) -> Self {
        let mut list = Vec::new();
        let mut start = 0;
        for k in cores.clone() {
            let core = &train.cores[k];
            for a in 0..core.left {
                for b in 0..core.right {
                    list.push((k, a, b, start + a * core.q * core.right + b, core.right));
                }
            }
            start += core.data.len();
        }
        let outputs = train.outputs();
        let first_bond = train.cores[0].right;
        let first = if cores.start == 0 { outputs * first_bond } else { 0 };
        let mut column = Vec::new();
        // The first core sees each output by itself: pairs of one output share the columns of R R^T, pairs of two
        // outputs vanish.
        let mut columns = if first > 0 { first_bond * (first_bond + 1) / 2 } else { 0 };
        for c in 0..list.len() {
            for e in 0..=c {
                let both_first = c < first;
                if both_first && c / first_bond != e / first_bond {
                    column.push(usize::MAX);
                } else if both_first {
                    let (b, f) = (c % first_bond, e % first_bond);
                    column.push(b * (b + 1) / 2 + f);
                } else {
                    column.push(columns);
                    columns += 1;
                }
            }
        }
        Self { list, column, columns, first, first_bond, outputs }
    }

    /// w_c(t, j) for every component and output, zero where the first core belongs to another output; and y - f.
    pub(super) fn weights(
        &self,
        train: &Network,
        unfolded: &[DMatrix<f64>],
        x: &DMatrix<f64>,
        y: &DMatrix<f64>,
    ) -> (Vec<f64>, Vec<f64>) {
        let rows = x.nrows();
        let parts = Contraction::new(train, unfolded, x.as_slice(), rows);
        let residual = y.as_slice().iter().zip(parts.outputs()).map(|(y, f)| y - f).collect();
        let outputs = self.outputs;
        let mut w = vec![0.0; self.list.len() * outputs * rows];
        for (&(k, a, b, ..), w) in self.list.iter().zip(w.chunks_exact_mut(outputs * rows)) {
            let right = &parts.right[k + 1][b * rows..][..rows];
            for (j, w) in w.chunks_exact_mut(rows).enumerate() {
                if k == 0 && a == j {
                    w.copy_from_slice(right);
                } else if k > 0 {
                    let left = &parts.left[k][(j * train.cores[k].left + a) * rows..][..rows];
                    w.iter_mut().zip(left).zip(right).for_each(|((w, l), r)| *w = l * r);
                }
            }
        }
        (w, residual)
    }

    fn weigh(
        &self,
        train: &Network,
        unfolded: &[DMatrix<f64>],
        x: &DMatrix<f64>,
        y: &DMatrix<f64>,
        pairs: &mut [f64],
    ) -> (Vec<f64>, f64) {
        let rows = x.nrows();
        let outputs = self.outputs;
        let (w, residual) = self.weights(train, unfolded, x, y);
        let column = |c: usize, j: usize| &w[(c * outputs + j) * rows..][..rows];
        let mut weighted = vec![0.0; rows * self.list.len()];
        for c in 0..self.list.len() {
            let only = |e: usize| (e < self.first).then_some(e / self.first_bond);
            for e in 0..=c {
                let at = self.column[c * (c + 1) / 2 + e];
                // Pairs of the first core are equal for all outputs: those of the first output fill the column.
                if at == usize::MAX || (c < self.first && c >= self.first_bond) {
                    continue;
                }
                let to = &mut pairs[at * rows..][..rows];
                let range = match only(e) {
                    Some(j) => j..j + 1,
                    None => 0..outputs,
                };
                let first = range.start;
                to.iter_mut()
                    .zip(column(c, first))
                    .zip(column(e, first))
                    .for_each(|((to, a), b)| *to = a * b);
                for j in range.skip(1) {
                    to.iter_mut().zip(column(c, j)).zip(column(e, j)).for_each(|((to, a), b)| *to += a * b);
                }
            }
            let to = &mut weighted[c * rows..][..rows];
            let range = match only(c) {
                Some(j) => j..j + 1,
                None => 0..outputs,
            };
            for j in range {
                let residual = &residual[j * rows..][..rows];
                to.iter_mut().zip(column(c, j)).zip(residual).for_each(|((to, a), r)| *to += a * r);
            }
        }
        let q = x.ncols();
        let mut gradient = vec![0.0; q * self.list.len()];
        let weighted = columns(&weighted, rows, self.list.len());
        let x = columns(x.as_slice(), rows, q);
        add_product(columns_mut(&mut gradient, q, self.list.len()), x.transpose(), weighted);
        (gradient, residual.iter().map(|r| r * r).sum())
    }

    fn assemble(&self, q: usize, gradient: &[f64], out: &mut NormalEquations) {
        let size = self.list.len() * q;
        out.clear(size);
        let mut ordered = DMatrix::zeros(size, 1);
        let products = &out.products;
        for (c, &(.., start, stride)) in self.list.iter().enumerate() {
            for i in 0..q {
                ordered[start + i * stride] = gradient[c * q + i];
            }
            for (e, &(.., other, step)) in self.list.iter().enumerate().take(c + 1) {
                let column = self.column[c * (c + 1) / 2 + e];
                if column == usize::MAX {
                    continue;
                }
                let mut pair = column;
                for i in 0..q {
                    for j in 0..=i {
                        let value = products[pair];
                        pair += self.columns;
                        for (i, j) in [(i, j), (j, i)] {
                            let (row, col) = (start + i * stride, other + j * step);
                            out.gram[(row.max(col), row.min(col))] = value;
                        }
                    }
                }
            }
        }
        out.gradient = ordered;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Normal;

    #[test]
    fn rows_read_at_every_step_give_the_same_bits() {
        let mut normal = Normal::new(1);
        let x = DMatrix::from_fn(2001, 5, |_, i| if i == 0 { 1.0 } else { normal.draw() });
        let y = DMatrix::from_fn(2001, 2, |_, _| normal.draw());
        let train = Network::random(2, 5, &[2, 2], &mut normal);
        for stride in [1, 3] {
            let kept = Rows::new(&Problem { x: &x, y: &y }, stride);
            let read = Rows { kind: Kind::Read(Problem { x: &x, y: &y }, stride), ..kept.clone() };
            assert_eq!((kept.count, kept.square), (2001 / stride, read.square));
            assert_eq!(kept.loss(&train), read.loss(&train));
            let (mut a, mut b) = (NormalEquations::default(), NormalEquations::default());
            kept.normal_equations(&train, 0..3, &mut a);
            read.normal_equations(&train, 0..3, &mut b);
            assert_eq!((a.gram, a.gradient, a.loss), (b.gram, b.gradient, b.loss));
        }
    }
}
