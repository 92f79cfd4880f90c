//! Both levels against each other and against dense algebra.

use super::*;

fn sample(rows: usize, cols: usize) -> DMatrix<f64> {
    DMatrix::from_fn(rows, cols, |i, j| ((i * 7 + j * 13) as f64).sin())
}

#[test]
fn factorisations_rebuild_their_input() {
    let a = sample(9, 4);
    let (q, r) = qr(&a);
    assert!((&q * &r - &a).norm() < 1e-12);
    let f = svd(&a).unwrap();
    let s = DMatrix::from_diagonal(&nalgebra::DVector::from_vec(f.s.clone()));
    assert!((&f.u * s * f.v.transpose() - &a).norm() < 1e-12);
    let mut gram = DMatrix::zeros(4, 4);
    add_gram_lower(view_mut(&mut gram), view(&a));
    gram.fill_upper_triangle_with_lower_triangle();
    assert!((&gram - a.transpose() * &a).norm() < 1e-12);
}

#[test]
fn the_fingerprint_does_not_depend_on_where_the_memory_lies() {
    let expected = fingerprint();
    // Blocks that stay allocated move the next ones by a part of a vector register.
    let mut kept: Vec<Vec<u8>> = Vec::new();
    for size in 1..40 {
        kept.extend([vec![0; 8 * size], vec![0; 1368 + 24 * size], vec![0; 10_000 + 16 * size]]);
        assert_eq!(fingerprint(), expected, "{size}");
    }
    assert_eq!(kept.len(), 3 * 39);
}

#[test]
fn minimal_norm_drops_what_the_data_do_not_determine() {
    let a = DMatrix::from_row_slice(2, 3, &[1.0, 1.0, 0.0, 0.0, 0.0, 2.0]);
    let y = DMatrix::from_row_slice(2, 1, &[2.0, 4.0]);
    let z = minimal_norm(&(a.transpose() * &a), &(a.transpose() * y), 1e-12).unwrap();
    assert!((z - DMatrix::from_row_slice(3, 1, &[1.0, 1.0, 2.0])).norm() < 1e-12);
}

/// Sizes on both sides of those of tiles, blocks and sums.
const SIZES: [usize; 11] = [0, 1, 2, 3, 4, 5, 31, 33, 66, 130, 259];

fn random(rows: usize, columns: usize, seed: u64) -> DMatrix<f64> {
    let mut normal = Normal::new(seed);
    DMatrix::from_fn(rows, columns, |_, _| normal.draw())
}

/// The same with both kernels, close to each other in units of the second.
#[track_caller]
fn close(what: &str, work: impl Fn() -> DMatrix<f64> + Sync) -> DMatrix<f64> {
    let (ours, theirs) = (portably(true, &work), work());
    let scale = theirs.amax().max(f64::MIN_POSITIVE);
    let apart = (&ours - &theirs).amax() / scale;
    assert!(apart < 1e-11, "{what}: {apart:e}");
    ours
}

#[test]
fn portable_products_are_those_of_faer() {
    for (k, &rows) in SIZES.iter().enumerate() {
        for (l, &terms) in SIZES.iter().enumerate() {
            let columns = SIZES[(3 * k + 5 * l) % SIZES.len()];
            let what = format!("{rows} x {terms} x {columns}");
            let (a, b) = (random(rows, terms, 1), random(terms, columns, 2));
            let start = random(rows, columns, 3);
            let added = close(&what, || {
                let mut dst = start.clone();
                add_product(view_mut(&mut dst), view(&a), view(&b));
                dst
            });
            let (a_t, b_t) = (a.transpose(), b.transpose());
            // Whatever is transposed, and wherever rows and columns begin: the same bits.
            for (a, b) in [(view(&a_t).transpose(), view(&b)), (view(&a), view(&b_t).transpose())] {
                let mut dst = start.clone();
                portably(true, || add_product(view_mut(&mut dst), a, b));
                assert_eq!(dst, added, "{what}");
            }
            let mut dst = start.transpose();
            portably(true, || add_product(view_mut(&mut dst).transpose_mut(), view(&a), view(&b)));
            assert_eq!(dst.transpose(), added, "{what}");
            let (from, to) = (rows / 3, columns / 3);
            let mut part = start.view((from, to), (rows - from, columns - to)).into_owned();
            portably(true, || {
                let a = view(&a).subrows(from, rows - from);
                add_product(view_mut(&mut part), a, view(&b).subcols(to, columns - to));
            });
            assert_eq!(part, added.view((from, to), part.shape()), "{what}");
            close(&what, || {
                let mut dst = start.clone();
                set_product(view_mut(&mut dst), view(&a), view(&b));
                dst
            });
            close(&what, || {
                let mut dst = random(terms, terms, 4);
                add_gram_lower(view_mut(&mut dst), view(&a));
                dst
            });
        }
    }
}

