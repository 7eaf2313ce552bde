//! A signature of what searches find.

use crate::evaluation::Evaluation;
use crate::exact_scores::NoScores;
use crate::limits::{SearchLimits, SearchStop};
use crate::searcher::{SearchRequest, Searcher};
use game::{Board, Rules};
use std::io;
use twox_hash::XxHash3_64;

/// Moves of the game.
const MOVES: usize = 60;

/// Positions that the search for a move visits.
const NODES: u64 = 1000;

/// Returns a number that changes with the evaluation and with what searches visit, but not with how fast they
/// are: a hash of the searches of a game from the opening, without databases, in which the program plays both
/// sides.
///
/// # Errors
/// If the system refuses the memory of a small table.
pub fn signature(rules: &Rules) -> io::Result<u32> {
    Ok(signature_of(&Searcher::by(*rules, 0, Evaluation::default())?))
}

fn signature_of(searcher: &Searcher) -> u32 {
    let mut board = Board::OPENING;
    let mut found = Vec::new();
    for _ in 0..MOVES {
        let limits = SearchLimits { nodes: Some(NODES), ..SearchLimits::default() };
        let report = searcher.search(&SearchRequest::new(board, limits), &NoScores, &SearchStop::new(), &mut |_| {});
        let Some(best) = report.moves.first() else { break };
        found.extend([u64::from(report.depth), report.nodes]);
        let moves = report.moves.iter();
        found.extend(
            moves.flat_map(|candidate| [candidate.pit.number() as u64, candidate.estimated_hundredths() as u64]),
        );
        board = board.play_unchecked(searcher.rules(), best.pit).child;
    }
    let bytes: Vec<u8> = found.into_iter().flat_map(u64::to_le_bytes).collect();
    XxHash3_64::oneshot(&bytes) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A change that makes searches faster leaves this number as it is. One that changes what they find needs
    /// a new number, and new figures in docs/engine.md.
    #[test]
    fn searches_find_what_they_found() {
        assert_eq!(format!("{:08x}", signature(&Rules::AWARI).unwrap()), "247311ad");
    }

    #[test]
    fn signatures_differ_as_searches_do() {
        let signature_by = |rules, evaluation| signature_of(&Searcher::by(rules, 0, evaluation).unwrap());
        let signatures = [
            signature_by(Rules::AWARI, Evaluation::default()),
            signature_by(Rules::AWARI, Evaluation::MATERIAL),
            signature_by(Rules::OWARE, Evaluation::default()),
        ];
        for (at, found) in signatures.iter().enumerate() {
            assert!(!signatures[..at].contains(found), "{signatures:x?}");
        }
    }
}
