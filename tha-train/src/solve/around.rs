//! What stands around a core, for a block of n rows: products with L_t to its left and R_t to its right, each column n numbers long.

/// sum_a L(j, a) t_a for every output j, rows x l; in the same way sum_b V(a, b) R_b for every a.
pub(super) fn predicted(left: &[f64], inner: &[f64], n: usize, outputs: usize) -> Vec<f64> {
    let mut prediction = vec![0.0; n * outputs];
    for (to, left) in prediction.chunks_exact_mut(n).zip(left.chunks_exact(inner.len())) {
        for (left, inner) in left.chunks_exact(n).zip(inner.chunks_exact(n)) {
            to.iter_mut().zip(left.iter().zip(inner)).for_each(|(to, (l, i))| *to += l * i);
        }
    }
    prediction
}

/// sum_j L(j, a) v_j for every a, rows x a; `left` empty is the identity.
pub(super) fn gathered(left: &[f64], values: Vec<f64>, n: usize, a: usize) -> Vec<f64> {
    if left.is_empty() {
        return values;
    }
    let mut sums = vec![0.0; n * a];
    for (left, value) in left.chunks_exact(n * a).zip(values.chunks_exact(n)) {
        for (to, left) in sums.chunks_exact_mut(n).zip(left.chunks_exact(n)) {
            to.iter_mut().zip(left.iter().zip(value)).for_each(|(to, (l, v))| *to += l * v);
        }
    }
    sums
}

/// s_a R_b, rows x (a b).
pub(super) fn spread(sums: &[f64], right: &[f64], n: usize, (a, b): (usize, usize)) -> Vec<f64> {
    let mut values = vec![0.0; n * a * b];
    for (to, sum) in values.chunks_exact_mut(n * b).zip(sums.chunks_exact(n)) {
        for (to, right) in to.chunks_exact_mut(n).zip(right.chunks_exact(n)) {
            to.iter_mut().zip(sum.iter().zip(right)).for_each(|(to, (s, r))| *to = s * r);
        }
    }
    values
}
