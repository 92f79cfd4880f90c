//! Sums, scalings, inner products, masks and the dense tensor of a network.

use super::{Core, Network};
use nalgebra::DMatrix;

impl Network {
    /// The sum of two networks of equal degree, q and outputs; ranks add.
    ///
    /// # Panics
    /// Panics when degree, q or outputs differ.
    pub fn add(&self, other: &Self) -> Self {
        assert_eq!(
            (self.degree(), self.q(), self.outputs()),
            (other.degree(), other.q(), other.outputs()),
            "networks to be added must agree in degree, q and outputs"
        );
        let last = self.degree() - 1;
        let cores = self.cores.iter().zip(&other.cores).enumerate().map(|(k, (a, b))| {
            // The first cores share their left bond (the outputs), the last ones their right bond.
            let (down, across) = (if k == 0 { 0 } else { a.left }, if k == last { 0 } else { a.right });
            let mut sum = Core::zeros(down + b.left, a.q, across + b.right);
            for (core, down, across) in [(a, 0, 0), (b, down, across)] {
                for l in 0..core.left {
                    for i in 0..core.q {
                        for r in 0..core.right {
                            let at = ((l + down) * sum.q + i) * sum.right + r + across;
                            sum.data[at] += core.get(l, i, r);
                        }
                    }
                }
            }
            sum
        });
        Self { cores: cores.collect() }
    }

    /// Multiplies the tensor by a number.
    pub fn scale(&mut self, factor: f64) {
        self.cores[0].data.iter_mut().for_each(|v| *v *= factor);
    }

    /// The Frobenius inner product <A, B> of two networks of equal degree, q and outputs.
    ///
    /// # Panics
    /// Panics when degree, q or outputs differ.
    pub fn inner(&self, other: &Self) -> f64 {
        assert_eq!(self.degree(), other.degree(), "networks must agree in degree");
        let mut carry = DMatrix::identity(self.outputs(), other.outputs());
        for (a, b) in self.cores.iter().zip(&other.cores) {
            // carry(a, b) -> sum over a, b, i of carry(a, b) A(a, i, a') B(b, i, b')
            let half = Core::from_unfolding(carry.nrows(), b.q, b.right, &(&carry * b.wide()));
            carry = a.tall().transpose() * half.tall();
        }
        carry[(0, 0)]
    }

    /// The Frobenius norm of B.
    pub fn norm(&self) -> f64 {
        let mut canonical = self.clone();
        canonical.orthogonalize_right();
        canonical.cores[0].tall().norm()
    }

    /// All l q^d entries, B(j, i1..id) at `((j q + i1) q + i2) ...`. For tests and small models only.
    pub fn to_dense(&self) -> Vec<f64> {
        let mut rows = self.outputs();
        let mut dense: DMatrix<f64> = DMatrix::identity(rows, rows);
        for core in &self.cores {
            // (rows x left) (left x q right), then rows and q grow together.
            let product = dense * core.wide();
            rows *= core.q;
            dense = DMatrix::from_row_slice(rows, core.right, product.transpose().as_slice());
        }
        dense.as_slice().to_vec()
    }
}
