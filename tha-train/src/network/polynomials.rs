//! Polynomials by their coefficients over the distinct monomials: a network is a product of matrices of linear forms, and with few
//! monomials its coefficients cost less than its values at as many points.

use super::{Monomials, Network, monomials, unfold};
use nalgebra::DMatrix;

/// Tables of products of monomials in q variables, up to a degree. Monomials stand in the order of [`super::Monomials`].
pub(crate) struct Polynomials {
    q: usize,
    degree: usize,
    /// Per degree k < d: x_i times monomial m, at i count_k + m.
    times: Vec<Vec<u32>>,
    /// Per k < d: a monomial of degree k times one of degree d - 1 - k, at n count_k + m.
    around: Vec<Vec<u32>>,
}

impl Polynomials {
    pub(crate) fn new(q: usize, degree: usize) -> Self {
        let levels: Vec<Monomials> = (1..=degree).map(|k| Monomials::new(q, k)).collect();
        let factors = |k: usize| -> Vec<Vec<usize>> {
            let Some(level) = k.checked_sub(1) else { return vec![Vec::new()] };
            (0..levels[level].count()).map(|m| levels[level].factors(m)).collect()
        };
        // Monomials of degree k times those of degree n.
        let table = |k: usize, n: usize| -> Vec<u32> {
            let (short, long) = (factors(k), factors(n));
            let place = |a: &Vec<usize>, b: &Vec<usize>| {
                let mut both = [&a[..], b].concat();
                both.sort_unstable();
                (k + n).checked_sub(1).map_or(0, |level| levels[level].place(&both)) as u32
            };
            long.iter().flat_map(|b| short.iter().map(|a| place(a, b)).collect::<Vec<_>>()).collect()
        };
        let times = (0..degree).map(|k| table(k, 1)).collect();
        let around = (0..degree).map(|k| table(k, degree - 1 - k)).collect();
        Self { q, degree, times, around }
    }

    /// Monomials of degree d that contain the first variable: those of degree d - 1 times it.
    pub(crate) fn with_constant(&self) -> &[u32] {
        let last = &self.times[self.degree - 1];
        &last[..last.len() / self.q]
    }

    /// Coefficients of sum_i x_i p_i, p_i of degree d - 1 the columns of `parts`; they are added to `to`.
    pub(crate) fn add_forms(&self, parts: &DMatrix<f64>, to: &mut [f64]) {
        let table = &self.times[self.degree - 1];
        parts.iter().zip(table).for_each(|(value, &place)| to[place as usize] += value);
    }

    /// The transpose of [`Polynomials::add_forms`].
    pub(crate) fn forms(&self, from: &[f64]) -> DMatrix<f64> {
        let table = &self.times[self.degree - 1];
        DMatrix::from_iterator(table.len() / self.q, self.q, table.iter().map(|&place| from[place as usize]))
    }

    /// What stands around core `k` of a network: for every output the products of what is left and right of the core, each a column
    /// of coefficients of degree d - 1, in the order of the columns of an unfolding. The outputs share those of the first core.
    pub(crate) fn around(&self, network: &Network, k: usize) -> Vec<DMatrix<f64>> {
        let right = self.right(network, k);
        if k == 0 {
            return vec![right];
        }
        let left = self.left(network, k);
        let (a, b) = (network.cores[k].left, network.cores[k].right);
        let (table, count) = (&self.around[k], monomials(self.q, self.degree - 1));
        let of_output = |j: usize| {
            let mut all = DMatrix::zeros(count, a * b);
            for (c, mut to) in all.column_iter_mut().enumerate() {
                let (left, right) = (left.column(j * a + c / b), right.column(c % b));
                for (&r, table) in right.iter().zip(table.chunks_exact(left.len())) {
                    left.iter().zip(table).for_each(|(l, &place)| to[place as usize] += l * r);
                }
            }
            all
        };
        (0..network.outputs()).map(of_output).collect()
    }

    /// Coefficients of V_{k+2}(x) ... V_d(x), one column for each entry.
    fn right(&self, network: &Network, k: usize) -> DMatrix<f64> {
        let mut all = DMatrix::from_element(1, 1, 1.0);
        for (degree, core) in network.cores[k + 1..].iter().rev().enumerate() {
            let slices = unfold(core);
            let part = |a: usize| &all * slices.columns(a * core.right, core.right).transpose();
            all = self.longer(degree, core.left, part);
        }
        all
    }

    /// Coefficients of V_1(x) ... V_k(x), row by row.
    fn left(&self, network: &Network, k: usize) -> DMatrix<f64> {
        let first = unfold(&network.cores[0]);
        let mut all = self.longer(0, first.ncols(), |c| first.columns(c, 1).transpose());
        for (degree, core) in network.cores[..k].iter().enumerate().skip(1) {
            let slices = unfold(core);
            let part = |c: usize| {
                let slices = slices.columns_with_step(c % core.right, core.left, core.right - 1);
                all.columns(c / core.right * core.left, core.left) * slices.transpose()
            };
            all = self.longer(degree, network.outputs() * core.right, part);
        }
        all
    }

    /// Columns sum_i x_i p_i, p_i of this degree the columns of a part.
    fn longer(&self, degree: usize, columns: usize, part: impl Fn(usize) -> DMatrix<f64>) -> DMatrix<f64> {
        let mut all = DMatrix::zeros(monomials(self.q, degree + 1), columns);
        for (c, mut to) in all.column_iter_mut().enumerate() {
            let table = self.times[degree].iter();
            part(c).iter().zip(table).for_each(|(value, &place)| to[place as usize] += value);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::super::Normal;
    use super::*;

    #[test]
    fn values_of_the_polynomial_are_those_of_the_network() {
        let mut normal = Normal::new(1);
        for (outputs, q, ranks) in
            [(1, 4, vec![2, 3]), (2, 3, vec![2]), (2, 5, vec![]), (3, 3, vec![3, 2, 2])]
        {
            let network = Network::random(outputs, q, &ranks, &mut normal);
            let (all, monomials) = (Polynomials::new(q, ranks.len() + 1), Monomials::new(q, ranks.len() + 1));
            let x = DMatrix::from_fn(7, q, |_, _| normal.draw());
            let expected = network.evaluate(&x);
            for (k, core) in network.cores.iter().enumerate() {
                let (around, slices) = (all.around(&network, k), unfold(core));
                for j in 0..outputs {
                    let of_output = if k == 0 {
                        slices.columns(j * core.right, core.right)
                    } else {
                        slices.columns(0, slices.ncols())
                    };
                    let around = &around[if k == 0 { 0 } else { j }];
                    let mut coefficients = vec![0.0; monomials.count()];
                    all.add_forms(&(around * of_output.transpose()), &mut coefficients);
                    let values = monomials.products(&x)
                        * DMatrix::from_column_slice(monomials.count(), 1, &coefficients);
                    assert!(
                        (values - expected.column(j)).norm() < 1e-12 * expected.norm(),
                        "core {k}, output {j}"
                    );
                }
            }
            let constant: Vec<usize> = all.with_constant().iter().map(|&m| m as usize).collect();
            assert!(constant.iter().all(|&m| monomials.factors(m)[0] == 0));
            assert!((0..monomials.count()).filter(|&m| monomials.factors(m)[0] == 0).eq(constant));
        }
    }
}
