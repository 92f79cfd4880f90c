//! Theorems 1, 2 and 3 over random problems: the identity to rounding, the bounds without exception.

mod analysis_common;

use analysis_common::{Sizes, random_pair};
use proptest::prelude::*;
use tha_train::{AnalysisParams, analyze};

prop_compose! {
    fn sizes()(
        inputs in 2usize..7,
        memory in 1usize..4,
        degree in 1usize..5,
        outputs in 1usize..4,
        rows in 2usize..300,
        heads in 1usize..9,
    ) -> Sizes {
        Sizes { inputs, memory, degree, outputs, rows, heads }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn identity_and_bounds(seed in any::<u64>(), sizes in sizes()) {
        let pair = random_pair(seed, sizes);
        let analysis = analyze(&pair, &AnalysisParams { steps: false, ..AnalysisParams::default() });
        prop_assert!(analysis.identity_gap < 1e-9, "{}", analysis.identity_gap);
        prop_assert_eq!(analysis.theorem2.holds, Some(true));
        prop_assert_eq!(analysis.theorem3.holds, Some(true));
        prop_assert!(analysis.heads.iter().all(|head| head.residual.gap < 1e-9));
    }

    #[test]
    fn free_weights_keep_the_identity_and_lose_the_bounds(
        seed in any::<u64>(),
        sizes in sizes(),
        weights in prop::collection::vec(-2.0..2.0f64, 8),
    ) {
        let mut pair = random_pair(seed, sizes);
        pair.heads.iter_mut().zip(weights).for_each(|(head, weight)| head.weight = weight);
        let analysis = analyze(&pair, &AnalysisParams { steps: false, ..AnalysisParams::default() });
        prop_assert!(analysis.identity_gap < 1e-9);
        prop_assert!(!analysis.convex);
        prop_assert_eq!((analysis.theorem2.rhs, analysis.theorem2.holds), (None, None));
        prop_assert_eq!((analysis.theorem3.rhs, analysis.theorem3.holds), (None, None));
        prop_assert!(analysis.failures().is_empty());
    }
}
