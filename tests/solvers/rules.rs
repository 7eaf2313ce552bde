//! The fast rules against the slow twin: moves, un-moves, and the order of positions.

use game::reference::{self, Positions, ReferenceMove, RowHalf, Seat};
use game::sow::{SowClass, SowMap, row_moves};
use game::{Board, Halves, Illegal, Index, Orientation, Pit, PositionSet, Rules};
use std::collections::HashMap;
use tests::Random;

const RULES: &Rules = &Rules::AWARI;
const RANDOM_BOARDS: u32 = 40_000;

/// Every way to ask for the moves of a position, against the twin.
fn check_moves(board: Board) {
    let expected = reference::moves(board.0);
    for seat in Seat::BOTH {
        assert_eq!(reference::moves_from(seat, board.0), expected, "{board:?}");
    }
    let mut legal = Vec::new();
    for (pit, expected) in Pit::ALL.into_iter().zip(expected) {
        let checked = board.play(RULES, pit);
        match expected {
            ReferenceMove::Empty => assert_eq!(checked, Err(Illegal::Empty(pit)), "{board:?}"),
            ReferenceMove::Starves | ReferenceMove::Slam => {
                assert_eq!(checked, Err(Illegal::Starves(pit)), "{board:?}")
            }
            ReferenceMove::Legal { captured, child } => {
                let played = checked.unwrap_or_else(|error| panic!("{board:?}: {error}"));
                assert_eq!((played.captured, played.child.0), (captured, child));
                legal.push((pit, played));
            }
        }
        if let Some((captured, child)) = reference::sow(board.0, pit.number()) {
            let played = board.play_unchecked(RULES, pit);
            let found = (played.captured, played.child.0);
            assert_eq!(found, (captured, child), "{board:?} {pit}");
        }
    }
    assert_eq!(board.moves(RULES).collect::<Vec<_>>(), legal, "legal moves of {board:?}");
}

fn check_unmoves(board: Board) {
    let mut found: Vec<_> = board.unmoves(RULES).into_iter().map(|(pit, parent)| (pit.number(), parent.0)).collect();
    let mut expected = reference::unmoves(board.0);
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected, "un-moves of {board:?}");
}

#[test]
fn moves_of_every_small_position() {
    for stones in 0..=7 {
        for pits in reference::boards(stones) {
            check_moves(Board(pits));
        }
    }
}

#[test]
fn moves_of_random_positions() {
    let mut random = Random::new(1);
    let mut laps = 0;
    for at in 0..RANDOM_BOARDS {
        let board = random.board(at % 49);
        laps += u32::from(board.mover().iter().any(|&stones| stones >= 12));
        check_moves(board);
    }
    assert!(laps > RANDOM_BOARDS / 10, "only {laps} boards with a lap");
}

#[test]
fn unmoves_of_every_small_position() {
    for stones in 0..=7 {
        for pits in reference::boards(stones) {
            check_unmoves(Board(pits));
        }
    }
}

#[test]
fn unmoves_of_random_positions() {
    let mut random = Random::new(2);
    let mut parents = 0;
    for at in 0..RANDOM_BOARDS / 4 {
        let board = random.board(at % 49);
        check_unmoves(board);
        // Most random boards have few parents; children of random boards have at least one.
        for (_, played) in board.moves(RULES) {
            if played.captured == 0 {
                check_unmoves(played.child);
                parents += 1;
            }
        }
    }
    assert!(parents > RANDOM_BOARDS / 4, "only {parents} children");
}

#[test]
fn positions_are_in_the_documented_order() {
    for (set, positions) in [(PositionSet::All, Positions::All), (PositionSet::REACHABLE, Positions::Reachable)] {
        for (orientation, rows) in
            [(Orientation::MoverMajor, RowHalf::Mover), (Orientation::OpponentMajor, RowHalf::Opponent)]
        {
            for stones in 0..=7 {
                let index = Index::new(u32::from(stones), set);
                let ordered = reference::ordered(stones, positions, rows);
                assert_eq!(index.positions(), ordered.len() as u64);
                assert_eq!(set.positions(u32::from(stones)), ordered.len() as u64);
                for (at, pits) in (0..).zip(ordered) {
                    assert_eq!(index.unrank(at, orientation), Board(pits));
                    assert_eq!(index.rank(&Board(pits), orientation), Some(at));
                }
            }
        }
    }
}

