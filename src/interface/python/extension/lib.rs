//! The extension module of the Python package `awari`: the crate `awari-db`, games and books for Python and NumPy.
//!
//! Names, docstrings and signatures are those that `awari/__init__.pyi` declares. Work on many positions runs on all
//! threads and without the interpreter lock. Wrong arguments raise `ValueError` or `TypeError`, all other errors are
//! `awari.Error`.

mod answers;
mod arguments;
mod arrays;
mod book;
mod databases;
mod engine;
mod error;
mod game;
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
    use super::book::{Book, BookEntry, BookMove, open_book};
    #[pymodule_export]
    use super::databases::{Databases, open};
    #[pymodule_export]
    use super::engine::{Engine, Search, SearchedMove};
    #[pymodule_export]
    use super::error::{DamagedError, Error, MissingError};
    #[pymodule_export]
    use super::game::{PlayedGame, Turn};
    #[pymodule_export]
    use super::position::RulePosition;
    #[pymodule_export]
    use super::slabs::Slab;

    /// The version of the package.
    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
