//! `awari book`: opening books of a run directory.

pub(crate) mod book_summary;
mod databases;
mod expand;
mod play;
mod progress;
mod prove;
mod reports;
mod show;
mod verify;

use crate::args::{BookArgs, BookCommand, BookFileArgs, BookSide};
use crate::error::Result;
use crate::files::databases::library;
use crate::games::opening_book::opened as opened_book;
use book::{AwariGame, Book, BookError, BookFile, OpeningBook};
use disk::RealDisk;
use game::Rules;
use oracle::LibraryFile;
use pipeline::Exit;
use std::path::PathBuf;

pub(crate) fn run(args: &BookArgs) -> Result<Exit> {
    match &args.command {
        BookCommand::Expand(args) => expand::run(args),
        BookCommand::Prove(args) => prove::run(args),
        BookCommand::Show(args) => show::run(args),
        BookCommand::Play(args) => play::run(args),
        BookCommand::Export(args) => reports::export(args),
        BookCommand::Verify(args) => verify::run(args),
        BookCommand::Stats(args) => reports::stats(args),
        BookCommand::Diagram(args) => reports::diagram(args),
    }
}

/// Returns the path of a book.
fn path(args: &BookFileArgs) -> PathBuf {
    args.dir.join("books").join(format!("{}.sqlite", args.name))
}

/// Returns the rules of the databases of a directory, if it has any that can be opened.
fn rules(args: &BookFileArgs) -> Option<Rules> {
    let library = library(&RealDisk::default(), &args.dir).ok()?;
    let is_sound = |file: &LibraryFile| matches!(file, LibraryFile::Sound(_));
    library.files().values().any(is_sound).then(|| library.rules())
}

/// Opens a book for a player. Without databases a book may be by any rules.
fn opening_book(args: &BookFileArgs) -> Result<OpeningBook> {
    let opened = match rules(args) {
        Some(rules) => OpeningBook::open(&path(args), &rules),
        None => OpeningBook::open_any(&path(args)),
    };
    Ok(opened_book(opened?))
}

/// Opens a book for reading. Without databases it may be by any rules.
fn open(args: &BookFileArgs) -> Result<(BookFile, Book<AwariGame>)> {
    let file = match rules(args) {
        Some(rules) => BookFile::open(&path(args), &rules)?,
        None => BookFile::open_any(&path(args))?,
    };
    let book = file.load_values()?;
    if book.roots().is_empty() {
        // The process that made it was killed before it entered the root.
        return Err(BookError::Missing(path(args)).into());
    }
    Ok((file, book))
}

/// Whether the book player is to move at the root.
fn is_book_first(side: BookSide) -> bool {
    side != BookSide::Second
}
