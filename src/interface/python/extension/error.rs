//! Exceptions.

use book::BookError;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::{PyErr, create_exception};

create_exception!(awari, Error, PyException, "The base of all exceptions of databases. The message names the remedy.");
create_exception!(awari, MissingError, Error, "There is no database that has the answer.");
create_exception!(awari, DamagedError, Error, "A database is damaged or wrong.");

/// Returns the exception of an error of a book.
pub(crate) fn book_exception(error: BookError) -> PyErr {
    let message = error.to_string();
    match error {
        BookError::Missing(_) => MissingError::new_err(message),
        error if error.is_damage() => DamagedError::new_err(message),
        _ => Error::new_err(message),
    }
}

/// Returns the exception of an error.
pub(crate) fn exception(error: awari_db::Error) -> PyErr {
    let message = error.to_string();
    match error {
        awari_db::Error::Position(_) | awari_db::Error::Move(_) | awari_db::Error::NotContained(_) => {
            PyValueError::new_err(message)
        }
        awari_db::Error::NoDatabases(_) | awari_db::Error::Missing(_) => MissingError::new_err(message),
        awari_db::Error::Damaged(_) => DamagedError::new_err(message),
        _ => Error::new_err(message),
    }
}
