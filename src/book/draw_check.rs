//! What a proof of a draw is worth without the search that found it: a check by the rule text and databases,
//! and a book that holds the proof.

use crate::assess::Assessed;
use crate::awari::AwariGame;
use crate::draw_proof::{KeptPosition, ProofRole};
use crate::game::{Assessment, BookGame};
use crate::storage::{BookError, BookFile};
use game::reference::{self, Pits, ReferenceMove};
use game::{Board, Rules};
use search::ExactScores;
use std::collections::{HashSet, VecDeque};

/// Checks that a set of positions keeps the claim of its first position: that the defender gets at least 0. Returns the
/// number of captures that were looked up.
///
/// # Errors
/// A description of a position whose moves leave the set.
pub fn check_kept(rules: &Rules, set: &[KeptPosition], databases: &dyn ExactScores) -> Result<u64, String> {
    let members: HashSet<(Pits, ProofRole)> = set.iter().map(|kept| (kept.board.0, kept.role)).collect();
    let mut looked_up = 0;
    for kept in set {
        let wrong = |what: &str| format!("{:?} ({:?} to move): {what}", kept.board.0, kept.role);
        // Whether a move keeps the claim, of the player who makes it.
        let mut keeps = |captured: u8, child: Pits| -> Result<bool, String> {
            let next = match kept.role {
                ProofRole::Defender => ProofRole::Attacker,
                ProofRole::Attacker => ProofRole::Defender,
            };
            if captured == 0 {
                return Ok(members.contains(&(child, next)));
            }
            looked_up += 1;
            let score =
                databases.score(&Board(child)).ok_or_else(|| wrong("no database has the position after a capture"))?;
            let value = i32::from(captured) - i32::from(score);
            Ok(if kept.role == ProofRole::Defender { value >= 0 } else { value <= 0 })
        };
        let moves = reference::moves_by(rules, kept.board.0);
        let legal = |candidate: &ReferenceMove| match *candidate {
            ReferenceMove::Legal { captured, child } => Some((captured, child)),
            _ => None,
        };
        let mut all = moves.iter().filter_map(legal).peekable();
        if all.peek().is_none() {
            let score = rules.terminal_score(&kept.board);
            match kept.role {
                ProofRole::Defender if score < 0 => return Err(wrong("the defender cannot move")),
                ProofRole::Attacker if score > 0 => return Err(wrong("the attacker cannot move, and wins")),
                _ => continue,
            }
        }
        match kept.role {
            ProofRole::Defender => {
                let chosen = kept.pit.and_then(|pit| legal(&moves[pit.number()]));
                let (captured, child) = chosen.ok_or_else(|| wrong("the defender's move is not legal"))?;
                if !keeps(captured, child)? {
                    return Err(wrong("the defender's move leaves the set"));
                }
            }
            ProofRole::Attacker => {
                for (captured, child) in all {
                    if !keeps(captured, child)? {
                        return Err(wrong("a move of the attacker leaves the set"));
                    }
                }
            }
        }
    }
    if set.is_empty() { Err("the set is empty".to_owned()) } else { Ok(looked_up) }
}

/// Enters the positions of sets, with all their moves, into a new book, all or none. The first position of
/// the first set is the root. What is known of the other positions comes from databases and the rules alone,
/// so that the bounds of the book's root are those that the sets prove. Returns the number of expansions.
///
/// # Errors
/// [`BookError`], if the file fails.
pub fn enter_proof(
    file: &mut BookFile,
    rules: &Rules,
    sets: &[&[KeptPosition]],
    databases: &dyn ExactScores,
) -> Result<u64, BookError> {
    let game = AwariGame::new(*rules);
    let members: HashSet<u64> = sets.iter().copied().flatten().map(|kept| AwariGame::key(&kept.board)).collect();
    let assess = |key: u64| {
        let (board, most) = (AwariGame::board(key), game.value_max(key));
        let known = match board.moves(rules).next() {
            None => Some(rules.terminal_score(&board)),
            Some(_) if databases.knows(board.stones()) => databases.score(&board),
            Some(_) => None,
        };
        let assessment =
            known.map_or(Assessment::unknown(most), |score| Assessment::exact(AwariGame::hundredths(score.into())));
        Assessed { assessment, depth: 0, nodes: 0 }
    };
    let Some(root) = sets.first().and_then(|set| set.first()) else { return Ok(0) };
    let root = AwariGame::key(&root.board);
    let (mut entered, mut queue) = (HashSet::from([root]), VecDeque::from([root]));
    let mut moves = Vec::new();
    let next = std::iter::from_fn(|| {
        loop {
            let key = queue.pop_front()?;
            moves.clear();
            game.moves(key, &mut moves);
            if moves.is_empty() {
                continue;
            }
            let new: Vec<u64> =
                moves.iter().map(|book_move| book_move.successor).filter(|&key| entered.insert(key)).collect();
            queue.extend(new.iter().filter(|key| members.contains(key)));
            let mut found: Vec<(u64, Assessed)> = new.into_iter().map(|key| (key, assess(key))).collect();
            found.sort_unstable_by_key(|assessed| assessed.0);
            return Some((key, found));
        }
    });
    file.enter_book(root, &assess(root), next)
}
