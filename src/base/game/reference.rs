//! The slow twin: the rules from their text alone, for tests only.
//!
//! This module uses nothing else of the crate but the parameters of the rules, so only an error made in both
//! implementations escapes the tests. Where the fast code turns the board after each move and numbers halves,
//! this module keeps an absolute board of twelve pits with a side to move, sows stone by stone, and lists
//! positions by recursion. Text: Lincke 2002, appendix A; Romein & Bal 2002, section 2:
//!
//! * A move takes all stones of a non-empty pit of the player's own side and drops them one by one, counter-clockwise,
//!   starting with the next pit; a pit that held twelve or more is skipped.
//! * If the last stone falls into a pit of the opponent that then holds two or three, these are captured, and those of
//!   the preceding pits likewise as long as they are the opponent's and hold two or three.
//! * A player who has the choice must move so that the opponent has stones left.
//! * A player who cannot move loses the remaining stones to the opponent. When a position repeats, the rest is shared
//!   out.
//!
//! The other rules of the family differ in what they say of a *slam*, which captures all of the opponent's stones:
//!
//! * *No capture* (Oware Society, rules of abapa; asked for by Donkers 2002): the move is made, but captures nothing.
//! * *Capture*: it captures like any other, and the opponent cannot move.
//! * *Illegal*: it may not be made, not even by a player without another move, who then cannot move.
//! * *Leave first* and *leave last*: the stones of the pit captured first, or last, stay.
//!
//! A player who cannot move may keep the stones on the own side, as may the opponent, instead of losing all.
//! By such rules a player who can give an opponent without stones none cannot move.
//!
//! Functions whose names end in `_by` take the rules; the others are of awari. Positions are [`Pits`], the mover's six
//! first.

use crate::rules::{RepetitionRule, RestOwner, Rules, Slam};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};

/// The stones in the twelve pits: six of the player to move, then six of the opponent, counter-clockwise.
pub type Pits = [u8; 12];

/// Scores of all positions with some number of stones: what the mover will capture minus what the opponent will.
///
/// The order of its entries is arbitrary, but the same in each run.
pub type ReferenceScores = HashMap<Pits, i8, BuildHasherDefault<DefaultHasher>>;

/// The result of a move by the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceMove {
    /// The pit is empty.
    Empty,
    /// The move is illegal: it would leave the opponent without stones.
    Starves,
    /// The move is illegal: it would capture all of the opponent's stones.
    Slam,
    /// A legal move.
    Legal {
        /// Stones captured.
        captured: u8,
        /// The position after the move, seen from the opponent, who moves next.
        child: Pits,
    },
}

/// The seat of the mover. The rules are the same for both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seat {
    /// Owns the absolute pits 0 to 5.
    South,
    /// Owns the absolute pits 6 to 11.
    North,
}

/// A set of positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Positions {
    /// All positions.
    All,
    /// Positions that a move can lead to, by their shape: the player who has just moved has an empty pit (the
    /// origin). The opening position, which no move leads to, is included.
    Reachable,
}

/// Which half comes first in the order of positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowHalf {
    /// The mover's.
    Mover,
    /// The opponent's.
    Opponent,
}

impl Seat {
    /// South, then North.
    pub const BOTH: [Seat; 2] = [Seat::South, Seat::North];

    fn other(self) -> Seat {
        match self {
            Seat::South => Seat::North,
            Seat::North => Seat::South,
        }
    }

    fn owns(self, absolute: usize) -> bool {
        match self {
            Seat::South => absolute < 6,
            Seat::North => absolute >= 6,
        }
    }

    /// The absolute place of a pit counted from this seat.
    fn absolute(self, pit: usize) -> usize {
        match self {
            Seat::South => pit,
            Seat::North => (pit + 6) % 12,
        }
    }

    /// Converts pits counted from this seat to absolute ones, and back (the shift is half a turn).
    fn exchange(self, pits: Pits) -> Pits {
        std::array::from_fn(|pit| pits[self.absolute(pit)])
    }
}

/// The six moves of a position, sown from either seat with the same result.
pub fn moves(pits: Pits) -> [ReferenceMove; 6] {
    moves_by(&Rules::AWARI, pits)
}

/// The six moves of a position.
pub fn moves_by(rules: &Rules, pits: Pits) -> [ReferenceMove; 6] {
    moves_from_by(rules, Seat::South, pits)
}

