//! lambda_max at N = 20 000: under a minute and under 1 GiB, whatever the number of inputs.

use nalgebra::DMatrix;
use std::time::Instant;
use tha_train::analysis::kernel::{Kernel, Route};
use tha_train::analysis::spectrum::{PRODUCT_LIMIT, lambda_max};
use tha_train::host::peak_rss_mb;

#[test]
#[ignore = "measures time and memory; run alone, with --release -- --ignored --nocapture --test-threads 1"]
fn twenty_thousand_samples() {
    for (q, route) in [(25, Route::Monomials), (25, Route::Rows), (101, Route::Rows)] {
        let x = DMatrix::from_fn(20_000, q, |t, i| {
            if i == 0 { 1.0 } else { ((t * (i + 3)) as f64 * 0.618).sin() + ((t * t % 1009) as f64).cos() }
        });
        let kernel = Kernel::by(&x, 3, route);
        assert!(kernel.cost() <= PRODUCT_LIMIT);
        let start = Instant::now();
        let found = match Kernel::new(&x, 3).route == route {
            true => lambda_max(&x, 3, PRODUCT_LIMIT),
            false => tha_train::analysis::spectrum::lanczos(&kernel, 20_000).expect("settles"),
        };
        let seconds = start.elapsed().as_secs_f64();
        let peak = peak_rss_mb().unwrap_or(0.0);
        println!(
            "q {q}, {route:?}: lambda_max {:.6e} in {} products, {seconds:.1} s, peak {peak:.0} MiB",
            found.value, found.products
        );
        assert!(found.exact && seconds < 60.0 && peak < 1024.0);
    }
}
