//! What each player can force at oware, where a repetition gives each player the seeds of a side: against the slow solver,
//! the certificate, and games that are played to their end.

use check::{CheckError, Databases, certify_bounds, verify_bounds};
use engines::capture::InMemory;
use engines::sweep::{BoundCaptures, Guarantees};
use engines::{Bytes, Kernel, Tables, capture};
use game::notation::{PositionText, Seats, Side};
use game::play::{Game, GameEnd};
use game::reference::{self, ReferenceBounds};
use game::{Board, Index, Orientation, Played, PositionSet, Rules, Score};
use tests::Random;

const SETS: [PositionSet; 2] = [PositionSet::All, PositionSet::REACHABLE];
const ORDER: Orientation = Orientation::OpponentMajor;

/// The lower and the upper bounds of databases, by stones, in canonical order.
#[derive(Clone, Default)]
struct Solved {
    low: Vec<Vec<Score>>,
    high: Vec<Vec<Score>>,
}

fn solved(rules: Rules, set: PositionSet, stones: u32, kernel: Kernel) -> Solved {
    let tables = Tables::new(rules, set, stones);
    let mut solved = Solved::default();
    for stones in 0..=stones {
        let index = Index::new(stones, set);
        let captures = |smaller: &[Vec<Score>]| {
            let smaller = InMemory::new(set, smaller.iter().map(Vec::as_slice));
            let mut best = Bytes::zeroed(index.positions() as usize).unwrap();
            capture::capture_into(&tables, &index, &smaller, &(), &mut best, &mut |_| Ok(())).unwrap();
            best
        };
        let (low, high) = (captures(&solved.high), captures(&solved.low));
        let mut guarantees = Guarantees::widest(&index).unwrap();
        guarantees.sweep(&tables, &index, BoundCaptures { low: &low, high: &high }, kernel, &(), &mut |_| {}).unwrap();
        solved.low.push(guarantees.low.to_vec());
        solved.high.push(guarantees.high.to_vec());
    }
    solved
}

fn databases(rules: Rules, set: PositionSet, bounds: &[Vec<Score>]) -> Databases<Vec<Score>> {
    let mut databases = Databases::new(rules, set);
    for (stones, bounds) in (0..).zip(bounds) {
        databases.insert(stones, bounds.clone()).unwrap();
    }
    databases
}

#[test]
fn guarantees_agree_with_the_reference() {
    let mut expected: Vec<ReferenceBounds> = Vec::new();
    for stones in 0..=6 {
        let bounds = reference::solve_bounds(&Rules::OWARE, stones, &expected);
        expected.push(bounds);
    }
    for set in SETS {
        for kernel in Kernel::available() {
            let found = solved(Rules::OWARE, set, 6, kernel);
            for (stones, expected) in expected.iter().enumerate() {
                let index = Index::new(stones as u32, set);
                for position in 0..index.positions() {
                    let board = index.unrank(position, ORDER);
                    let at = position as usize;
                    let bounds = (found.low[stones][at], found.high[stones][at]);
                    assert_eq!(bounds, (expected.low[&board.0], expected.high[&board.0]), "{board:?} {kernel:?}");
                }
            }
        }
    }
}

#[test]
fn guarantees_are_certified() {
    for set in SETS {
        let found = solved(Rules::OWARE, set, 9, Kernel::detect());
        let low = databases(Rules::OWARE, set, &found.low);
        let high = databases(Rules::OWARE, set, &found.high);
        for stones in 0..=9 {
            assert!(verify_bounds(&low, &high, stones).is_ok(), "{stones}");
            assert!(certify_bounds(&low, &high, stones).is_ok(), "{stones}");
        }
    }
}

/// The share of boards whose bounds are equal, which `docs/rules.md` gives. With `--nocapture` prints it.
#[test]
#[ignore = "slow tier: solves databases of 13 stones twice, and certifies those of 11"]
fn few_boards_are_exact() {
    for set in SETS {
        let found = solved(Rules::OWARE, set, 13, Kernel::detect());
        let [low, high] = [&found.low, &found.high].map(|bounds| databases(Rules::OWARE, set, bounds));
        for stones in 0..=13 {
            let at = stones as usize;
            let pairs = || found.low[at].iter().zip(&found.high[at]);
            assert!(pairs().all(|(low, high)| low <= high), "{stones}");
            let exact = pairs().filter(|(low, high)| low == high).count();
            let width: i64 = pairs().map(|(&low, &high)| i64::from(high) - i64::from(low)).sum();
            let count = found.low[at].len() as f64;
            println!(
                "{set} {stones}: {:.2} % exact, mean width {:.2}",
                100.0 * exact as f64 / count,
                width as f64 / count
            );
            if stones <= 11 {
                assert!(verify_bounds(&low, &high, stones).is_ok() && certify_bounds(&low, &high, stones).is_ok());
            }
        }
    }
}