/// The six moves of a position whose mover sits in `seat`.
pub fn moves_from(seat: Seat, pits: Pits) -> [ReferenceMove; 6] {
    moves_from_by(&Rules::AWARI, seat, pits)
}

/// The six moves of a position whose mover sits in `seat`.
pub fn moves_from_by(rules: &Rules, seat: Seat, pits: Pits) -> [ReferenceMove; 6] {
    let sown: [Option<(u8, Pits)>; 6] = std::array::from_fn(|pit| sow_from(rules, seat, pits, pit));
    // A capture of all is a slam; only some rules allow it.
    let is_slam = |&(captured, child): &(u8, Pits)| captured > 0 && child[..6].iter().all(|&stones| stones == 0);
    let starves = |after: &(u8, Pits)| {
        let is_allowed = rules.slam == Slam::Capture && is_slam(after);
        after.1[..6].iter().all(|&stones| stones == 0) && !is_allowed
    };
    let is_illegal = |after: &(u8, Pits)| rules.slam == Slam::Illegal && is_slam(after);
    let must_feed = rules.rest == RestOwner::OwnSide || sown.iter().flatten().any(|after| !starves(after));
    sown.map(|after| match after {
        None => ReferenceMove::Empty,
        Some(after) if is_illegal(&after) => ReferenceMove::Slam,
        Some(after) if must_feed && starves(&after) => ReferenceMove::Starves,
        Some((captured, child)) => ReferenceMove::Legal { captured, child },
    })
}

/// Sows and captures, even if the opponent keeps no stones. Returns the captured stones, and the position after it with
/// the opponent's pits first, or `None` if the pit is empty.
pub fn sow(pits: Pits, pit: usize) -> Option<(u8, Pits)> {
    sow_by(&Rules::AWARI, pits, pit)
}

/// As [`sow`], by some rules.
pub fn sow_by(rules: &Rules, pits: Pits, pit: usize) -> Option<(u8, Pits)> {
    sow_from(rules, Seat::South, pits, pit)
}

fn sow_from(rules: &Rules, seat: Seat, pits: Pits, pit: usize) -> Option<(u8, Pits)> {
    let mut board = seat.exchange(pits);
    let origin = seat.absolute(pit);
    let mut hand = board[origin];
    if hand == 0 {
        return None;
    }
    board[origin] = 0;
    let mut at = origin;
    while hand > 0 {
        at = (at + 1) % 12;
        if at != origin {
            board[at] += 1;
            hand -= 1;
        }
    }
    // The pits that are captured, in the order of capturing.
    let mut taken = Vec::new();
    while seat.other().owns(at) && board[at] >= rules.capture_low && board[at] <= rules.capture_high && taken.len() < 6
    {
        taken.push(at);
        at = (at + 11) % 12;
    }
    let opponents = (0..12).filter(|&pit| seat.other().owns(pit) && board[pit] > 0).count();
    if !taken.is_empty() && taken.len() == opponents {
        match rules.slam {
            Slam::IllegalUnlessAll | Slam::Illegal | Slam::Capture => {}
            Slam::NoCapture => taken.clear(),
            Slam::LeaveFirst => drop(taken.remove(0)),
            Slam::LeaveLast => drop(taken.pop()),
        }
    }
    let captured = taken.iter().map(|&pit| board[pit]).sum();
    taken.iter().for_each(|&pit| board[pit] = 0);
    Some((captured, seat.other().exchange(board)))
}

/// The positions from which a legal move without a capture leads here, each with the pit of the move.
///
/// Sowing k stones from a pit adds the same stones in any position, so any such parent is this position less the sown
/// stones, with k stones in their pit. Each candidate is then played forward. Complete, because all pits and all k are
/// tried; sound, because the rules decide.
pub fn unmoves(pits: Pits) -> Vec<(usize, Pits)> {
    unmoves_by(&Rules::AWARI, pits)
}

/// As [`unmoves`], by some rules.
pub fn unmoves_by(rules: &Rules, pits: Pits) -> Vec<(usize, Pits)> {
    let after: Pits = std::array::from_fn(|pit| pits[(pit + 6) % 12]);
    let stones: u8 = pits.iter().sum();
    let mut parents = Vec::new();
    for origin in 0..6 {
        for hand in 1..=stones {
            let mut added = [0; 12];
            let mut at = origin;
            for _ in 0..hand {
                at = (at + 1) % 12;
                if at == origin {
                    at = (at + 1) % 12;
                }
                added[at] += 1;
            }
            if after[origin] != 0 || (0..12).any(|pit| added[pit] > after[pit]) {
                continue;
            }
            let mut parent: Pits = std::array::from_fn(|pit| after[pit] - added[pit]);
            parent[origin] = hand;
            let here = ReferenceMove::Legal { captured: 0, child: pits };
            if moves_by(rules, parent)[origin] == here {
                parents.push((origin, parent));
            }
        }
    }
    parents
}