#[test]
fn portable_factors_and_solutions_are_those_of_faer() {
    for size in SIZES {
        let what = format!("{size}");
        let a = random(size + 20, size, 5);
        let gram = a.tr_mul(&a);
        let factored = || {
            let mut factor = gram.clone();
            assert!(cholesky_in_place(&mut factor));
            factor
        };
        close(&what, || factored().lower_triangle());
        for columns in [1, 6] {
            let rhs = random(size, columns, 6);
            close(&what, || {
                let mut solution = rhs.clone();
                cholesky_solve(&factored(), &mut solution);
                solution
            });
            close(&what, || {
                let mut solution = rhs.clone();
                transposed_solve(&factored().transpose(), &mut solution);
                solution
            });
        }
        let indefinite =
            DMatrix::from_fn(size, size, |i, j| if i + 1 == size && i == j { -1.0 } else { gram[(i, j)] });
        assert!(size == 0 || !portably(true, || cholesky_in_place(&mut indefinite.clone())), "{what}");
        assert!(size == 0 || !portably(true, || cholesky_in_place(&mut (&gram * f64::NAN))), "{what}");
    }
}

/// Matrices of many shapes: of full rank, with singular values over twenty decades, of rank 2, with equal columns, and zero.
fn shapes() -> Vec<DMatrix<f64>> {
    let mut all = Vec::new();
    for (rows, columns) in
        [(0, 3), (3, 0), (1, 1), (1, 5), (5, 1), (2, 2), (3, 3), (7, 4), (4, 7), (40, 40), (90, 33)]
    {
        let a = random(rows, columns, 7);
        let faded = DMatrix::from_fn(rows, columns, |i, j| a[(i, j)] * libm::exp2(-2.0 * j as f64));
        let flat = random(rows, 2, 8) * random(2, columns, 9);
        let equal = DMatrix::from_fn(rows, columns, |i, j| a[(i, j / 2 * 2)]);
        all.extend([faded, flat, equal, &a * 1e-100, DMatrix::zeros(rows, columns), a]);
    }
    all
}

#[test]
fn portable_orthogonal_factorisations_are_those_of_faer() {
    let orthonormal = |q: &DMatrix<f64>| {
        (q.tr_mul(q) - DMatrix::identity(q.ncols(), q.ncols())).iter().all(|value| value.abs() < 1e-12)
    };
    for a in shapes() {
        let what = format!("{:?} {:e}", a.shape(), a.norm());
        let small = |rest: DMatrix<f64>| {
            rest.iter().all(|value| value.abs() <= 1e-13 * (1.0 + a.ncols() as f64) * a.norm())
        };
        let Svd { u, s, v } = portably(true, || svd(&a)).unwrap();
        assert!(orthonormal(&u) && orthonormal(&v), "{what}");
        let rebuilt = DMatrix::from_fn(u.nrows(), s.len(), |i, j| u[(i, j)] * s[j]) * v.transpose();
        assert!(small(rebuilt - &a), "{what}");
        let theirs = DMatrix::from_vec(s.len(), 1, svd(&a).unwrap().s);
        assert!(
            small(DMatrix::from_vec(s.len(), 1, s.clone()) - theirs) && s.is_sorted_by(|a, b| a >= b),
            "{what}"
        );
        let (q, r) = portably(true, || qr(&a));
        assert!(orthonormal(&q) && small(&q * &r - &a), "{what}");
        assert!((0..r.nrows()).all(|i| (0..i.min(r.ncols())).all(|j| r[(i, j)] == 0.0)), "{what}");
        let gram = a.tr_mul(&a) * if a.norm() < 1e-90 { 1e100 } else { 1.0 };
        let (values, vectors) = portably(true, || symmetric_eigen(&gram.lower_triangle())).unwrap();
        assert!(orthonormal(&vectors) && values.is_sorted(), "{what}");
        let size = gram.nrows();
        let rebuilt = DMatrix::from_fn(size, size, |i, j| vectors[(i, j)] * values[j]) * vectors.transpose();
        assert!((rebuilt - &gram).amax() <= 1e-13 * (1.0 + size as f64) * gram.norm(), "{what}");
    }
}

#[test]
fn the_portable_kernels_give_these_bits_everywhere() {
    // Whoever changes the portable kernels or the test matrix changes this number. A processor, a system library or a compiler must not.
    assert_eq!(portably(true, fingerprint), 0xed88a3b3bd2f7ec7);
}
