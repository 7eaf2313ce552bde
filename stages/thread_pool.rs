//! Pools of threads for stages.

use disk::threads;
use rayon::{ThreadBuilder, ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};
use std::thread;

/// Makes a pool of threads, all of which run when it is returned.
///
/// # Errors
/// If a thread cannot be started.
pub fn thread_pool(threads: usize) -> Result<ThreadPool, ThreadPoolBuildError> {
    let spawn = |thread: ThreadBuilder| threads::spawn(thread::Builder::new(), || thread.run()).map(drop);
    ThreadPoolBuilder::new().num_threads(threads).spawn_handler(spawn).build()
}