/// All positions with `stones` stones, each once, by plain recursion: C(stones + 11, 11) of them.
pub fn boards(stones: u8) -> Vec<Pits> {
    fn fill(pits: &mut Pits, at: usize, left: u8, all: &mut Vec<Pits>) {
        if at == 11 {
            pits[at] = left;
            all.push(*pits);
            return;
        }
        for here in 0..=left {
            pits[at] = here;
            fill(pits, at + 1, left - here, all);
        }
    }
    let mut all = Vec::new();
    fill(&mut [0; 12], 0, stones, &mut all);
    all
}

/// Whether a set of positions contains one.
pub fn contains(positions: Positions, pits: Pits) -> bool {
    positions == Positions::All || pits[6..].contains(&0) || pits == [4; 12]
}

/// All positions of a set in the order of a database: by the mover's stones ascending; then by the half that indexes
/// the rows, its first pit descending, then its second, and so on; then by the other half likewise.
pub fn ordered(stones: u8, positions: Positions, rows: RowHalf) -> Vec<Pits> {
    let mut all = boards(stones);
    all.retain(|&pits| contains(positions, pits));
    all.sort_by_key(|pits| {
        let mover_stones: u8 = pits[..6].iter().sum();
        let descending = |half: &[u8]| half.iter().map(|&s| u8::MAX - s).collect::<Vec<_>>();
        let (mover, opponent) = (descending(&pits[..6]), descending(&pits[6..]));
        match rows {
            RowHalf::Mover => (mover_stones, mover, opponent),
            RowHalf::Opponent => (mover_stones, opponent, mover),
        }
    });
    all
}

/// The scores of all positions with `stones` stones, given those with fewer (`smaller[k]` has those with k).
///
/// The k-th round computes the value of a shortened game: play stops after k moves without a capture, and the rest is
/// shared out. Round 0 is 0 everywhere; a round takes `max(captured - score(child))` over the values of the previous
/// one. The rounds converge, because the value only moves away from 0 with k, and is bounded by the stones: a player
/// who can force a gain in k moves can also force it in more, and a loss only counts once it cannot be postponed for k
/// moves. The limit is the score of awari: a gain is forced in a bounded number of moves, so before any repetition; and
/// where neither side can force one, both can play on until a position repeats, which shares out the rest.
///
/// # Panics
/// When `smaller` lacks a database.
pub fn solve(rules: &Rules, stones: u8, smaller: &[ReferenceScores]) -> ReferenceScores {
    assert!(
        rules.repetition == RepetitionRule::Split,
        "a board has one score only if a repetition shares out the rest"
    );
    let all = boards(stones);
    let mut scores: ReferenceScores = all.iter().map(|&pits| (pits, 0)).collect();
    loop {
        let next: ReferenceScores = all.iter().map(|&pits| (pits, best_by(rules, pits, smaller, &scores))).collect();
        if next == scores {
            return scores;
        }
        scores = next;
    }
}

/// The scores of all positions with 0 to `stones` stones, by number of stones.
pub fn solve_up_to(stones: u8) -> Vec<ReferenceScores> {
    solve_up_to_by(&Rules::AWARI, stones)
}

/// As [`solve_up_to`], by some rules.
pub fn solve_up_to_by(rules: &Rules, stones: u8) -> Vec<ReferenceScores> {
    let mut solved = Vec::new();
    for n in 0..=stones {
        let scores = solve(rules, n, &solved);
        solved.push(scores);
    }
    solved
}

/// What the mover of each position can force, and to what the opponent can hold the mover.
#[derive(Clone, Debug, Default)]
pub struct ReferenceBounds {
    /// What the mover can force.
    pub low: ReferenceScores,
    /// To what the opponent can hold the mover.
    pub high: ReferenceScores,
}

