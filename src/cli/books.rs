//! `awari book`: opening books of a run directory.

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
use book::{AwariGame, Book, BookError, BookFile};
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

/// Opens a book for reading.
fn open(args: &BookFileArgs) -> Result<(BookFile, Book<AwariGame>)> {
    let file = BookFile::open_any(&path(args))?;
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
