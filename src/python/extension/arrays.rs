//! New arrays.

use numpy::{Element, PyArray};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// Makes an array of this shape. Raises `MemoryError` if there is no memory for it.
pub(crate) fn empty<'py, T: Element, D: ndarray::Dimension>(
    py: Python<'py>,
    shape: &[u64],
) -> PyResult<Bound<'py, PyArray<T, D>>> {
    let arguments = (PyTuple::new(py, shape)?, T::get_dtype(py));
    Ok(py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "empty"), arguments)?.cast_into()?)
}
