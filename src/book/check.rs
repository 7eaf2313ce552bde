//! Checks a book: by the slow twin of what derives its values, by databases, and by the rules alone.

use crate::assess::{Assessed, AssessmentError};
use crate::assessor_pool::AssessorPool;
use crate::awari::AwariGame;
use crate::expand::Book;
use crate::game::{Assessment, BookGame};
use crate::graph::NodeId;
use crate::refresh;
use crate::report::stones;
use search::{ExactScores, SearchStop};

/// What a check of a book found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BookCheck {
    /// Descriptions of wrong positions.
    pub wrong: Vec<String>,
    /// The number of positions that databases hold.
    pub looked_up: u64,
    /// What follows from databases and rules alone, if it was wanted.
    pub certificate: Option<BookCertificate>,
}

/// What follows from databases and rules alone, without the results of searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BookCertificate {
    /// The bounds of the first root.
    pub root: Assessment,
    /// The number of positions whose exact value follows.
    pub closed: u64,
}

/// Derives all values again, and compares what was known of each position with databases. With `certify`, also derives
/// all bounds without the results of searches, and compares them with the others.
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
                let (low, high) = (stones(bounds.low), stones(bounds.high));
                wrong.push(format!("{}: the value {} is not within {low}..{high}", text(id), stones(score)));
            }
        }
        certain.push(score.map_or(Assessment::unknown(most), Assessment::exact));
    }
    let mut certificate = None;
    if certify {
        let derived = refresh::values_of(graph, &|id| certain[id.index()]);
        for (id, derived) in graph.ids().zip(&derived) {
            let value = graph.value(id);
            if derived.low > value.high || value.low > derived.high {
                let [low, high, less, more] = [value.low, value.high, derived.low, derived.high].map(stones);
                let text = text(id);
                wrong.push(format!(
                    "{text}: the value is not within {low}..{high}: databases and rules prove {less}..{more}"
                ));
            }
        }
        let closed = derived.iter().filter(|derived| derived.is_exact()).count() as u64;
        certificate = Some(BookCertificate { root: derived[book.roots()[0].index()], closed });
    }
    BookCheck { wrong, looked_up, certificate }
}

/// Whether a result is that of a search, a database or the rules. Positions of proofs have bounds that say nothing.
fn is_result(game: &AwariGame, key: u64, assessed: &Assessed) -> bool {
    assessed.is_searched() || assessed.assessment != Assessment::unknown(game.value_max(key))
}

/// Assesses positions again, and returns descriptions of those whose results are others. The assessors have
/// the databases and the limits by which the results were found.
///
/// # Errors
/// The first [`AssessmentError`].
pub fn check_results(
    game: &AwariGame,
    results: &[(u64, Assessed)],
    assessors: &AssessorPool<'_>,
    stop: &SearchStop,
) -> Result<Vec<String>, AssessmentError> {
    let results: Vec<&(u64, Assessed)> =
        results.iter().filter(|(key, assessed)| is_result(game, *key, assessed)).collect();
    let keys: Vec<u64> = results.iter().map(|result| result.0).collect();
    let again = assessors.assess(&keys, stop)?;
    let wrong = results.iter().zip(again).filter(|(result, again)| result.1 != *again);
    let text = |(result, again): (&&(u64, Assessed), Assessed)| {
        let describe = |assessed: &Assessed| {
            let Assessment { low, high, estimate } = assessed.assessment;
            let [low, high, estimate] = [low, high, estimate].map(stones);
            format!("{estimate} in {low}..{high} at depth {} after {} positions", assessed.depth, assessed.nodes)
        };
        format!("{}: the result is {}, but the book has {}", game.text(result.0), describe(&again), describe(&result.1))
    };
    Ok(wrong.map(text).collect())
}
