//! Moves that keep what a player is guaranteed, by rules that give a board two bounds.
//!
//! A move of the guaranteed value is not enough: of two such moves one may only repeat positions, and a
//! repetition ends the game. A guarantee is kept by moves that approach its end, a capture or the end of the
//! game. A search proves distances to it:
//!
//! ```text
//! distance(player to move) = 0 if a capture keeps the guarantee,
//!     else 1 + the least distance after a quiet move that keeps it
//! distance(opponent to move) = 0 if there are only captures, and all keep it,
//!     else 1 + the largest distance after a quiet move
//! distance(no legal move) = 0 if the end of the game keeps it
//! ```
//!
//! A move to a lesser distance remains one whatever the opponent replies, so no position is repeated.
//!
//! The search is depth-first, and goes where the least is missing to a proof: the proof number of a position
//! (Allis, van der Meulen & van den Herik 1994) is roughly the number of positions that a proof of it still
//! needs. A position cannot help to prove itself, so one on the path from the root counts as far from a
//! proof.
//!
//! Proved distances hold in every game, and are kept for the next search. Play can only return to a position
//! of the game so far if that is nearer to the end than the present one. Then another search counts each
//! return as what the players get for it.

use crate::answer::Oracle;
use crate::bounds::Bounds;
use crate::error::OracleError;
use crate::guarantee_graph::{
    GuaranteeGraph, GuaranteeNode, GuaranteePosition, ON_PATH, PROVED, QuietChildren, REFUTED,
};
use game::{Board, Pit, Played, Score};

/// The most positions that a search adds, which takes a second or two.
const ADDED_MAX: usize = 1_000_000;

/// The most visits in a row that neither decide a position nor find a new one: this many, and some for each
/// position. A proof takes about one visit a position. Where there is none, proof numbers may change for
/// ever.
const IDLE_VISITS_MAX: usize = 10_000;

/// The visits of [`IDLE_VISITS_MAX`] for each position that the search has added.
const IDLE_VISITS_A_POSITION: usize = 16;

/// The most moves from the root to another position, which bounds the stack. In 10,000 games with up to 12
/// stones, 109 were seen.
const DEPTH_MAX: u32 = 1_000;

/// The effect of a move on the guarantee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GuaranteeMove {
    /// A capture or a repetition that keeps it.
    Keeps,
    /// A capture or a repetition that loses it.
    Loses,
    /// Neither a capture nor a repetition.
    Quiet,
}

impl Oracle {
    /// Returns a move that keeps `guarantee` and approaches its end, after the positions `before` since the
    /// last capture of the game. `None` if no move is proved within the limits.
    ///
    /// # Errors
    /// As [`answer`](Oracle::answer).
    pub fn guaranteed_move(
        &self,
        board: &Board,
        before: &[Board],
        guarantee: Score,
    ) -> Result<Option<Pit>, OracleError> {
        self.guaranteed_move_until(board, before, guarantee, &|| false)
    }

