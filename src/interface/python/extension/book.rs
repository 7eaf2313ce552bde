//! Opening books, as objects of Python.

use crate::arguments;
use crate::error::book_exception;
use crate::game::board;
use crate::position::RulePosition;
use crate::rules::board_html;
use awari_db::Rules;
use book::{Assessment, Hundredths, OpeningBook};
use pyo3::prelude::*;
use std::ffi::OsString;
use std::path::PathBuf;

/// Opens an opening book, a file such as runs/quickstart/books/opening.sqlite, which the program makes with
/// `awari book expand`.
///
/// Raises awari.MissingError if there is none, awari.DamagedError if the file is damaged or not a book.
///
/// >>> import awari
/// >>> book = awari.open_book("runs/quickstart/books/opening.sqlite")
/// >>> awari.Position() in book
/// True
#[pyfunction]
#[pyo3(signature = (path, /))]
pub(crate) fn open_book(py: Python<'_>, path: &Bound<'_, PyAny>) -> PyResult<Book> {
    let path: PathBuf = py.import("os")?.call_method1("fsdecode", (path,))?.extract()?;
    let opened = py.detach(|| OpeningBook::open_any(&path)).map_err(book_exception)?;
    Ok(Book { book: opened, path: path.into_os_string() })
}

/// An opening book: positions from a start on, with proved bounds and estimates. Made by awari.open_book().
#[pyclass(frozen, module = "awari")]
pub(crate) struct Book {
    book: OpeningBook,
    path: OsString,
}

/// What a book has of a position.
///
/// position has the twelve pits; bounds what is proved of the score for the player to move, and estimate the
/// book's estimate, in stones; score the score if it is proved, else None; moves the moves as awari.BookMove,
/// the best first, or none where the book ends.
#[pyclass(frozen, get_all, eq, module = "awari")]
#[derive(PartialEq)]
pub(crate) struct BookEntry {
    position: Vec<u32>,
    bounds: (f64, f64),
    estimate: f64,
    score: Option<f64>,
    moves: Vec<BookMove>,
}

/// What a book has of a move.
///
/// pit is the pit sown from; captured the number of captured stones; bounds and estimate are those of its
/// value for the player who makes it, captured stones included, in stones; is_best whether no move has a
/// higher estimate; goes_on whether the book has the moves after it; child the twelve pits after the move,
/// seen from the opponent.
#[pyclass(frozen, get_all, eq, module = "awari")]
#[derive(Clone, PartialEq)]
pub(crate) struct BookMove {
    pit: char,
    captured: u8,
    bounds: (f64, f64),
    estimate: f64,
    is_best: bool,
    goes_on: bool,
    child: Vec<u32>,
}

/// Returns stones of hundredths.
fn stones(hundredths: Hundredths) -> f64 {
    f64::from(hundredths) / 100.0
}

fn bounds(value: Assessment) -> (f64, f64) {
    (stones(value.low), stones(value.high))
}

fn pits(board: &game::Board) -> Vec<u32> {
    board.0.map(u32::from).to_vec()
}

#[pymethods]
impl Book {
    /// The file, as it was given.
    #[getter]
    fn path(&self) -> OsString {
        self.path.clone()
    }

    /// The name of the rules.
    #[getter]
    fn rules(&self) -> &'static str {
        self.book.rules().name
    }

    /// The position in which the games of the book begin.
    #[getter]
    fn root(&self) -> RulePosition {
        RulePosition { position: crate::game::position(&self.book.root()), rules: *self.book.rules() }
    }

    /// Returns what the book has of a position, as an awari.BookEntry; None if it does not have it.
    ///
    /// >>> entry = awari.open_book("runs/quickstart/books/opening.sqlite").lookup(awari.Position())
    /// >>> entry.bounds[0] <= entry.estimate <= entry.bounds[1], entry.moves[0].is_best
    /// (True, True)
    /// >>> sorted(move.pit for move in entry.moves)
    /// ['A', 'B', 'C', 'D', 'E', 'F']
    #[pyo3(signature = (position, /))]
    fn lookup(&self, py: Python<'_>, position: &Bound<'_, PyAny>) -> PyResult<Option<BookEntry>> {
        let asked = board(&arguments::position_by(position, self.rule_set())?);
        let found = py.detach(|| self.book.position(&asked)).map_err(book_exception)?;
        Ok(found.map(|found| BookEntry {
            position: pits(&asked),
            bounds: bounds(found.value),
            estimate: stones(found.value.estimate),
            score: found.value.is_exact().then(|| stones(found.value.low)),
            moves: found.moves.iter().map(BookMove::new).collect(),
        }))
    }

    /// The number of positions.
    fn __len__(&self) -> usize {
        self.book.positions()
    }

    fn __contains__(&self, py: Python<'_>, position: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.lookup(py, position)?.is_some())
    }

    fn __repr__(&self) -> String {
        let path = self.path.display();
        format!("<awari.Book of {} positions by the rules {}: {path}>", self.book.positions(), self.rules())
    }

    /// Pickles the path: another process opens the book again.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (OsString,))> {
        Ok((py.import("awari")?.getattr("open_book")?, (self.path.clone(),)))
    }
}

impl Book {
    fn rule_set(&self) -> &Rules {
        self.book.rules()
    }
}

impl BookMove {
    fn new(reply: &book::BookReply) -> BookMove {
        BookMove {
            pit: char::from(b'A' + reply.pit.number() as u8),
            captured: reply.captured,
            bounds: bounds(reply.value),
            estimate: stones(reply.value.estimate),
            is_best: reply.is_best,
            goes_on: reply.goes_on,
            child: pits(&reply.child),
        }
    }
}

#[pymethods]
impl BookMove {
    fn __repr__(&self) -> String {
        let BookMove { pit, captured, bounds, estimate, is_best, goes_on, .. } = self;
        let flag = |name: &str, is_set: bool| if is_set { format!(", {name}=True") } else { String::new() };
        let flags = flag("is_best", *is_best) + &flag("goes_on", *goes_on);
        format!("BookMove(pit='{pit}', captured={captured}, bounds={bounds:?}, estimate={estimate}{flags})")
    }
}

#[pymethods]
impl BookEntry {
    fn __repr__(&self) -> String {
        let moves: Vec<String> = self.moves.iter().map(|book_move| format!("\n  {}", book_move.__repr__())).collect();
        format!("BookEntry(bounds={:?}, estimate={}, moves=[{}])", self.bounds, self.estimate, moves.join(","))
    }

    fn _repr_html_(&self) -> PyResult<String> {
        let rows = self.moves.iter().map(|book_move| {
            let BookMove { pit, captured, estimate, bounds: (low, high), .. } = book_move;
            format!("<tr><td>{pit}</td><td>{captured}</td><td>{estimate:+.2}</td><td>{low} to {high}</td></tr>")
        });
        Ok(format!(
            "{}<p>estimate {:+.2}, proved {} to {}</p><table><tr><th>pit</th><th>captures</th><th>estimate</th>\
             <th>proved</th></tr>{}</table>",
            board_html(&arguments::of_pits(&self.position)?),
            self.estimate,
            self.bounds.0,
            self.bounds.1,
            rows.collect::<String>(),
        ))
    }
}
