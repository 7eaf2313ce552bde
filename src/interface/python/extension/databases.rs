//! The databases of a directory.

use crate::answers::{Move, Probe};
use crate::arguments::{self, PITS, natural};
use crate::error::exception;
use crate::handle::Handle;
use crate::rules::NAMES;
use crate::slabs::{BoundsIterator, Slab, SlabIterator};
use crate::{arrays, mapped, threads};
use awari_db::{Bounds, Error, Position};
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyTuple};
use rayon::prelude::*;
use std::ffi::OsString;
use std::ops::Range;
use std::path::PathBuf;

/// Opens the databases of a run directory, or of a folder with files such as 08.awari.
///
/// Raises awari.MissingError if there are none, and awari.Error if the directory cannot be read, or the
/// databases are of different rules or position sets. A damaged file is an error only for the questions that
/// need it.
///
/// >>> import awari
/// >>> databases = awari.open("runs/quickstart")
/// >>> databases.probe("0 0 0 0 0 2 1 1 0 0 0 0").score
/// 4
#[pyfunction]
#[pyo3(signature = (directory, /))]
pub(crate) fn open(py: Python<'_>, directory: &Bound<'_, PyAny>) -> PyResult<Databases> {
    // What the os module takes: text, bytes and path objects.
    let directory: PathBuf = py.import("os")?.call_method1("fsdecode", (directory,))?.extract()?;
    let path = directory.clone().into_os_string();
    let databases = py.detach(|| awari_db::Databases::open(directory)).map_err(exception)?;
    Ok(Databases { handle: Handle::new(databases), path })
}

/// The databases of a directory, all of one rule set and one position set. Made by awari.open().
///
/// n is a number of stones. A position is twelve integers, the pits A to F of the player to move and then a
/// to f of the opponent, or a text of them. Its number is that of the canonical order: scores(n)[i] is the
/// score of positions(n)[i]. One object serves all threads.
///
/// By the rules of oware a position has no score but two bounds: low, what the player to move can force, and
/// high, to what the opponent can hold that player. A score is known where both are equal; elsewhere arrays
/// of scores are masked, and scores of single positions are None.
#[pyclass(frozen, module = "awari")]
pub(crate) struct Databases {
    handle: Handle,
    path: OsString,
}

/// Positions that a thread converts at a time.
const CHUNK_POSITIONS: usize = 4096;

/// Positions that a thread looks up at a time.
const LOOKUP_POSITIONS: usize = 64;

