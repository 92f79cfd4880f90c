//! Counting: distinct monomials, ranks a bond can use, and the dimension of the polynomials of given ranks.

/// C(n, k), at most `usize::MAX`.
pub(crate) fn choose(n: usize, k: usize) -> usize {
    let mut result: u128 = 1;
    // Of k and n - k the smaller, so that the intermediate results are no larger than the last.
    for i in 0..k.min(n.saturating_sub(k)) {
        result = result * (n - i) as u128 / (i + 1) as u128;
        if result > usize::MAX as u128 {
            return usize::MAX;
        }
    }
    if k > n { 0 } else { result as usize }
}

/// C(q + d - 1, d), the distinct monomials of degree d in q variables, at most `usize::MAX`.
pub(crate) fn monomials(q: usize, degree: usize) -> usize {
    choose((q + degree).saturating_sub(1), degree)
}

/// `cap` at every bond, or less where fewer directions exist: bond k separates polynomials of degree k from those of
/// degree d - k, and of those there are no more than monomials (times l on the left).
pub(crate) fn useful_ranks(degree: usize, outputs: usize, q: usize, cap: usize) -> Vec<usize> {
    let bound = |k| monomials(q, degree - k).min(monomials(q, k).saturating_mul(outputs));
    (1..degree).map(|k| cap.min(bound(k))).collect()
}

/// Dimension of the set of polynomials that networks of these ranks represent: the coefficients less the gauge freedom
/// r_k^2 at every bond, less the antisymmetric freedom at the last bond (at the first too where there is one output),
/// and no more than there are monomials. Generic: special polynomials have fewer.
pub(crate) fn dimension(ranks: &[usize], outputs: usize, q: usize) -> usize {
    let degree = ranks.len() + 1;
    let bonds: Vec<usize> = [&[outputs], ranks, &[1]].concat();
    let coefficients: usize = bonds.windows(2).map(|b| b[0] * q * b[1]).sum();
    let gauge: usize = ranks.iter().map(|r| r * r).sum();
    let antisymmetric = |end: usize, next: usize| next * end * (end - 1) / 2;
    let mut freedom = 0;
    if degree > 1 {
        freedom += antisymmetric(ranks[degree - 2], bonds[degree - 2]);
        if outputs == 1 {
            freedom += antisymmetric(ranks[0], bonds[2]);
        }
    }
    coefficients.saturating_sub(gauge + freedom).min(monomials(q, degree).saturating_mul(outputs)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_the_reference_problems() {
        assert_eq!(monomials(9, 3), 165);
        assert_eq!(monomials(7, 4), 210);
        assert_eq!(monomials(25, 3), 2925);
        assert_eq!(monomials(1000, 30), usize::MAX);
        assert_eq!(useful_ranks(3, 1, 2, 9), vec![2, 2]);
        assert_eq!(useful_ranks(1, 1, 5, 4), Vec::<usize>::new());
    }

    #[test]
    fn dimensions_known_from_geometry() {
        // Cubics in six variables that contain two disjoint planes have codimension two among 56.
        assert_eq!(dimension(&[3, 3], 1, 6), 54);
        // Symmetric matrices of rank 4 in five variables: 15 - 1.
        assert_eq!(dimension(&[2], 1, 5), 14);
        assert_eq!(dimension(&[], 2, 5), 10);
    }
}
