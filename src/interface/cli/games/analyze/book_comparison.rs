//! A game compared with an opening book: who left it, and when.
//!
//! A player leaves the book with a move that is not one of its best. The book may go on after such a move, and its end is
//! reported apart.

use super::AnalyzedMove;
use book::{BookPosition, BookReply, Hundredths};
use game::Pit;
use game::notation::Side;
use game::transcript::side_name;
use serde_json::{Value, json};

/// A move that the book has.
pub(super) struct ComparedMove {
    reply: BookReply,
    /// What it is worth less than the best move of the book, by estimate.
    loss: Hundredths,
}

impl ComparedMove {
    /// Compares a move with those of the book.
    pub(super) fn new(position: &BookPosition, pit: Pit) -> Option<ComparedMove> {
        let reply = *position.reply(pit)?;
        Some(ComparedMove { reply, loss: reply.loss(position) })
    }

    /// Returns `best`, or the loss in stones.
    pub(super) fn text(&self) -> String {
        if self.reply.is_best { "best".to_owned() } else { book::stones(-self.loss) }
    }

    pub(super) fn json(&self) -> Value {
        let stones = |hundredths: Hundredths| f64::from(hundredths) / 100.0;
        json!({ "value": stones(self.reply.value.estimate), "best": self.reply.is_best, "loss": stones(self.loss) })
    }
}

/// A game compared with a book.
pub(super) struct BookComparison {
    /// The number of moves that the book has.
    moves: usize,
    /// The number of the first move that is not a best one of the book, from 1, and its player.
    left: Option<(usize, Side)>,
}

impl BookComparison {
    pub(super) fn new(moves: &[AnalyzedMove]) -> BookComparison {
        let left = moves.iter().position(|one| one.book.as_ref().is_some_and(|found| !found.reply.is_best));
        BookComparison {
            moves: moves.iter().filter(|one| one.book.is_some()).count(),
            left: left.map(|at| (at + 1, moves[at].judged.turn.side)),
        }
    }

    pub(super) fn text(&self, moves: &[AnalyzedMove]) -> String {
        if self.moves == 0 {
            return "the book does not have the first position of the game\n".to_owned();
        }
        let end = if self.moves < moves.len() {
            format!("the book ends after move {}", self.moves)
        } else {
            "the book does not end before the game".to_owned()
        };
        let Some((number, side)) = self.left else {
            return format!("no player left the book; {end}\n");
        };
        let AnalyzedMove { judged, book, .. } = &moves[number - 1];
        let lost = book.as_ref().map_or(0, |found| found.loss);
        format!(
            "{} left the book with move {number}, {}{}, and lost {} stones by its estimate; {end}\n",
            side_name(side),
            judged.turn.text(),
            judged.turn.sown,
            book::stones(lost)
        )
    }

    pub(super) fn json(&self) -> Value {
        let left_by = self.left.map(|(_, side)| if side == Side::South { "south" } else { "north" });
        json!({ "moves": self.moves, "left_by": left_by, "left_with": self.left.map(|(number, _)| number) })
    }
}
