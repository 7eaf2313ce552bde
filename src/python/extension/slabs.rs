//! Slabs, and iteration over them.

use crate::arrays;
use crate::error::exception;
use crate::handle::Handle;
use numpy::{PyArray2, PyArrayMethods};
use pyo3::prelude::*;

/// The positions in which the player to move has some number of stones: a matrix with a row for each half of the
/// opponent and a column for each half of the player to move. first is the number of its first position. The opening
/// position is a slab of its own, the last one of the database of all stones of the game, if the databases hold only positions
/// whose opponent has an empty pit otherwise.
#[pyclass(frozen, get_all, eq, hash, module = "awari")]
#[derive(Clone, PartialEq, Hash)]
pub(crate) struct Slab {
    /// The stones of the player to move.
    mover_stones: u32,
    /// The number of rows: of halves of the opponent.
    rows: u32,
    /// The number of columns: of halves of the player to move.
    columns: u32,
    /// The number of its first position.
    first: u64,
}

impl From<awari_db::Slab> for Slab {
    fn from(slab: awari_db::Slab) -> Slab {
        let awari_db::Slab { mover_stones, rows, columns, first, .. } = slab;
        Slab { mover_stones, rows, columns, first }
    }
}

#[pymethods]
impl Slab {
    fn __repr__(&self) -> String {
        let Slab { mover_stones, rows, columns, first } = self;
        format!("Slab(mover_stones={mover_stones}, rows={rows}, columns={columns}, first={first})")
    }
}

/// Iterator over the scores of a database, some rows of a slab at a time.
#[pyclass(module = "awari")]
pub(crate) struct SlabIterator {
    databases: Handle,
    stones: u32,
    scores_max: u64,
    slabs: Vec<Slab>,
    slab: usize,
    row: u32,
}

impl SlabIterator {
    pub(crate) fn new(databases: Handle, stones: u32, scores_max: u64) -> PyResult<SlabIterator> {
        let slabs = databases.database(stones).map_err(exception)?.slabs().map(Slab::from).collect();
        Ok(SlabIterator { databases, stones, scores_max, slabs, slab: 0, row: 0 })
    }
}

/// A slab, the first row, and the scores of rows from there.
type SlabRows<'py> = (Slab, u32, Bound<'py, PyArray2<i8>>);

#[pymethods]
impl SlabIterator {
    fn __iter__(iterator: PyRef<'_, Self>) -> PyRef<'_, Self> {
        iterator
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<SlabRows<'py>>> {
        let Some(slab) = self.slabs.get(self.slab).cloned() else { return Ok(None) };
        let columns = u64::from(slab.columns);
        let row = self.row;
        let rows = (self.scores_max / columns).clamp(1, u64::from(slab.rows - row));
        let first = slab.first + u64::from(row) * columns;
        let array = arrays::empty(py, &[rows, columns])?;
        self.databases.read(py, self.stones, first..first + rows * columns, array.try_readwrite()?.as_slice_mut()?)?;
        self.row += rows as u32;
        if self.row == slab.rows {
            (self.slab, self.row) = (self.slab + 1, 0);
        }
        Ok(Some((slab, row, array)))
    }
}
