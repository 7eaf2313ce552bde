//! The thread pool.

use crate::error::Error;
use pyo3::PyResult;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::process;
use std::sync::{Arc, Mutex, PoisonError};

/// The pool, and the process that started it. A forked process has no thread of its parent, so it starts its own.
static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// Returns the pool of this process: a thread for each core, or as many as `RAYON_NUM_THREADS` says.
pub(crate) fn pool() -> PyResult<Arc<ThreadPool>> {
    let mut held = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((process, pool)) = &*held
        && *process == process::id()
    {
        return Ok(Arc::clone(pool));
    }
    let pool = ThreadPoolBuilder::new().build().map_err(|error| Error::new_err(error.to_string()))?;
    let pool = Arc::new(pool);
    // A pool of the parent process is never dropped: that would wait for its threads.
    std::mem::forget(held.replace((process::id(), Arc::clone(&pool))));
    Ok(pool)
}
