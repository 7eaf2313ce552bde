//! Slabs, and iteration over them.

use crate::arrays::{self, BoundArrays};
use crate::error::exception;
use crate::handle::Handle;
use numpy::PyArrayDyn;
use pyo3::prelude::*;
use std::ops::Range;

/// The positions in which the player to move has some number of stones: a matrix with a row for each half of
/// the opponent and a column for each half of the player to move. first is the number of its first position.
/// The opening position is a slab of its own, the last one of the database of all stones of the game, if the
/// databases hold only positions whose opponent has an empty pit otherwise.
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

/// Consecutive rows of a slab.
struct SlabRows {
    slab: Slab,
    row: u32,
    positions: Range<u64>,
    /// The numbers of rows and columns.
    shape: [u64; 2],
}

/// A walk over the slabs of a database, some rows at a time.
struct SlabWalk {
    databases: Handle,
    stones: u32,
    positions_max: u64,
    slabs: Vec<Slab>,
    slab: usize,
    row: u32,
}

impl SlabWalk {
    fn new(databases: Handle, stones: u32, positions_max: u64) -> PyResult<SlabWalk> {
        let slabs = databases.database(stones).map_err(exception)?.slabs().map(Slab::from).collect();
        Ok(SlabWalk { databases, stones, positions_max, slabs, slab: 0, row: 0 })
    }

    /// Returns the next rows.
    fn rows(&self) -> Option<SlabRows> {
        let slab = self.slabs.get(self.slab)?.clone();
        let (columns, row) = (u64::from(slab.columns), self.row);
        let rows = (self.positions_max / columns).clamp(1, u64::from(slab.rows - row));
        let first = slab.first + u64::from(row) * columns;
        Some(SlabRows { slab, row, positions: first..first + rows * columns, shape: [rows, columns] })
    }

    /// Goes to the rows after these.
    fn pass(&mut self, rows: &SlabRows) {
        self.row += rows.shape[0] as u32;
        if self.row == rows.slab.rows {
            (self.slab, self.row) = (self.slab + 1, 0);
        }
    }
}

/// Iterator over the scores of a database, some rows of a slab at a time.
#[pyclass(module = "awari")]
pub(crate) struct SlabIterator(SlabWalk);

/// Iterator over the bounds of a database, some rows of a slab at a time.
#[pyclass(module = "awari")]
pub(crate) struct BoundsIterator(SlabWalk);

impl SlabIterator {
    pub(crate) fn new(databases: Handle, stones: u32, scores_max: u64) -> PyResult<SlabIterator> {
        SlabWalk::new(databases, stones, scores_max).map(SlabIterator)
    }
}

impl BoundsIterator {
    pub(crate) fn new(databases: Handle, stones: u32, positions_max: u64) -> PyResult<BoundsIterator> {
        SlabWalk::new(databases, stones, positions_max).map(BoundsIterator)
    }
}

/// A slab, the first row, and the lower and upper bounds of rows from there.
type SlabBounds<'py> = (Slab, u32, Bound<'py, PyArrayDyn<i8>>, Bound<'py, PyArrayDyn<i8>>);

#[pymethods]
impl SlabIterator {
    fn __iter__(iterator: PyRef<'_, Self>) -> PyRef<'_, Self> {
        iterator
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<(Slab, u32, Bound<'py, PyAny>)>> {
        let SlabIterator(walk) = self;
        let Some(rows) = walk.rows() else { return Ok(None) };
        let scores = arrays::scores(py, &walk.databases, walk.stones, rows.positions.clone(), &rows.shape)?;
        walk.pass(&rows);
        Ok(Some((rows.slab, rows.row, scores)))
    }
}

#[pymethods]
impl BoundsIterator {
    fn __iter__(iterator: PyRef<'_, Self>) -> PyRef<'_, Self> {
        iterator
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<SlabBounds<'py>>> {
        let BoundsIterator(walk) = self;
        let Some(rows) = walk.rows() else { return Ok(None) };
        let (low, high): BoundArrays<'py> =
            arrays::bounds(py, &walk.databases, walk.stones, rows.positions.clone(), &rows.shape)?;
        walk.pass(&rows);
        Ok(Some((rows.slab, rows.row, low, high)))
    }
}
