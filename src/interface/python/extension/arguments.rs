//! Arguments from Python, checked.

use crate::error::exception;
use crate::position::RulePosition;
use awari_db::{Position, Rules};
use numpy::{Element, PyArray, PyArray1, PyArray2, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::time::Duration;

/// The pits of a position.
pub(crate) const PITS: usize = 12;

/// The largest number of stones on a board.
pub(crate) const STONES_MAX: u64 = 48;

/// Returns an integer that is not negative. `name` is that of the argument.
pub(crate) fn natural(argument: &Bound<'_, PyAny>, name: &str) -> PyResult<u64> {
    argument.extract().map_err(|error: PyErr| {
        if error.is_instance_of::<PyOverflowError>(argument.py()) {
            return PyValueError::new_err(format!("{name}: expected an integer from 0 to 2**64 - 1, found {argument}"));
        }
        error
    })
}

/// Returns a number of stones.
pub(crate) fn stones(argument: &Bound<'_, PyAny>) -> PyResult<u32> {
    let stones = natural(argument, "stones")?;
    match u32::try_from(stones) {
        Ok(stones) if u64::from(stones) <= STONES_MAX => Ok(stones),
        _ => Err(PyValueError::new_err(format!("expected at most {STONES_MAX} stones, found {stones}"))),
    }
}

/// Returns a position of a text, or of a sequence of twelve integers.
pub(crate) fn position(argument: &Bound<'_, PyAny>) -> PyResult<Position> {
    if let Ok(text) = argument.cast::<PyString>() {
        return text.to_cow()?.parse().map_err(exception);
    }
    if let Ok(position) = argument.cast::<RulePosition>() {
        return Ok(position.get().position);
    }
    // The type alone does not say what is wrong with an array: numbers of another type, or a second dimension.
    let kind = || match argument.cast::<PyUntypedArray>() {
        Ok(array) => format!("an ndarray of {}, shape {:?}", array.dtype(), array.shape()),
        Err(_) => argument.get_type().name().map_or_else(|_| "another type".to_owned(), |name| name.to_string()),
    };
    let wrong = || {
        PyTypeError::new_err(format!(
            "expected a position: twelve integers, a text of them, or an awari.Position; found {}",
            kind()
        ))
    };
    let mut pits = [0; PITS];
    let mut found = 0;
    for item in argument.try_iter().map_err(|_| wrong())? {
        let item = item?;
        let stones = natural(&item, "pit")
            .map_err(|error| if error.is_instance_of::<PyTypeError>(argument.py()) { wrong() } else { error })?;
        if let Some(pit) = pits.get_mut(found) {
            let too_many =
                |_| PyValueError::new_err(format!("expected at most {STONES_MAX} stones, found a pit of {stones}"));
            *pit = u8::try_from(stones).map_err(too_many)?;
        }
        found += 1;
        if found > PITS {
            break;
        }
    }
    if found != PITS {
        let found = if found > PITS { "more".to_owned() } else { found.to_string() };
        return Err(PyValueError::new_err(format!("expected twelve pits, found {found}")));
    }
    Position::new(pits).map_err(exception)
}

/// Returns a position for questions by some rules. An awari.Position of other rules is refused.
pub(crate) fn position_by(argument: &Bound<'_, PyAny>, rules: &Rules) -> PyResult<Position> {
    if let Ok(position) = argument.cast::<RulePosition>() {
        check_rules(&position.get().rules, rules)?;
    }
    position(argument)
}

/// Checks that a position or game is by the expected rules.
pub(crate) fn check_rules(found: &Rules, expected: &Rules) -> PyResult<()> {
    if found == expected {
        Ok(())
    } else {
        Err(PyValueError::new_err(format!(
            "expected a position by the rules {}, found one by those of {}",
            expected.name, found.name
        )))
    }
}

/// Returns the position of twelve pits.
pub(crate) fn of_pits(pits: &[u32]) -> PyResult<Position> {
    let pits: Vec<String> = pits.iter().map(u32::to_string).collect();
    pits.join(" ").parse().map_err(exception)
}

/// Returns a number from 1 to `most`. `name` is that of the argument.
pub(crate) fn count(argument: &Bound<'_, PyAny>, name: &str, most: u64) -> PyResult<u64> {
    match argument.extract() {
        Ok(count) if (1..=most).contains(&count) => Ok(count),
        Err(error) if !error.is_instance_of::<PyOverflowError>(argument.py()) => {
            Err(PyTypeError::new_err(format!("{name}: expected an integer, found {}", argument.get_type().name()?)))
        }
        _ => Err(PyValueError::new_err(format!("{name}: expected an integer from 1 to {most}, found {argument}"))),
    }
}

/// Returns a time in seconds.
pub(crate) fn seconds(argument: &Bound<'_, PyAny>) -> PyResult<Duration> {
    let Ok(seconds) = argument.extract::<f64>() else {
        return Err(PyTypeError::new_err(format!("time: expected seconds, found {}", argument.get_type().name()?)));
    };
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| PyValueError::new_err(format!("time: expected seconds, not negative, found {seconds}")))
}

