//! The extension module of the Python package `awari`: the crate `awari-db` for Python and NumPy.
//!
//! Names, docstrings and signatures are those that `awari/__init__.pyi` declares. Work on many positions runs on all
//! threads and without the interpreter lock. Wrong arguments raise `ValueError` or `TypeError`, all other errors are
//! `awari.Error`.

mod answers;
mod arguments;
mod arrays;
mod databases;
mod error;
mod handle;
mod mapped;
mod position;
mod rules;
mod slabs;
mod threads;

use pyo3::prelude::*;

#[pymodule]
mod _awari {
    #[pymodule_export]
    use super::answers::{Move, Probe};
    #[pymodule_export]
    use super::databases::{Databases, open};
    #[pymodule_export]
    use super::error::{DamagedError, Error, MissingError};
    #[pymodule_export]
    use super::position::RulePosition;
    #[pymodule_export]
    use super::slabs::Slab;

    /// The version of the package.
    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
