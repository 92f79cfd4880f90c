//! Which kernels a fit uses: those that the libraries choose for the processor, or the portable ones.
//!
//! The choice belongs to the threads of a pool, all of them for as long as they live. A portable fit has a pool of its own, so
//! fits of both kinds can run in one process at the same time, and no parallel loop has to carry the choice.

use std::cell::Cell;

thread_local! {
    static PORTABLE: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread uses the portable kernels.
pub(crate) fn portable() -> bool {
    PORTABLE.get()
}

/// Does the work with the portable kernels where that is asked for, in as many threads as it would have otherwise. Otherwise the
/// kernels are those of the caller: what a portable fit calls is portable too.
pub(crate) fn portably<T: Send>(asked: bool, work: impl FnOnce() -> T + Send) -> T {
    if !asked || portable() {
        return work();
    }
    rayon::ThreadPoolBuilder::new()
        .num_threads(rayon::current_num_threads())
        .start_handler(|_| PORTABLE.set(true))
        .build()
        .expect("the system starts as many threads as rayon has already")
        .install(work)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::prelude::*;

    #[test]
    fn every_thread_of_portable_work_is_portable_and_no_other() {
        let all = || (0..1000).into_par_iter().map(|_| portable()).collect::<Vec<_>>();
        let (inside, outside) =
            rayon::join(|| portably(true, || portably(false, all)), || portably(false, all));
        assert!(inside.iter().all(|portable| *portable));
        assert!(outside.iter().all(|portable| !portable));
        let threads = portably(true, rayon::current_num_threads);
        assert_eq!(threads, rayon::current_num_threads());
    }
}
