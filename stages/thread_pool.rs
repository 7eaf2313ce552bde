//! Pools of threads for stages.

use disk::{Usage, threads};
use pipeline::thread_label;
use rayon::{ThreadBuilder, ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};
use std::thread;

/// Makes a pool of threads, all of which run when it is returned, with the label of this thread, and charge
/// what it charges.
///
/// # Errors
/// If a thread cannot be started.
pub fn thread_pool(threads: usize) -> Result<ThreadPool, ThreadPoolBuildError> {
    let (label, usage) = (thread_label::label(), Usage::charged());
    let spawn = |thread: ThreadBuilder| {
        let (label, usage) = (label.clone(), usage.clone());
        let run = || thread_label::labelled(label, || Usage::charge(usage, || thread.run()));
        threads::spawn(thread::Builder::new(), run).map(drop)
    };
    ThreadPoolBuilder::new().num_threads(threads).spawn_handler(spawn).build()
}
