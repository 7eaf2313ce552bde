//! What a book has of a position, as text.

use crate::probe::pit_name;
use crate::screen::Width;
use crate::table::TextTable;
use book::{Assessment, BookPosition, stones};
use game::notation::Side;
use std::fmt::Write;

/// Formats a value: `0.35, proved within -4..48`, or `0, proved`.
pub(crate) fn book_worth(value: Assessment) -> String {
    match value.is_exact() {
        true => format!("{}, proved", stones(value.low)),
        false => format!("{}, proved within {}..{}", stones(value.estimate), stones(value.low), stones(value.high)),
    }
}

/// Describes what a book has of a position: its value, and a row for each move, the best first.
pub(crate) fn position_text(position: &BookPosition, side: Side) -> String {
    let mut text = format!("value {}\n", book_worth(position.value));
    if position.moves.is_empty() {
        return text + "the book ends here\n";
    }
    let mut table = TextTable::new(&["move", "captures", "value", "at least", "at most", "book"]).numbers([1, 2, 3, 4]);
    for one in &position.moves {
        table.add_row([
            pit_name(one.pit, side),
            one.captured.to_string(),
            stones(one.value.estimate),
            stones(one.value.low),
            stones(one.value.high),
            match () {
                () if one.value.is_exact() => "proved",
                () if one.goes_on => "goes on",
                () => "ends",
            }
            .to_owned(),
        ]);
    }
    let _ = writeln!(text, "\n{}", table.fit(Width::stdout()));
    text
}