    /// As [`guaranteed_move`](Self::guaranteed_move), but without a proof as soon as `is_over` says so.
    pub(crate) fn guaranteed_move_until(
        &self,
        board: &Board,
        before: &[Board],
        guarantee: Score,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Option<Pit>, OracleError> {
        let root = GuaranteePosition { board: *board, is_own: true, guarantee };
        let mut search = GuaranteeSearch::new(self, self.kept_guarantees.take(), &[], is_over);
        let found = search.guaranteed_move(root, before)?;
        self.kept_guarantees.put(search.graph);
        if let Some(pit) = found {
            return Ok(Some(pit));
        }
        let game: Vec<Board> = before.iter().copied().chain([*board]).collect();
        GuaranteeSearch::new(self, GuaranteeGraph::default(), &game, is_over).guaranteed_move(root, &[])
    }

    /// Returns the bounds of a move in a game, after the positions `before` since the last capture: a move
    /// back to one of them ends the game.
    #[cfg(feature = "search")]
    pub(crate) fn value_in_game(&self, played: &Played, before: &[Board]) -> Result<Bounds, OracleError> {
        match self.settled_value(played, before)? {
            Some(value) => Ok(value),
            None => Ok(self.score(&played.child)?.after_capture(played.captured)),
        }
    }

    /// Returns the bounds of a capture, or of a move back to a position of the game, which ends the game;
    /// `None` for other moves. In the last of the positions `before`, since the last capture, the same player
    /// was to move as after the move.
    fn settled_value(&self, played: &Played, before: &[Board]) -> Result<Option<Bounds>, OracleError> {
        let Played { child, captured } = played;
        let child_value = match captured {
            0 if before.iter().rev().step_by(2).any(|earlier| earlier == child) => {
                Bounds::exact(self.rules().repetition_score(child))
            }
            0 => return Ok(None),
            _ => self.score(child)?,
        };
        Ok(Some(child_value.after_capture(*captured)))
    }
}

/// A search for a proof.
struct GuaranteeSearch<'a> {
    oracle: &'a Oracle,
    graph: GuaranteeGraph,
    /// The positions of a game that count as repeated: in the last one the guaranteed player is to move.
    game: &'a [Board],
    /// The positions in the graph at the start.
    nodes_kept: usize,
    /// The visits since a position was decided or visited first.
    idle_visits: usize,
    /// Whether the time for the search is over.
    is_over: &'a dyn Fn() -> bool,
}

