//! Arrays over mapped files.

use awari_db::MappedScores;
use ndarray::ArrayView1;
use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;

/// The owner of the memory of an array: the map of a file.
#[pyclass(frozen, module = "awari")]
struct FileMap {
    scores: MappedScores,
}

/// Returns a read-only array over the scores of a mapped file.
pub(crate) fn array(py: Python<'_>, scores: MappedScores) -> PyResult<Bound<'_, PyArray1<i8>>> {
    let owner = Bound::new(py, FileMap { scores })?;
    let view = ArrayView1::from(&owner.get().scores[..]);
    // SAFETY: the array holds a reference to `owner`, whose map stays where it is until it is dropped, and which is
    // frozen. It saves a copy of the whole database.
    let array = unsafe { PyArray1::borrow_from_array(&view, owner.clone().into_any()) };
    array.try_readwrite()?.make_nonwriteable();
    Ok(array)
}