#[pymethods]
impl Databases {
    /// The name of the rules, as in manifests: "awari", "oware" and so on.
    #[getter]
    fn rules(&self) -> &'static str {
        self.handle.rules()
    }

    /// Whether positions have scores by the rules. By others, those of oware, they have two bounds: see bounds().
    #[getter]
    fn has_scores(&self) -> bool {
        self.handle.has_scores()
    }

    /// The directory, as it was given.
    #[getter]
    fn path(&self) -> OsString {
        self.path.clone()
    }

    /// The number of databases.
    fn __len__(&self) -> usize {
        self.handle.stones().count()
    }

    /// Whether there is a database of n stones.
    fn __contains__(&self, n: &Bound<'_, PyAny>) -> bool {
        n.extract::<u32>().is_ok_and(|n| self.handle.stones().any(|stones| stones == n))
    }

    /// The scores of all positions with n stones, as scores(n). A number without a database raises KeyError.
    fn __getitem__<'py>(&self, py: Python<'py>, n: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if !self.__contains__(n) {
            return Err(PyKeyError::new_err(n.clone().unbind()));
        }
        self.scores(py, n)
    }

    /// Iterates over the numbers of stones.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.stones().into_pyobject(py)?.try_iter()
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Files stay open as long as an object or an array uses them, and no longer.
    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) {}

    /// Pickles the path: another process opens the databases again.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (OsString,))> {
        Ok((py.import("awari")?.getattr("open")?, (self.path.clone(),)))
    }

    /// Returns the scores of positions of any numbers of stones, an array of int8 for one of integers with
    /// twelve columns, masked as that of scores(n).
    ///
    /// Raises awari.MissingError if a position needs a database that is not there, as probe() does.
    ///
    /// >>> boards = [[0, 0, 0, 0, 0, 2, 1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]]
    /// >>> awari.open("runs/quickstart").lookup(boards)
    /// array([ 4, -1], dtype=int8)
    #[pyo3(signature = (positions, /))]
    fn lookup<'py>(&self, py: Python<'py>, positions: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let positions = arguments::positions(positions)?;
        let positions = positions.try_readonly()?;
        let (rows, _) = positions.as_slice()?.as_chunks::<PITS>();
        let count = rows.len() as u64;
        let [low, high]: [Bound<'py, PyArray1<i8>>; 2] = [arrays::empty(py, &[count])?, arrays::empty(py, &[count])?];
        {
            let (mut lows, mut highs) = (low.try_readwrite()?, high.try_readwrite()?);
            let (lows, highs): (&mut [i8], &mut [i8]) = (lows.as_slice_mut()?, highs.as_slice_mut()?);
            let pool = threads::pool()?;
            let handle = &self.handle;
            py.detach(|| {
                pool.install(|| {
                    let bounds = lows.par_iter_mut().zip(highs.par_iter_mut());
                    bounds.zip(rows).with_min_len(LOOKUP_POSITIONS).try_for_each(|((low, high), &pits)| {
                        let position = Position::new(pits)?;
                        (*low, *high) = match handle.score(&position) {
                            Ok(score) => (score, score),
                            Err(Error::Bounds { low, high }) => (low, high),
                            Err(error) => return Err(error),
                        };
                        Ok(())
                    })
                })
            })
            .map_err(exception)?;
        }
        if self.handle.has_scores() {
            return Ok(low.into_any());
        }
        arrays::masked(py, low.to_dyn().clone(), &high.to_dyn().clone(), &[count])
    }

    /// The numbers of stones of the databases, ascending.
    #[getter]
    fn stones(&self) -> Vec<u32> {
        self.handle.stones().collect()
    }

    /// Whether the databases hold only positions whose opponent has an empty pit, which are those that a move can lead
    /// to. probe() also answers for the others.
    #[getter]
    fn reachable_only(&self) -> bool {
        self.handle.is_reachable_only()
    }

    fn __repr__(&self) -> String {
        let set = if self.handle.is_reachable_only() { "reachable" } else { "all" };
        let stones: Vec<u32> = self.handle.stones().collect();
        let rules = if self.handle.has_scores() { String::new() } else { format!(", rules {}", self.handle.rules()) };
        let stones = match (stones.first(), stones.last()) {
            (Some(first), Some(last)) if (last - first) as usize + 1 == stones.len() => format!("{first} to {last}"),
            _ => format!("{stones:?}"),
        };
        format!("<awari.Databases of {stones} stones, {set} positions{rules}: {}>", self.path.display())
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        let escape = py.import("html")?.getattr("escape")?;
        let path: String = escape.call1((self.path.to_string_lossy(),))?.extract()?;
        let rows: Vec<String> = self
            .handle
            .stones()
            .map(|stones| {
                let positions = self
                    .handle
                    .database(stones)
                    .map_or("damaged".to_owned(), |database| database.positions().to_string());
                format!("<tr><td>{stones}</td><td>{positions}</td></tr>")
            })
            .collect();
        Ok(format!(
            "<p>{path}, rules {}</p><table><tr><th>stones</th><th>positions</th></tr>{}</table>",
            self.handle.rules(),
            rows.concat()
        ))
    }

    /// Returns the number of positions with n stones.
    ///
    /// >>> awari.open("runs/quickstart").count(6)
    /// 12376
    #[pyo3(signature = (n, /))]
    fn count(&self, py: Python<'_>, n: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.handle.on(py, arguments::stones(n)?, |database| Ok(database.positions()))
    }

    /// Returns the scores of all positions with n stones as an array of int8. By rules without scores it is a
    /// masked array (numpy.ma), whose values are hidden where the two bounds of bounds(n) differ.
    ///
    /// With the codec raw the array is read-only and lies in the mapped file: nothing is copied, and memory
    /// can be smaller than the database. The first call compares all checksums. A run that replaces the
    /// database leaves the array as it is. If another program writes to the file in place, the array shows
    /// the written bytes, unchecked; scores that were cut off read as 0. With other codecs the array is new,
    /// and decoded on all threads.
    ///
    /// Raises awari.MissingError without a database for n stones, and awari.DamagedError if it is damaged.
    ///
    /// >>> scores = awari.open("runs/quickstart").scores(6)
    /// >>> scores.dtype, scores.shape, int(scores.max())
    /// (dtype('int8'), (12376,), 6)
    #[pyo3(signature = (n, /))]
    fn scores<'py>(&self, py: Python<'py>, n: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let stones = arguments::stones(n)?;
        let has_scores = self.handle.has_scores();
        let (positions, in_map) = self.handle.on(py, stones, |database| {
            Ok((database.positions(), if has_scores { database.mapped()? } else { None }))
        })?;
        match in_map {
            Some(scores) => Ok(mapped::array(py, scores)?.into_any()),
            None => arrays::scores(py, &self.handle, stones, 0..positions, &[positions]),
        }
    }

    /// Returns the bounds of the positions start to stop - 1 with n stones, of all by default, as two arrays
    /// of int8: what the player to move can force, and to what the opponent can hold that player. By rules
    /// with scores both are the same array, that of the scores.
    ///
    /// >>> low, high = awari.open("runs/quickstart").bounds(6)
    /// >>> low.dtype, low.shape, bool((low <= high).all())
    /// (dtype('int8'), (12376,), True)
    /// >>> low, high = awari.open("runs/quickstart").bounds(6, 100, 104)
    /// >>> high.shape
    /// (4,)
    #[pyo3(signature = (n, start=None, stop=None, /))]
    fn bounds<'py>(
        &self,
        py: Python<'py>,
        n: &Bound<'py, PyAny>,
        start: Option<&Bound<'py, PyAny>>,
        stop: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        if self.handle.has_scores() && start.is_none() && stop.is_none() {
            let scores = self.scores(py, n)?;
            return Ok((scores.clone(), scores));
        }
        let (stones, positions) = self.range(py, n, start, stop)?;
        let shape = [positions.end - positions.start];
        if self.handle.has_scores() {
            let scores = arrays::scores(py, &self.handle, stones, positions, &shape)?;
            return Ok((scores.clone(), scores));
        }
        let (low, high) = arrays::bounds(py, &self.handle, stones, positions, &shape)?;
        Ok((low.into_any(), high.into_any()))
    }

    /// Returns the scores of the positions start to stop - 1 with n stones as a new array of int8, masked as that of
    /// scores(n).
    ///
    /// >>> awari.open("runs/quickstart").read(6, 100, 104).shape
    /// (4,)
    #[pyo3(signature = (n, start, stop, /))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        n: &Bound<'py, PyAny>,
        start: &Bound<'py, PyAny>,
        stop: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (stones, positions) = self.range(py, n, Some(start), Some(stop))?;
        let shape = [positions.end - positions.start];
        arrays::scores(py, &self.handle, stones, positions, &shape)
    }

    /// Returns the score of a position, or its bounds, and the values of its moves, as an awari.Probe.
    ///
    /// Without a database for its stones, a short search may still decide the score. Raises awari.MissingError if it
    /// does not, and awari.DamagedError if a database that it needs is damaged or contradicts the rules.
    ///
    /// >>> probe = awari.open("runs/quickstart").probe([0, 0, 0, 0, 0, 2, 1, 1, 0, 0, 0, 0])
    /// >>> probe.score, [(move.pit, move.captured, move.value) for move in probe.moves]
    /// (4, [('F', 4, 4)])
    #[pyo3(signature = (position, /))]
    fn probe(&self, py: Python<'_>, position: &Bound<'_, PyAny>) -> PyResult<Probe> {
        let position = arguments::position_by(position, self.handle.rule_set())?;
        let answer = py.detach(|| {
            let bounds = match self.handle.score(&position) {
                Ok(score) => Bounds::exact(score),
                Err(Error::Bounds { low, high }) => Bounds::new(low, high),
                Err(error) => return Err(error),
            };
            Ok((bounds, self.handle.moves(&position)?))
        });
        let (bounds, moves) = answer.map_err(exception)?;
        Ok(Probe::new(&position, bounds, moves))
    }

    /// Returns the moves of the highest value, as a list of awari.Move: those that no other move can exceed.
    /// Where moves have bounds, none may be known to be best.
    ///
    /// >>> [move.pit for move in awari.open("runs/quickstart").best_moves("1 0 0 0 0 2 1 1 0 0 0 1")]
    /// ['F']
    #[pyo3(signature = (position, /))]
    fn best_moves(&self, py: Python<'_>, position: &Bound<'_, PyAny>) -> PyResult<Vec<Move>> {
        let position = arguments::position_by(position, self.handle.rule_set())?;
        let moves = py.detach(|| self.handle.best_moves(&position)).map_err(exception)?;
        Ok(moves.into_iter().map(Move::from).collect())
    }

    /// Returns the positions with n stones as an array of uint8 with twelve columns: all, or those of an
    /// array of numbers.
    ///
    /// >>> databases = awari.open("runs/quickstart")
    /// >>> databases.positions(6, [0, 12375])
    /// array([[0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0],
    ///        [0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0]], dtype=uint8)
    /// >>> databases.positions(6).shape
    /// (12376, 12)
    #[pyo3(signature = (n, numbers=None, /))]
    fn positions<'py>(
        &self,
        py: Python<'py>,
        n: &Bound<'py, PyAny>,
        numbers: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyArray2<u8>>> {
        let stones = arguments::stones(n)?;
        let count = self.handle.on(py, stones, |database| Ok(database.positions()))?;
        let Some(numbers) = numbers else {
            let array = arrays::empty(py, &[count, PITS as u64])?;
            let mut out = array.try_readwrite()?;
            self.write_positions(py, stones, |index| index as u64, out.as_slice_mut()?)?;
            return Ok(array);
        };
        let numbers = arguments::numbers(numbers, count)?;
        let numbers = numbers.try_readonly()?;
        let numbers = numbers.as_slice()?;
        let array = arrays::empty(py, &[numbers.len() as u64, PITS as u64])?;
        let mut out = array.try_readwrite()?;
        self.write_positions(py, stones, |index| numbers[index] as u64, out.as_slice_mut()?)?;
        Ok(array)
    }

    /// Returns the numbers of positions with n stones, an array of int64 for one of integers with twelve columns.
    ///
    /// Raises ValueError if a position has another number of stones, or the database does not contain it.
    ///
    /// >>> awari.open("runs/quickstart").numbers(6, [[0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0]])
    /// array([12375])
    #[pyo3(signature = (n, positions, /))]
    fn numbers<'py>(
        &self,
        py: Python<'py>,
        n: &Bound<'py, PyAny>,
        positions: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let stones = arguments::stones(n)?;
        let positions = arguments::positions(positions)?;
        let positions = positions.try_readonly()?;
        let (positions, _) = positions.as_slice()?.as_chunks::<PITS>();
        let array = arrays::empty(py, &[positions.len() as u64])?;
        let mut out = array.try_readwrite()?;
        let out: &mut [i64] = out.as_slice_mut()?;
        self.handle.on(py, stones, |database| {
            out.par_iter_mut().zip(positions).with_min_len(CHUNK_POSITIONS).try_for_each(|(number, &pits)| {
                *number = database.number(&Position::new(pits)?)? as i64;
                Ok(())
            })
        })?;
        Ok(array)
    }

    /// Returns the slabs of the positions with n stones, as a list of awari.Slab in canonical order.
    ///
    /// >>> awari.open("runs/quickstart").slabs(2)[1]
    /// Slab(mover_stones=1, rows=6, columns=6, first=21)
    #[pyo3(signature = (n, /))]
    fn slabs(&self, py: Python<'_>, n: &Bound<'_, PyAny>) -> PyResult<Vec<Slab>> {
        self.handle.on(py, arguments::stones(n)?, |database| Ok(database.slabs().map(Slab::from).collect()))
    }

    /// Iterates over the scores with n stones in canonical order, for databases that are larger than memory.
    ///
    /// Each step gives (slab, row, scores): scores is a matrix of int8 with consecutive rows of the slab from this row
    /// on. It has at most scores_max scores, or one row if that is longer. It is masked as scores(n) is.
    ///
    /// >>> for slab, row, scores in awari.open("runs/quickstart").iter_slabs(1):
    /// ...     print(slab.mover_stones, row, scores.shape)
    /// 0 0 (6, 1)
    /// 1 0 (1, 6)
    #[pyo3(signature = (n, /, scores_max=None))]
    fn iter_slabs(&self, n: &Bound<'_, PyAny>, scores_max: Option<&Bound<'_, PyAny>>) -> PyResult<SlabIterator> {
        let scores_max = scores_max.map_or(Ok(1 << 26), |scores_max| natural(scores_max, "scores_max"))?;
        SlabIterator::new(self.handle.clone(), arguments::stones(n)?, scores_max)
    }

    /// Iterates over the bounds with n stones in canonical order, for databases that are larger than memory.
    ///
    /// Each step gives (slab, row, low, high): the bounds of consecutive rows of the slab from this row on,
    /// two matrices of int8. Each has at most positions_max bounds, or one row if that is longer.
    ///
    /// >>> for slab, row, low, high in awari.open("runs/quickstart").iter_bounds(1):
    /// ...     print(slab.mover_stones, row, low.shape, high.shape)
    /// 0 0 (6, 1) (6, 1)
    /// 1 0 (1, 6) (1, 6)
    #[pyo3(signature = (n, /, positions_max=None))]
    fn iter_bounds(&self, n: &Bound<'_, PyAny>, positions_max: Option<&Bound<'_, PyAny>>) -> PyResult<BoundsIterator> {
        let positions_max = positions_max.map_or(Ok(1 << 26), |most| natural(most, "positions_max"))?;
        BoundsIterator::new(self.handle.clone(), arguments::stones(n)?, positions_max)
    }

    /// Returns a dict of columns: A to F and a to f, the pits, as uint8; score as int8. A row for each
    /// position, in canonical order. Takes 13 bytes a position. By rules without scores there are low and
    /// high, the bounds, as int8, and score is masked where they differ, which pandas and polars read as
    /// missing; this takes 16 bytes a position.
    ///
    /// pandas.DataFrame(databases.table(n)) and polars.DataFrame(databases.table(n)) make a data frame of it.
    ///
    /// >>> table = awari.open("runs/quickstart").table(6)
    /// >>> list(table)
    /// ['A', 'B', 'C', 'D', 'E', 'F', 'a', 'b', 'c', 'd', 'e', 'f', 'score']
    #[pyo3(signature = (n, /))]
    fn table<'py>(&self, py: Python<'py>, n: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
        let stones = arguments::stones(n)?;
        let count = self.handle.on(py, stones, |database| Ok(database.positions()))?;
        let matrix: Bound<'py, PyArray2<u8>> = arrays::empty(py, &[PITS as u64, count])?;
        self.write_columns(py, stones, matrix.try_readwrite()?.as_slice_mut()?, count as usize)?;
        let table = PyDict::new(py);
        for (row, name) in NAMES.iter().enumerate() {
            table.set_item(name, matrix.get_item(row)?)?;
        }
        if self.handle.has_scores() {
            table.set_item("score", self.scores(py, n)?)?;
            return Ok(table);
        }
        let (low, high) = arrays::bounds(py, &self.handle, stones, 0..count, &[count])?;
        let scores = low.call_method0("copy")?.cast_into()?;
        let scores = arrays::masked(py, scores, &high, &[count])?;
        table.set_item("low", low)?;
        table.set_item("high", high)?;
        table.set_item("score", scores)?;
        Ok(table)
    }
}

