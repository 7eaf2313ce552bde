//! Checks a book: by the slow twin of what derives its values, by databases, and by the rules alone.

use crate::{Assessment, AwariGame, Book, BookGame, NodeId, refresh};
use search::ExactScores;

/// What a check of a book found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BookCheck {
    /// Descriptions of wrong positions.
    pub wrong: Vec<String>,
    /// The number of positions that databases hold.
    pub looked_up: u64,
    /// The bounds of the first root that follow from databases and rules alone, if they were wanted.
    pub certified: Option<Assessment>,
}

/// Derives all values again, and compares what was known of each position with databases. With `certify`, also derives
/// the bounds of the root without the results of searches.
pub fn check_book(book: &Book<AwariGame>, databases: &dyn ExactScores, certify: bool) -> BookCheck {
    let (game, graph) = (book.game(), book.graph());
    let mut wrong = Vec::new();
    let text = |id: NodeId| game.text(graph.node(id).key);
    for (id, expected) in graph.ids().zip(refresh::values(graph)) {
        if graph.value(id) != expected {
            wrong.push(format!(
                "{}: the values {:?} are not those that follow, {expected:?}",
                text(id),
                graph.value(id)
            ));
        }
    }
    let mut looked_up = 0;
    let mut certain = Vec::new();
    let mut moves = Vec::new();
    for id in graph.ids() {
        let node = graph.node(id);
        let board = AwariGame::board(node.key);
        moves.clear();
        game.moves(node.key, &mut moves);
        let most = game.value_max(node.key);
        let score = match moves.is_empty() {
            true => Some(-most),
            false if databases.knows(board.stones()) => {
                databases.score(&board).map(|score| AwariGame::hundredths(score.into()))
            }
            false => None,
        };
        looked_up += u64::from(score.is_some());
        for bounds in [node.assessment, graph.value(id)] {
            if let Some(score) = score.filter(|&score| score < bounds.low || bounds.high < score) {
                let (low, high) = (crate::stones(bounds.low), crate::stones(bounds.high));
                wrong.push(format!("{}: the value {} is not within {low}..{high}", text(id), crate::stones(score)));
            }
        }
        certain.push(score.map_or(Assessment { low: -most, high: most, estimate: 0 }, Assessment::exact));
    }
    let certified = certify.then(|| refresh::values_of(graph, &|id| certain[id.index()])[book.roots()[0].index()]);
    BookCheck { wrong, looked_up, certified }
}
