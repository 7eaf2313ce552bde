//! Checks a proof of a draw by the rule text and databases: the slow twin of [`crate::draw_proof`], without a search.

use crate::draw_proof::{KeptPosition, ProofRole};
use game::reference::{self, Pits, ReferenceMove};
use game::{Board, Rules};
use search::ExactScores;
use std::collections::HashSet;

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
            let score = databases.score(&Board(child)).ok_or_else(|| wrong("no database has the position after a capture"))?;
            let value = i32::from(captured) - i32::from(score);
            Ok(if kept.role == ProofRole::Defender { value >= 0 } else { value <= 0 })
        };
        let moves = reference::moves_by(rules, kept.board.0);
        let legal = |one: &ReferenceMove| match *one {
            ReferenceMove::Legal { captured, child } => Some((captured, child)),
            _ => None,
        };
        let mut all = moves.iter().filter_map(legal).peekable();
        if all.peek().is_none() {
            // The stones go to the opponent of the player who cannot move.
            let stones: u32 = kept.board.0.iter().map(|&pit| u32::from(pit)).sum();
            if kept.role == ProofRole::Defender && stones > 0 {
                return Err(wrong("the defender cannot move"));
            }
            continue;
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
    match set.is_empty() {
        true => Err("the set is empty".to_owned()),
        false => Ok(looked_up),
    }
}
