//! Pools of threads for stages.

use disk::threads;
use pipeline::thread_label;
use rayon::{ThreadBuilder, ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};
use std::thread;

/// Makes a pool of threads, all of which run when it is returned, with the label of this thread.
///
/// # Errors
/// If a thread cannot be started.
pub fn thread_pool(threads: usize) -> Result<ThreadPool, ThreadPoolBuildError> {
    let label = thread_label::label();
    let spawn = |thread: ThreadBuilder| {
        let label = label.clone();
        threads::spawn(thread::Builder::new(), || thread_label::labelled(label, || thread.run())).map(drop)
    };
    ThreadPoolBuilder::new().num_threads(threads).spawn_handler(spawn).build()
}
