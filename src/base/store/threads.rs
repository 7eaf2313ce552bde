//! Work on all threads of the current rayon pool, or on the calling one without the feature `threads`.

#[cfg(feature = "threads")]
mod pool {
    use rayon::prelude::*;
    use std::ops::Range;

    pub(crate) use rayon::{current_num_threads as count, join};

    /// Runs `work` on every thread.
    pub(crate) fn on_each(work: impl Fn() + Sync) {
        (0..count()).into_par_iter().with_max_len(1).for_each(|_| work());
    }

    /// Returns the results for all items in order; a thread gets at least `items_min` at a time.
    pub(crate) fn map<T: Send, R: Send>(
        items: Vec<T>,
        items_min: usize,
        result: impl Fn(T) -> R + Sync + Send,
    ) -> Vec<R> {
        items.into_par_iter().with_min_len(items_min).map(result).collect()
    }

    /// Calls `check` for all numbers, until it fails for one.
    pub(crate) fn try_for_each<E: Send>(
        numbers: Range<usize>,
        check: impl Fn(usize) -> Result<(), E> + Sync + Send,
    ) -> Result<(), E> {
        numbers.into_par_iter().try_for_each(check)
    }
}

#[cfg(not(feature = "threads"))]
mod pool {
    use std::ops::Range;

    pub(crate) fn count() -> usize {
        1
    }

    pub(crate) fn join<A, B>(first: impl FnOnce() -> A, second: impl FnOnce() -> B) -> (A, B) {
        (first(), second())
    }

    pub(crate) fn on_each(work: impl Fn()) {
        work();
    }

    pub(crate) fn map<T, R>(items: Vec<T>, _: usize, result: impl Fn(T) -> R) -> Vec<R> {
        items.into_iter().map(result).collect()
    }

    pub(crate) fn try_for_each<E>(mut numbers: Range<usize>, check: impl Fn(usize) -> Result<(), E>) -> Result<(), E> {
        numbers.try_for_each(check)
    }
}

pub(crate) use pool::{count, join, map, on_each, try_for_each};
