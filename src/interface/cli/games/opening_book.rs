//! The opening book that a command answers from, and what it has of a position, as text.

use crate::args::BookUseArgs;
use crate::error::Result;
use crate::games::probe::pit_name;
use crate::text::screen::Width;
use crate::text::table::TextTable;
use crate::text::terminal::say;
use book::{Assessment, BookError, BookPosition, OpeningBook, stones};
use game::Rules;
use game::notation::Side;
use std::fmt::Write;
use std::path::Path;

/// What is said of a book without stored values.
pub(crate) const DERIVED: &str = "the book has grown since its values were stored, or none are; they were derived from its facts. \
    Opening is quicker once `awari book expand` has ended, which stores them";

/// Opens the book that a command answers from: the chosen one, or that of the run directory, if it has one.
pub(crate) fn opening_book(dir: Option<&Path>, args: &BookUseArgs, rules: &Rules) -> Result<Option<OpeningBook>> {
    let book = match (&args.book, dir) {
        (Some(chosen), _) if chosen == Path::new("none") => return Ok(None),
        (Some(chosen), _) => OpeningBook::open(chosen, rules),
        (None, None) => return Ok(None),
        (None, Some(dir)) => match OpeningBook::open(&dir.join("books").join("opening.sqlite"), rules) {
            Err(BookError::Missing(_)) => return Ok(None),
            book => book,
        },
    };
    Ok(Some(opened(book?)))
}

/// Says if the values of a book had to be derived.
pub(crate) fn opened(book: OpeningBook) -> OpeningBook {
    if !book.is_stored() {
        say(DERIVED);
    }
    book
}

/// Formats a value: `0.35, proved within -4..48`, or `0, proved`.
pub(crate) fn book_worth(value: Assessment) -> String {
    if value.is_exact() {
        format!("{}, proved", stones(value.low))
    } else {
        format!("{}, proved within {}..{}", stones(value.estimate), stones(value.low), stones(value.high))
    }
}

/// Describes what a book has of a position: its value, and a row for each move, the best first.
pub(crate) fn position_text(position: &BookPosition, side: Side) -> String {
    let mut text = format!("value {}\n", book_worth(position.value));
    if position.moves.is_empty() {
        return text + "the book ends here\n";
    }
    let mut table = TextTable::new(&["move", "captures", "value", "at least", "at most", "book"]).numbers([1, 2, 3, 4]);
    for reply in &position.moves {
        table.add_row([
            pit_name(reply.pit, side),
            reply.captured.to_string(),
            stones(reply.value.estimate),
            stones(reply.value.low),
            stones(reply.value.high),
            match () {
                () if reply.value.is_exact() => "proved",
                () if reply.goes_on => "goes on",
                () => "ends",
            }
            .to_owned(),
        ]);
    }
    let _ = writeln!(text, "\n{}", table.fit(Width::stdout()));
    text
}