/// Returns rules by their name.
pub(crate) fn rules(name: &str) -> PyResult<Rules> {
    Rules::by_name(name).ok_or_else(|| {
        let known = Rules::KNOWN.map(|rules| rules.name).join(", ");
        PyValueError::new_err(format!("rules: there are no rules {name:?}; known are {known}"))
    })
}

/// Returns positions as an array of bytes with a row of twelve for each.
pub(crate) fn positions<'py>(argument: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray2<u8>>> {
    let array = integers(argument, 2, "positions")?;
    if array.getattr(intern!(array.py(), "shape"))?.get_item(1)?.ne(PITS)? {
        return Err(PyValueError::new_err("positions: expected an array of shape (count, 12)"));
    }
    within(&array, STONES_MAX + 1, "positions")?;
    typed(array, "uint8")
}

/// Returns numbers of positions, all below `end`.
pub(crate) fn numbers<'py>(argument: &Bound<'py, PyAny>, end: u64) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let array = integers(argument, 1, "numbers")?;
    within(&array, end, "numbers")?;
    typed(array, "int64")
}

fn integers<'py>(argument: &Bound<'py, PyAny>, dimensions: usize, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let py = argument.py();
    let array = py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "asarray"), (argument,))?;
    let kind: String = array.getattr(intern!(py, "dtype"))?.getattr(intern!(py, "kind"))?.extract()?;
    // An empty list has no integers, and NumPy calls it an array of floats.
    let is_empty: bool = array.getattr(intern!(py, "size"))?.eq(0)?;
    if kind != "i" && kind != "u" && !is_empty {
        return Err(PyTypeError::new_err(format!("{name}: expected an array of integers")));
    }
    if array.getattr(intern!(py, "ndim"))?.ne(dimensions)? {
        return Err(PyValueError::new_err(format!("{name}: expected an array of {dimensions} dimensions")));
    }
    Ok(array)
}

fn within(array: &Bound<'_, PyAny>, end: u64, name: &str) -> PyResult<()> {
    let py = array.py();
    if array.getattr(intern!(py, "size"))?.eq(0)? {
        return Ok(());
    }
    for method in [intern!(py, "min"), intern!(py, "max")] {
        let value = array.call_method0(method)?;
        if value.lt(0)? || value.ge(end)? {
            return Err(PyValueError::new_err(format!(
                "{name}: expected integers from 0 to {}, found {value}",
                end - 1
            )));
        }
    }
    Ok(())
}

fn typed<'py, T: Element, D: ndarray::Dimension>(
    array: Bound<'py, PyAny>,
    dtype: &str,
) -> PyResult<Bound<'py, PyArray<T, D>>> {
    let py = array.py();
    let numpy = py.import(intern!(py, "numpy"))?;
    Ok(numpy.call_method1(intern!(py, "ascontiguousarray"), (array, dtype))?.cast_into()?)
}