#[test]
fn bounds_that_nothing_forces_are_refused() {
    let set = PositionSet::All;
    let found = solved(Rules::OWARE, set, 6, Kernel::detect());
    let mut refused = 0;
    for stones in 1..=6 {
        let (mut low, mut high) = (found.low[..=stones].to_vec(), found.high[..=stones].to_vec());
        let open = (0..low[stones].len()).find(|&position| low[stones][position] < high[stones][position]);
        let Some(position) = open else { continue };
        low[stones][position] = high[stones][position];
        let [raised, others] = [&low, &high].map(|bounds| databases(Rules::OWARE, set, bounds));
        let certified = certify_bounds(&raised, &others, stones as u32);
        assert!(matches!(certified, Err(CheckError::Uncertified { .. })), "{stones} {certified:?}");
        assert!(verify_bounds(&raised, &others, stones as u32).is_err(), "{stones}");
        (low[stones], high[stones]) = (found.high[stones].clone(), found.low[stones].clone());
        let [crossed, others] = [&low, &high].map(|bounds| databases(Rules::OWARE, set, bounds));
        assert!(matches!(verify_bounds(&crossed, &others, stones as u32), Err(CheckError::Crossed { .. })), "{stones}");
        refused += 1;
    }
    assert!(refused >= 3, "{refused}");
}

/// The values that an iteration from the widest bound gives a position, with the rounds that first gave them.
type History = Vec<(u32, Score)>;

/// Returns the histories of the upper bounds, by stones and position.
fn histories(solved: &Solved, set: PositionSet) -> Vec<Vec<History>> {
    let mut histories = Vec::new();
    for stones in 0..solved.low.len() {
        let index = Index::new(stones as u32, set);
        let positions = index.positions() as usize;
        let (mut low, mut high) = (vec![-(stones as Score); positions], vec![stones as Score; positions]);
        let mut history: Vec<History> = high.iter().map(|&high| vec![(0, high)]).collect();
        for round in 1.. {
            let next = |same: &[Score], smaller: &[Vec<Score>]| -> Vec<Score> {
                (0..positions).map(|position| best(&index, position, same, smaller)).collect()
            };
            let (lows, highs) = (next(&high, &solved.high), next(&low, &solved.low));
            let changed = (0..positions).filter(|&at| high[at] != highs[at]);
            changed.for_each(|at| history[at].push((round, highs[at])));
            if (&lows, &highs) == (&low, &high) {
                break;
            }
            (low, high) = (lows, highs);
        }
        assert!(low == solved.low[stones] && high == solved.high[stones], "{stones}");
        histories.push(history);
    }
    histories
}

fn at(set: PositionSet, board: &Board) -> (usize, usize) {
    let index = Index::new(board.stones(), set);
    (board.stones() as usize, index.rank(board, ORDER).unwrap() as usize)
}

fn best(index: &Index, position: usize, same: &[Score], smaller: &[Vec<Score>]) -> Score {
    let board = index.unrank(position as u64, ORDER);
    let values = board.moves(&Rules::OWARE).map(|(_, played)| {
        let child = match played.captured {
            0 => same[index.rank(&played.child, ORDER).unwrap() as usize],
            _ => {
                let (stones, position) = at(index.set(), &played.child);
                smaller[stones][position]
            }
        };
        played.captured as Score - child
    });
    values.max().unwrap_or_else(|| Rules::OWARE.terminal_score(&board))
}

/// Games in which one player makes guaranteed moves, and the other any. Of the moves that keep what is guaranteed, the first
/// player makes one that did so in the earliest round: this comes to an end before a position is repeated.
#[test]
fn who_follows_the_lower_bound_gets_it() {
    const STONES_MAX: u32 = 7;
    let set = PositionSet::All;
    let solved = solved(Rules::OWARE, set, STONES_MAX, Kernel::detect());
    let histories = histories(&solved, set);
    let mut random = Random::new(3);
    let (mut repeated, mut wider) = (0, 0);
    for number in 0..10_000 {
        let board = random.board(1 + number % STONES_MAX);
        let (stones, position) = at(set, &board);
        let guarantee = solved.low[stones][position];
        wider += u32::from(guarantee < solved.high[stones][position]);
        let seats = Seats { south_store: 0, north_store: 0, side: Side::South };
        let mut game = Game::from(Rules::OWARE, &PositionText::of_game(board, seats));
        while game.outcome().is_none() {
            let moves = game.moves();
            let Seats { south_store, north_store, side } = game.now().seats;
            let (pit, _) = if side == Side::South {
                let needed = guarantee - (south_store as Score - north_store as Score);
                let round = |played: &Played| {
                    let (smaller, child) = at(set, &played.child);
                    let keeps = |&&(_, high): &&(u32, Score)| played.captured as Score - high >= needed;
                    histories[smaller][child].iter().find(keeps).map(|&(round, _)| round)
                };
                let kept = moves.iter().filter_map(|one| Some((round(&one.1)?, one)));
                *kept.min_by_key(|(round, _)| *round).expect("a move keeps the guarantee").1
            } else {
                *random.pick(&moves)
            };
            game.play(pit).unwrap();
        }
        let outcome = game.outcome().unwrap();
        assert!(outcome.lead >= guarantee, "{board:?} guarantees {guarantee}, got {outcome:?}");
        repeated += u32::from(matches!(outcome.end, GameEnd::Repeats { .. }));
    }
    assert!(repeated > 100 && wider > 100, "{repeated} {wider}");
}