#[test]
fn position_sets_hold_what_the_rules_say() {
    let mut random = Random::new(3);
    let reachable = Index::new(48, PositionSet::REACHABLE);
    for board in (0..2_000).map(|_| random.board(48)).chain([Board::OPENING]) {
        let expected = reference::contains(Positions::Reachable, board.0);
        assert_eq!(PositionSet::REACHABLE.contains(&board), expected);
        for orientation in [Orientation::MoverMajor, Orientation::OpponentMajor] {
            let rank = reachable.rank(&board, orientation);
            assert_eq!(rank.is_some(), expected, "{board:?}");
            if let Some(rank) = rank {
                assert_eq!(reachable.unrank(rank, orientation), board);
            }
        }
        for (_, played) in board.moves(RULES) {
            assert!(PositionSet::REACHABLE.contains(&played.child));
        }
    }
}

/// Sow maps by position set, opponent's stones and class.
#[derive(Default)]
struct SowMaps {
    maps: HashMap<(PositionSet, u32, SowClass), SowMap>,
}

impl SowMaps {
    /// Every move of a row at the column of this board, against sowing on the board alone.
    fn check(&mut self, index: &Index, board: Board) {
        let opponent = board.opponent();
        let Some(column) = index.rank_opponent(&opponent) else { return };
        let stones = opponent.iter().map(|&stones| u32::from(stones)).sum();
        for row_move in row_moves(&board.mover()) {
            let key = (index.set(), stones, row_move.class);
            let build = || SowMap::new(RULES, index.halves(), index.set(), stones, row_move.class);
            let map = self.maps.entry(key).or_insert_with(build);
            let (captured, child) =
                reference::sow(board.0, usize::from(row_move.pit)).expect("a row moves from pits that hold stones");
            let child = Board(child);
            assert_eq!(row_move.half, child.opponent(), "{board:?}");
            let rank = Halves::rank(&child.mover());
            let capture = map.captures.iter().find(|capture| capture.column == column);
            if child.mover_starves() {
                assert!(map.starves.contains(&column) && capture.is_none() && !map.is_quiet(column), "{board:?}");
            } else if captured > 0 {
                let capture = capture.expect("the column captures");
                assert_eq!((capture.captured, capture.child), (captured, rank), "{board:?}");
                assert!(!map.starves.contains(&column) && !map.is_quiet(column), "{board:?}");
            } else {
                assert!(!map.starves.contains(&column) && capture.is_none() && map.is_quiet(column), "{board:?}");
                assert_eq!(map.targets[column as usize], rank, "{board:?}");
            }
        }
    }
}

#[test]
fn sow_maps_of_every_small_position() {
    let mut maps = SowMaps::default();
    for set in [PositionSet::All, PositionSet::REACHABLE] {
        for stones in 0..=7 {
            let index = Index::new(stones, set);
            for position in 0..index.positions() {
                maps.check(&index, index.unrank(position, Orientation::MoverMajor));
            }
        }
    }
}

/// Up to 48 stones; the opponent has few enough for its maps to be built in no time.
#[test]
fn sow_maps_of_random_positions() {
    const OPPONENT_STONES_MAX: u32 = 18;
    let mut random = Random::new(5);
    let mut maps = SowMaps::default();
    let mut checked = 0;
    for set in [PositionSet::All, PositionSet::REACHABLE] {
        for stones in (8..=48).step_by(4) {
            let index = Index::new(stones, set);
            for _ in 0..400 {
                let board = random.board(stones);
                if board.opponent().iter().map(|&stones| u32::from(stones)).sum::<u32>() <= OPPONENT_STONES_MAX {
                    maps.check(&index, board);
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 1000, "{checked}");
}
