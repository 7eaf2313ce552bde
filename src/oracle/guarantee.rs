//! Moves that keep what a player is guaranteed, by rules that give a board two bounds.
//!
//! A move of the guaranteed value is not enough: of two such moves one may only repeat positions, and a repetition ends the
//! game. A guarantee is kept by moves that approach its end, a capture or the end of the game. So the positions that such
//! moves lead to are collected up to a distance, and distances are derived from the ends backward:
//!
//! ```text
//! distance(player to move) = 1 + the least distance after the moves that keep the guarantee
//! distance(opponent to move) = 1 + the largest distance after all quiet moves, 0 if there are none
//! ```
//!
//! Each move to a position of the least distance decreases it, whatever the opponent replies, so no position is repeated. A
//! position of the game so far would end the game: it counts with what the players then get.

use crate::{Bounds, Oracle, OracleError};
use game::{Board, Pit, Score};
use std::collections::HashMap;

/// The first distance up to which positions are collected; it is doubled until the guarantee is proved.
const DISTANCE_FIRST: u32 = 4;

/// The most positions that are collected for one move: seconds, and tens of megabytes.
const POSITIONS_MAX: usize = 400_000;

/// A position of a proof, and whether the guaranteed player is to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct GuaranteePosition {
    board: Board,
    is_own: bool,
}

/// The moves that a proof has to consider in a position.
#[derive(Debug, Default)]
struct GuaranteeNode {
    /// Whether the guaranteed player has a move that ends the proof, or for the opponent, whether every move without a child
    /// does.
    ends: bool,
    /// The children by quiet moves.
    children: Vec<usize>,
    /// The distance, once it is known.
    distance: Option<u32>,
}

impl Oracle {
    /// Returns the moves of a position that keep `guarantee` and are nearest to its end, after the positions `before` since
    /// the last capture of the game. `None` if no move is proved within the limits.
    ///
    /// # Errors
    /// As [`answer`](Oracle::answer).
    pub fn guaranteed_move(
        &self,
        board: &Board,
        before: &[Board],
        guarantee: Score,
    ) -> Result<Option<Pit>, OracleError> {
        let mut distance = DISTANCE_FIRST;
        loop {
            let mut proof = GuaranteeProof::new(self, board, before, guarantee);
            let is_complete = proof.collect(distance)?;
            proof.derive();
            if proof.nodes[0].distance.is_some() {
                return proof.best_move();
            }
            if is_complete || proof.nodes.len() >= POSITIONS_MAX {
                return Ok(None);
            }
            distance *= 2;
        }
    }

    /// Returns the bounds of a move in a game, after the positions `before` since the last capture: a move back to one of
    /// them ends the game.
    pub(crate) fn value_in_game(&self, captured: u8, child: &Board, before: &[Board]) -> Result<Bounds, OracleError> {
        let ends = captured == 0 && before.iter().rev().step_by(2).any(|earlier| earlier == child);
        let bounds = match ends {
            true => Bounds::exact(self.rules().repetition_score(child)),
            false => self.score(child)?,
        };
        Ok(bounds.after_capture(captured))
    }
}

/// The collected positions.
struct GuaranteeProof<'a> {
    oracle: &'a Oracle,
    guarantee: Score,
    /// The positions of the game before the present one, in the last of which the opponent was to move.
    before: &'a [Board],
    numbers: HashMap<GuaranteePosition, usize>,
    keys: Vec<GuaranteePosition>,
    nodes: Vec<GuaranteeNode>,
}