impl<'a> GuaranteeSearch<'a> {
    fn new(
        oracle: &'a Oracle,
        graph: GuaranteeGraph,
        game: &'a [Board],
        is_over: &'a dyn Fn() -> bool,
    ) -> GuaranteeSearch<'a> {
        let nodes_kept = graph.positions();
        GuaranteeSearch { oracle, graph, game, nodes_kept, idle_visits: 0, is_over }
    }

    fn is_exhausted(&self) -> bool {
        let added = self.graph.positions() - self.nodes_kept;
        added >= ADDED_MAX || self.idle_visits >= IDLE_VISITS_MAX + IDLE_VISITS_A_POSITION * added || (self.is_over)()
    }

    /// Returns a move that approaches the end, unless play could come to one of the positions `before` the present one.
    fn guaranteed_move(&mut self, root: GuaranteePosition, before: &[Board]) -> Result<Option<Pit>, OracleError> {
        let number = self.graph.number(root);
        let mut has_changed = true;
        while has_changed && self.graph.node(number).is_open() && !self.is_exhausted() {
            has_changed = self.search(number, REFUTED, 0)?;
        }
        let Some(distance) = self.graph.distance(&root) else { return Ok(None) };
        for (at, board) in before.iter().rev().enumerate() {
            let earlier = GuaranteePosition { board: *board, is_own: at % 2 == 1, ..root };
            if self.graph.distance(&earlier).is_some_and(|earlier| earlier < distance) {
                return Ok(None);
            }
        }
        let mut best: Option<(u32, Pit)> = None;
        for (pit, played) in root.board.moves(self.oracle.rules()) {
            let found = match self.effect(&root, &played)? {
                GuaranteeMove::Keeps => Some(0),
                GuaranteeMove::Loses => None,
                GuaranteeMove::Quiet => {
                    let child = GuaranteePosition { board: played.child, is_own: false, ..root };
                    self.graph.distance(&child).map(|distance| distance + 1)
                }
            };
            if let Some(found) = found.filter(|&found| best.is_none_or(|(least, _)| found < least)) {
                best = Some((found, pit));
            }
        }
        Ok(best.map(|(_, pit)| pit))
    }

    /// Searches until the proof number of a position is at least `limit`, or every way to a proof is on the
    /// path. Returns whether anything has changed: if not, another search would change nothing either.
    fn search(&mut self, number: u32, limit: u32, depth: u32) -> Result<bool, OracleError> {
        self.idle_visits += 1;
        if !self.graph.node(number).is_visited {
            let proof_number = self.first_proof_number(&self.graph.node(number).position)?;
            let node = self.graph.node_mut(number);
            (node.is_visited, node.proof_number) = (true, proof_number);
            self.idle_visits = 0;
            return Ok(true);
        }
        if depth > DEPTH_MAX {
            return Ok(self.graph.set_proof_number(number, ON_PATH));
        }
        let children = self.children(number)?;
        let mut has_changed = false;
        self.graph.node_mut(number).is_on_path = true;
        loop {
            let outlook = self.graph.proof_outlook(number, &children, limit);
            has_changed |= self.graph.set_proof_number(number, outlook.proof_number);
            self.graph.node_mut(number).distance = outlook.distance;
            let is_done = !self.graph.node(number).is_open() || outlook.proof_number >= limit || self.is_exhausted();
            let Some((child, limit)) = outlook.next.filter(|_| !is_done) else { break };
            if !self.search(child, limit, depth + 1)? {
                break;
            }
            has_changed = true;
        }
        self.graph.node_mut(number).is_on_path = false;
        if !self.graph.node(number).is_open() {
            self.idle_visits = 0;
        }
        Ok(has_changed)
    }

    /// Returns the proof number that follows from the moves of a position.
    fn first_proof_number(&self, position: &GuaranteePosition) -> Result<u32, OracleError> {
        let mut moves = Vec::with_capacity(6);
        for (_, played) in position.board.moves(self.oracle.rules()) {
            moves.push(self.effect(position, &played)?);
        }
        let [keeps, loses, is_quiet] =
            [GuaranteeMove::Keeps, GuaranteeMove::Loses, GuaranteeMove::Quiet].map(|effect| moves.contains(&effect));
        let (is_proved, is_refuted) = match (moves.is_empty(), position.is_own) {
            (true, _) => (self.is_guaranteed(position)?, true),
            (false, true) => (keeps, !is_quiet),
            (false, false) => (!is_quiet && !loses, loses),
        };
        Ok(match (is_proved, is_refuted) {
            (true, _) => PROVED,
            (false, true) => REFUTED,
            (false, false) => 1,
        })
    }

    fn effect(&self, position: &GuaranteePosition, played: &Played) -> Result<GuaranteeMove, OracleError> {
        // The guaranteed player is to move in the last position of the game.
        let before =
            if position.is_own { self.game.split_last().map_or(self.game, |(_, before)| before) } else { self.game };
        Ok(match self.oracle.settled_value(played, before)? {
            None => GuaranteeMove::Quiet,
            Some(value) if position.is_kept(value) => GuaranteeMove::Keeps,
            Some(_) => GuaranteeMove::Loses,
        })
    }

    /// Whether the player has the guarantee in a position, if no position of a game is repeated.
    fn is_guaranteed(&self, position: &GuaranteePosition) -> Result<bool, OracleError> {
        Ok(position.is_kept(self.oracle.score(&position.board)?))
    }

    /// Returns the positions after the quiet moves that a proof has to consider.
    fn children(&mut self, number: u32) -> Result<QuietChildren, OracleError> {
        let GuaranteeNode { position, children, .. } = *self.graph.node(number);
        if let Some(children) = children {
            return Ok(children);
        }
        let mut children = QuietChildren::default();
        for (_, played) in position.board.moves(self.oracle.rules()) {
            let child = GuaranteePosition { board: played.child, is_own: !position.is_own, ..position };
            let is_quiet = self.effect(&position, &played)? == GuaranteeMove::Quiet;
            // No quiet move of the opponent changes the guarantee.
            if is_quiet && (child.is_own || self.is_guaranteed(&child)?) {
                children.numbers[children.count as usize] = self.graph.number(child);
                children.count += 1;
            }
        }
        self.graph.node_mut(number).children = Some(children);
        Ok(children)
    }
}