/// The bounds of all positions with `stones` stones, where a repetition has no fixed value; `smaller[k]` has
/// those with k.
///
/// The k-th round computes the value of a shortened game: play stops after k moves without a capture, and the player
/// whose guarantee is computed loses all stones on the board. A player who can force a gain at all can force it in a
/// bounded number of moves, before any repetition.
pub fn solve_bounds(rules: &Rules, stones: u8, smaller: &[ReferenceBounds]) -> ReferenceBounds {
    let all = boards(stones);
    let widest = |score: i8| all.iter().map(|&pits| (pits, score)).collect::<ReferenceScores>();
    let mut bounds = ReferenceBounds { low: widest(-(stones as i8)), high: widest(stones as i8) };
    let low: Vec<ReferenceScores> = smaller.iter().map(|bounds| bounds.low.clone()).collect();
    let high: Vec<ReferenceScores> = smaller.iter().map(|bounds| bounds.high.clone()).collect();
    loop {
        let best = |smaller, same| all.iter().map(|&pits| (pits, best_by(rules, pits, smaller, same))).collect();
        let next = ReferenceBounds { low: best(&high[..], &bounds.high), high: best(&low[..], &bounds.low) };
        if next.low == bounds.low && next.high == bounds.high {
            return bounds;
        }
        bounds = next;
    }
}

/// `max(captured - score(child))` over the legal moves, or the score of a player who cannot move.
///
/// `smaller[k]` are the scores with k stones, `same` those with as many stones as this position.
///
/// # Panics
/// When `smaller` or `same` lacks a child.
pub fn best_by(rules: &Rules, pits: Pits, smaller: &[ReferenceScores], same: &ReferenceScores) -> i8 {
    let stones: u8 = pits.iter().sum();
    moves_by(rules, pits)
        .into_iter()
        .filter_map(|played| match played {
            ReferenceMove::Empty | ReferenceMove::Starves | ReferenceMove::Slam => None,
            ReferenceMove::Legal { captured: 0, child } => Some(-same[&child]),
            ReferenceMove::Legal { captured, child } => {
                Some(captured as i8 - smaller[usize::from(stones - captured)][&child])
            }
        })
        .max()
        .unwrap_or_else(|| stuck(rules, pits))
}

/// The score of a player who cannot move.
fn stuck(rules: &Rules, pits: Pits) -> i8 {
    let side = |pits: &[u8]| pits.iter().sum::<u8>() as i8;
    match rules.rest {
        RestOwner::Opponent => -side(&pits),
        RestOwner::OwnSide => side(&pits[..6]) - side(&pits[6..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_seats_play_alike() {
        for stones in 0..=4 {
            for pits in boards(stones) {
                let [south, north] = Seat::BOTH.map(|seat| moves_from(seat, pits));
                assert_eq!(south, north, "{pits:?}");
            }
        }
    }

    /// Lincke 2002, figure A.2: F5 captures nothing, E3 captures 5, C6 would capture all 7 stones that North then has,
    /// and is illegal.
    #[test]
    fn the_example_of_the_thesis() {
        let played = moves([0, 0, 6, 0, 3, 5, 2, 1, 1, 0, 0, 0]);
        assert_eq!(played[2], ReferenceMove::Starves);
        assert!(matches!(played[4], ReferenceMove::Legal { captured: 5, .. }));
        assert!(matches!(played[5], ReferenceMove::Legal { captured: 0, .. }));
    }

    #[test]
    fn unmoves_are_all_and_only_the_moves_that_lead_here() {
        for stones in 0..=5 {
            let mut parents: HashMap<Pits, Vec<(usize, Pits)>> = HashMap::new();
            for pits in boards(stones) {
                for (pit, played) in moves(pits).into_iter().enumerate() {
                    if let ReferenceMove::Legal { captured: 0, child } = played {
                        parents.entry(child).or_default().push((pit, pits));
                    }
                }
            }
            for pits in boards(stones) {
                let mut found = unmoves(pits);
                found.sort_unstable();
                let mut expected = parents.remove(&pits).unwrap_or_default();
                expected.sort_unstable();
                assert_eq!(found, expected, "{pits:?}");
            }
        }
    }

    #[test]
    fn scores_of_the_smallest_databases_are_the_published_ones() {
        let solved = solve_up_to(3);
        let count = |stones: usize, score: i8| solved[stones].values().filter(|&&found| found == score).count();
        // Lincke 2002, table of the databases with 0 to 34 stones.
        assert_eq!((count(0, 0), count(1, -1), count(1, 1)), (1, 7, 5));
        assert_eq!((count(2, -2), count(2, 0), count(2, 2)), (40, 13, 25));
        let three = [-3, -1, 0, 1, 3].map(|score| count(3, score));
        assert_eq!(three, [177, 1, 63, 7, 116]);
    }
}