impl Databases {
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Returns a number of stones and a range of its positions, of all by default.
    fn range(
        &self,
        py: Python<'_>,
        n: &Bound<'_, PyAny>,
        start: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(u32, Range<u64>)> {
        let stones = arguments::stones(n)?;
        let start = start.map_or(Ok(0), |start| natural(start, "start"))?;
        let stop = stop.map(|stop| natural(stop, "stop")).transpose()?;
        let positions = self.handle.on(py, stones, |database| Ok(database.positions()))?;
        let stop = stop.unwrap_or(positions);
        if start > stop || stop > positions {
            let expected = format!("expected a range of the {positions} positions, found {start} to {stop}");
            return Err(PyValueError::new_err(expected));
        }
        Ok((stones, start..stop))
    }

    /// Writes the positions of the numbers `number(0)`, `number(1)` and so on, one row each.
    fn write_positions(
        &self,
        py: Python<'_>,
        stones: u32,
        number: impl Fn(usize) -> u64 + Sync + Send,
        out: &mut [u8],
    ) -> PyResult<()> {
        let (rows, _) = out.as_chunks_mut::<PITS>();
        self.handle.on(py, stones, |database| {
            let rows = rows.par_iter_mut().enumerate().with_min_len(CHUNK_POSITIONS);
            rows.for_each(|(index, row)| *row = database.position(number(index)).pits());
            Ok(())
        })
    }

    /// Writes all positions, twelve columns of `count` pits.
    fn write_columns(&self, py: Python<'_>, stones: u32, out: &mut [u8], count: usize) -> PyResult<()> {
        let mut parts: Vec<Vec<&mut [u8]>> = (0..count.div_ceil(CHUNK_POSITIONS)).map(|_| Vec::new()).collect();
        for column in out.chunks_mut(count) {
            parts.iter_mut().zip(column.chunks_mut(CHUNK_POSITIONS)).for_each(|(part, pits)| part.push(pits));
        }
        self.handle.on(py, stones, |database| {
            parts.into_par_iter().enumerate().for_each(|(part, mut columns)| {
                for at in 0..columns[0].len() {
                    let pits = database.position((part * CHUNK_POSITIONS + at) as u64).pits();
                    columns.iter_mut().zip(pits).for_each(|(column, stones)| column[at] = stones);
                }
            });
            Ok(())
        })
    }
}
