//! A handle on databases, for several objects of Python.

use crate::error::exception;
use crate::threads;
use awari_db::Database;
use pyo3::prelude::*;
use std::ops::Deref;
use std::sync::Arc;

/// Databases that several objects of Python use. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Handle(Arc<awari_db::Databases>);

impl Deref for Handle {
    type Target = awari_db::Databases;

    fn deref(&self) -> &awari_db::Databases {
        &self.0
    }
}

impl Handle {
    pub(crate) fn new(databases: awari_db::Databases) -> Handle {
        Handle(Arc::new(databases))
    }

    /// Returns the databases, for an object that outlives this one.
    pub(crate) fn share(&self) -> Arc<awari_db::Databases> {
        Arc::clone(&self.0)
    }

    /// Runs `work` on a database, on the thread pool and without the interpreter lock.
    pub(crate) fn on<T: Send>(
        &self,
        py: Python<'_>,
        stones: u32,
        work: impl FnOnce(Database<'_>) -> Result<T, awari_db::Error> + Send,
    ) -> PyResult<T> {
        let pool = threads::pool()?;
        py.detach(|| pool.install(|| work(self.database(stones)?))).map_err(exception)
    }
}
