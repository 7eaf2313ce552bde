//! New arrays, empty or of scores and bounds.

use crate::handle::Handle;
use numpy::{Element, PyArray, PyArrayDyn, PyArrayMethods};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use rayon::prelude::*;
use std::ops::Range;

/// The number in place of a score that does not exist: no score, and no bound of one.
const NO_SCORE: i8 = i8::MIN;

/// Positions that a thread compares at a time.
const CHUNK_POSITIONS: usize = 1 << 16;

/// The lower and the upper bounds of positions.
pub(crate) type BoundArrays<'py> = (Bound<'py, PyArrayDyn<i8>>, Bound<'py, PyArrayDyn<i8>>);

/// Makes an array of this shape. Raises `MemoryError` if there is no memory for it.
pub(crate) fn empty<'py, T: Element, D: ndarray::Dimension>(
    py: Python<'py>,
    shape: &[u64],
) -> PyResult<Bound<'py, PyArray<T, D>>> {
    let arguments = (PyTuple::new(py, shape)?, T::get_dtype(py));
    Ok(py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "empty"), arguments)?.cast_into()?)
}

/// Reads the scores of consecutive positions, as an array of this shape. By rules without scores it is masked
/// where the two bounds differ.
pub(crate) fn scores<'py>(
    py: Python<'py>,
    handle: &Handle,
    stones: u32,
    positions: Range<u64>,
    shape: &[u64],
) -> PyResult<Bound<'py, PyAny>> {
    if !handle.has_scores() {
        let (low, high) = bounds(py, handle, stones, positions, shape)?;
        return masked(py, low, &high, shape);
    }
    let scores: Bound<'py, PyArrayDyn<i8>> = empty(py, shape)?;
    let mut out = scores.try_readwrite()?;
    let values = out.as_slice_mut()?;
    handle.on(py, stones, |database| database.read(positions, values))?;
    drop(out);
    Ok(scores.into_any())
}

/// Reads the bounds of consecutive positions, as arrays of this shape.
pub(crate) fn bounds<'py>(
    py: Python<'py>,
    handle: &Handle,
    stones: u32,
    positions: Range<u64>,
    shape: &[u64],
) -> PyResult<BoundArrays<'py>> {
    let [low, high]: [Bound<'py, PyArrayDyn<i8>>; 2] = [empty(py, shape)?, empty(py, shape)?];
    let (mut low_out, mut high_out) = (low.try_readwrite()?, high.try_readwrite()?);
    let (low_values, high_values) = (low_out.as_slice_mut()?, high_out.as_slice_mut()?);
    handle.on(py, stones, |database| database.read_bounds(positions, low_values, high_values))?;
    drop((low_out, high_out));
    Ok((low, high))
}

/// Makes lower bounds a masked array of scores, which shows only those that equal the upper bounds.
pub(crate) fn masked<'py>(
    py: Python<'py>,
    low: Bound<'py, PyArrayDyn<i8>>,
    high: &Bound<'py, PyArrayDyn<i8>>,
    shape: &[u64],
) -> PyResult<Bound<'py, PyAny>> {
    let mask: Bound<'py, PyArrayDyn<bool>> = empty(py, shape)?;
    let (mut scores, high, mut out) = (low.try_readwrite()?, high.try_readonly()?, mask.try_readwrite()?);
    let (values, high_values, flags) = (scores.as_slice_mut()?, high.as_slice()?, out.as_slice_mut()?);
    let pool = crate::threads::pool()?;
    py.detach(|| {
        pool.install(|| {
            let rows = values.par_iter_mut().zip(high_values).zip(flags).with_min_len(CHUNK_POSITIONS);
            rows.for_each(|((value, high), is_masked)| {
                *is_masked = *value != *high;
                if *is_masked {
                    *value = NO_SCORE;
                }
            });
        });
    });
    drop((scores, out));
    let options = PyDict::new(py);
    options.set_item(intern!(py, "mask"), mask)?;
    options.set_item(intern!(py, "fill_value"), NO_SCORE)?;
    options.set_item(intern!(py, "copy"), false)?;
    let module = py.import(intern!(py, "numpy.ma"))?;
    module.call_method(intern!(py, "MaskedArray"), (low,), Some(&options))
}
