//! A game compared with an opening book: who left it, and when.
//!
//! A player leaves the book with a move that is not one of its best. The book may go on after such a move,
//! and its end is reported apart.

use super::AnalyzedMove;
use book::{BookError, BookPosition, BookReply, Hundredths, OpeningBook};
use game::notation::Side;
use game::play::GameTurn;
use game::transcript::side_name;
use serde_json::{Value, json};
use std::cmp::Ordering;

/// The most moves of a line of the book that are followed.
const LINE_MOVES_MAX: usize = 100;

/// A move that the book has.
pub(super) struct ComparedMove {
    reply: BookReply,
    /// What it is worth less than the best move of the book, by estimate.
    loss: Hundredths,
    /// The length of the line of best moves that the book has from this move on, which its value rests on.
    depth: usize,
}

impl ComparedMove {
    /// Compares a move with those of the book.
    pub(super) fn new(
        book: &OpeningBook,
        position: &BookPosition,
        turn: GameTurn,
    ) -> Result<Option<ComparedMove>, BookError> {
        let Some(&reply) = position.reply(turn.pit) else { return Ok(None) };
        let (mut depth, mut board) = (1, turn.after.board);
        while depth < LINE_MOVES_MAX
            && let Some(best) = book.best(&board)?
        {
            board = best.child;
            depth += 1;
        }
        Ok(Some(ComparedMove { reply, loss: reply.loss(position), depth }))
    }

    /// Says which looked deeper, if the book and a search of some depth disagree about whether the move is an error.
    pub(super) fn disagreement(&self, is_error_by_search: bool, search_depth: u32) -> Option<String> {
        let is_error_by_book = i32::from(self.loss) >= super::ERROR_HUNDREDTHS;
        let judged = |is_error| if is_error { "an error" } else { "no error" };
        let deeper = match self.depth.cmp(&(search_depth as usize)) {
            Ordering::Greater => "the book looked deeper",
            Ordering::Less => "the search looked deeper",
            Ordering::Equal => "both looked as deep",
        };
        (is_error_by_book != is_error_by_search).then(|| {
            format!(
                "{} by the book ({} moves deep), {} by the search (depth {search_depth}): {deeper}",
                judged(is_error_by_book),
                self.depth,
                judged(is_error_by_search),
            )
        })
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
        let left = moves.iter().position(|analyzed| analyzed.book.as_ref().is_some_and(|found| !found.reply.is_best));
        BookComparison {
            moves: moves.iter().filter(|analyzed| analyzed.book.is_some()).count(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use book::Assessment;
    use game::{Board, Pit};

    #[test]
    fn the_deeper_of_two_judges_is_named() {
        let said = |loss: Hundredths, depth, is_error_by_search, search_depth| {
            let value = Assessment::exact(-loss);
            let (pit, child) = (Pit::ALL[0], Board::OPENING);
            let reply = BookReply { pit, captured: 0, child, value, is_best: loss == 0, goes_on: depth > 1 };
            ComparedMove { reply, loss, depth }.disagreement(is_error_by_search, search_depth)
        };
        assert_eq!(
            said(0, 9, true, 4).as_deref(),
            Some("no error by the book (9 moves deep), an error by the search (depth 4): the book looked deeper")
        );
        assert_eq!(
            said(50, 2, false, 7).as_deref(),
            Some("an error by the book (2 moves deep), no error by the search (depth 7): the search looked deeper")
        );
        assert!(said(300, 5, false, 5).is_some_and(|text| text.ends_with(": both looked as deep")));
        assert_eq!([said(49, 9, false, 4), said(50, 9, true, 4)], [None, None]);
    }
}