impl<'a> GuaranteeProof<'a> {
    fn new(oracle: &'a Oracle, board: &Board, before: &'a [Board], guarantee: Score) -> GuaranteeProof<'a> {
        let root = GuaranteePosition { board: *board, is_own: true };
        GuaranteeProof {
            oracle,
            guarantee,
            before,
            numbers: HashMap::from([(root, 0)]),
            keys: vec![root],
            nodes: vec![GuaranteeNode::default()],
        }
    }

    /// Collects the positions up to a distance. Returns whether there are no others.
    fn collect(&mut self, distance: u32) -> Result<bool, OracleError> {
        let mut next = 0;
        for _ in 0..distance {
            let end = self.keys.len();
            while next < end {
                if self.keys.len() >= POSITIONS_MAX {
                    return Ok(false);
                }
                self.nodes[next] = self.moves(next)?;
                next += 1;
            }
        }
        Ok(next == self.keys.len())
    }

    /// Returns the moves of a position that the proof has to consider.
    fn moves(&mut self, number: usize) -> Result<GuaranteeNode, OracleError> {
        let (GuaranteePosition { board, is_own }, rules) = (self.keys[number], self.oracle.rules());
        let mut moves = GuaranteeNode { ends: !is_own, ..GuaranteeNode::default() };
        for (_, played) in board.moves(rules) {
            let is_over = played.captured == 0 && self.is_in_game(&played.child, !is_own);
            let value = match is_over {
                true => Bounds::exact(rules.repetition_score(&played.child)),
                false => self.oracle.score(&played.child)?,
            };
            let value = value.after_capture(played.captured);
            let keeps = match is_own {
                true => value.low() >= self.guarantee,
                false => value.high() <= -self.guarantee,
            };
            let is_end = is_over || played.captured > 0 || played.child.moves(rules).next().is_none();
            match (keeps, is_end) {
                // The opponent has a way to less, only if a database is wrong or the game has been here.
                (false, _) if !is_own => moves.ends = false,
                (false, _) => {}
                (true, true) if is_own => moves.ends = true,
                (true, true) => {}
                (true, false) => {
                    moves.children.push(self.number(GuaranteePosition { board: played.child, is_own: !is_own }))
                }
            }
        }
        Ok(moves)
    }

    /// Whether a position occurred in the game, the present one included.
    fn is_in_game(&self, board: &Board, is_own: bool) -> bool {
        let earlier = self.before.iter().rev().skip(usize::from(is_own)).step_by(2);
        is_own && *board == self.keys[0].board || earlier.into_iter().any(|earlier| earlier == board)
    }

    /// Returns the number of a position, which is a new one at its first occurrence.
    fn number(&mut self, position: GuaranteePosition) -> usize {
        *self.numbers.entry(position).or_insert_with(|| {
            self.keys.push(position);
            self.nodes.push(GuaranteeNode::default());
            self.keys.len() - 1
        })
    }

    /// Derives distances in rounds: a position derived in a round has the distance of its number. Positions whose moves were not
    /// collected have none.
    fn derive(&mut self) {
        let mut parents: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        let mut open: Vec<usize> = self.nodes.iter().map(|node| node.children.len()).collect();
        for (number, node) in self.nodes.iter().enumerate() {
            node.children.iter().for_each(|&child| parents[child].push(number));
        }
        let is_end = |number: &usize| self.nodes[*number].ends && (self.keys[*number].is_own || open[*number] == 0);
        let mut round: Vec<usize> = (0..self.nodes.len()).filter(is_end).collect();
        for distance in 0.. {
            let mut next = Vec::new();
            for number in std::mem::take(&mut round) {
                if self.nodes[number].distance.is_some() {
                    continue;
                }
                self.nodes[number].distance = Some(distance);
                for &parent in &parents[number] {
                    open[parent] -= 1;
                    if self.keys[parent].is_own || open[parent] == 0 && self.nodes[parent].ends {
                        next.push(parent);
                    }
                }
            }
            if next.is_empty() {
                break;
            }
            round = next;
        }
    }

    /// Returns the move to an end of the proof, or to the position of the least distance.
    fn best_move(&self) -> Result<Option<Pit>, OracleError> {
        let mut best: Option<(u32, Pit)> = None;
        for (pit, played) in self.keys[0].board.moves(self.oracle.rules()) {
            let value = self.oracle.value_in_game(played.captured, &played.child, self.before)?;
            let child = GuaranteePosition { board: played.child, is_own: false };
            let distance = match self.numbers.get(&child).filter(|_| played.captured == 0) {
                Some(&number) => self.nodes[number].distance.map(|distance| distance + 1),
                None => Some(0),
            };
            let distance = distance.filter(|_| value.low() >= self.guarantee);
            if let Some(distance) = distance.filter(|&distance| best.is_none_or(|(least, _)| distance < least)) {
                best = Some((distance, pit));
            }
        }
        Ok(best.map(|(_, pit)| pit))
    }
}
