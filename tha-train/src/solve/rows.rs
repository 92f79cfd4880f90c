//! Rows of a problem as a descent reads them: kept, made anew at every step, or replaced by their moments.

use super::Problem;
use super::moments::Moments;
use crate::network::{BLOCK, Design, Hats, Network, evaluate_block};
use nalgebra::DMatrix;
use rayon::prelude::*;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// Multiplications below which waking other threads costs more than it saves.
pub(super) const WORTH_A_THREAD: usize = 1 << 25;
/// Entries of x up to which the rows are kept; above, making them again at every step costs a tenth to a third more time.
pub(crate) const KEPT: usize = 1 << 25;

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
    pub(super) square: f64,
}

#[derive(Clone)]
enum Kind<'a> {
    /// Made once, read by every step.
    Kept(Arc<[Block]>),
    /// Too many to keep: every `stride`-th row of a problem, made at every step.
    Read(Problem<'a>, usize),
    /// What stands for rows that are not here.
    Condensed(&'a Moments),
    /// Parts of mapped rows, and their outputs.
    Mapped(&'a [Hats], Vec<DMatrix<f64>>),
}

impl<'a> Rows<'a> {
    /// All rows of a problem, or every `stride`-th.
    pub(super) fn new(problem: &Problem<'a>, stride: usize) -> Self {
        let (count, outputs) = (problem.x.nrows().div_ceil(stride), problem.y.ncols());
        let mut rows = Self { kind: Kind::Read(*problem, stride), count, outputs, square: 0.0 };
        let square = |k| problem.y.select_rows(&numbers(k, stride, count)).norm_squared();
        rows.square = (0..rows.blocks()).map(square).sum();
        if count * problem.x.ncols() <= KEPT {
            rows.kind = Kind::Kept(rows.batch(0..rows.blocks()).into_owned().into());
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
        let Rows { count, outputs, .. } = Rows::read(problem);
        let blocks: Arc<[Block]> = Rows::read(problem).batch(0..count.div_ceil(BLOCK)).into_owned().into();
        let square = blocks.iter().map(|(_, y)| y.norm_squared()).sum();
        Rows { kind: Kind::Kept(blocks), count, outputs, square }
    }

    /// Mapped rows, in parts.
    pub(super) fn mapped(parts: &'a [Hats], y: &DMatrix<f64>) -> Self {
        let starts = parts.iter().scan(0, |end, part| {
            let start = *end;
            *end += part.nrows();
            Some((start, part.nrows()))
        });
        let outputs = starts.map(|(start, count)| y.rows(start, count).into_owned()).collect();
        let kind = Kind::Mapped(parts, outputs);
        Self { kind, count: y.nrows(), outputs: y.ncols(), square: y.norm_squared() }
    }

    /// The parts of mapped rows.
    pub(super) fn hats(&self) -> Option<(&[Hats], &[DMatrix<f64>])> {
        match &self.kind {
            Kind::Mapped(parts, outputs) => Some((parts, outputs)),
            _ => None,
        }
    }

    /// Rows known by their moments only.
    pub(super) fn condensed(moments: &'a Moments) -> Self {
        let outputs = moments.points.1.ncols();
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

    /// Number of blocks.
    pub(super) fn blocks(&self) -> usize {
        match &self.kind {
            Kind::Condensed(_) => 0,
            Kind::Mapped(parts, _) => parts.len(),
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
            Kind::Condensed(_) | Kind::Mapped(..) => unreachable!("neither moments nor maps have blocks"),
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
    pub(super) fn loss(&self, network: &Network) -> f64 {
        if let Kind::Condensed(moments) = self.kind {
            return moments.loss(network);
        }
        let unfolded = network.unfolded();
        let loss = |k: usize| -> f64 {
            let (x, y) = &*self.block(k);
            let values = evaluate_block(network, &unfolded, x);
            values.iter().zip(y.as_slice()).map(|(f, y)| (y - f).powi(2)).sum()
        };
        if self.count * network.parameters() < WORTH_A_THREAD {
            return (0..self.blocks()).map(loss).sum();
        }
        let losses: Vec<f64> = (0..self.blocks()).into_par_iter().map(loss).collect();
        losses.iter().sum()
    }
}

/// The numbers of the rows in block `k` of `count` rows, every `stride`-th of all.
fn numbers(k: usize, stride: usize, count: usize) -> Vec<usize> {
    (k * BLOCK..((k + 1) * BLOCK).min(count)).map(|row| row * stride).collect()
}

/// `work` for 0..count on all threads, its results taken in order and never many at a time.
pub(super) fn in_order<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync, mut take: impl FnMut(T)) {
    let most = 4 * rayon::current_num_threads();
    for start in (0..count).step_by(most) {
        let results: Vec<T> = (start..(start + most).min(count)).into_par_iter().map(&work).collect();
        results.into_iter().for_each(&mut take);
    }
}

#[cfg(test)]
mod tests {
    use super::super::jacobian::NormalEquations;
    use super::*;
    use crate::network::Normal;

    #[test]
    fn rows_read_at_every_step_give_the_same_bits() {
        let mut normal = Normal::new(1);
        let x = DMatrix::from_fn(2001, 5, |_, i| if i == 0 { 1.0 } else { normal.draw() });
        let y = DMatrix::from_fn(2001, 2, |_, _| normal.draw());
        let network = Network::random(2, 5, &[2, 2], &mut normal);
        for stride in [1, 3] {
            let kept = Rows::new(&Problem { x: &x, y: &y }, stride);
            let read = Rows { kind: Kind::Read(Problem { x: &x, y: &y }, stride), ..kept.clone() };
            assert_eq!((kept.count, kept.square), (2001 / stride, read.square));
            assert_eq!(kept.loss(&network), read.loss(&network));
            let (a, b) =
                (NormalEquations::new(&kept, &network, 0..3), NormalEquations::new(&read, &network, 0..3));
            assert_eq!((a.gram, a.gradient, a.loss), (b.gram, b.gradient, b.loss));
        }
    }
}
