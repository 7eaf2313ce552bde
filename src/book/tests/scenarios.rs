//! Examples and figures of Lincke's thesis, and scenarios in which simpler methods fail.

use super::random::GameRandom;
use crate::{
    Assessment, Book, BookGame, BookSides, DropOut, HexGame, Hundredths, NodeId, PartialValue, Priority, Strategy,
    TableGame, partial_values, refresh,
};
use std::time::{Duration, Instant};

const OMEGA_1: DropOut = DropOut { omega: 100, forced: None, solves: false };

/// Makes a book of all positions of a table. Ends are `(position, estimate)`; those in `exact` are known.
fn whole_book(text: &str, ends: &[(u64, Hundredths)], exact: &[(u64, Hundredths)]) -> Book<TableGame> {
    let game = TableGame::parse(text, 1_000).unwrap();
    let assess = |key: u64| {
        let listed = |list: &[(u64, Hundredths)]| list.iter().find(|(end, _)| *end == key).map(|(_, value)| *value);
        let known = listed(exact).map(Assessment::exact);
        Ok::<_, ()>(known.unwrap_or_else(|| game.unknown(listed(ends).unwrap_or(0))))
    };
    let mut book = Book::new(game.clone(), Strategy::BreadthFirst, BookSides::Both);
    book.add_root(0, assess(0).unwrap());
    while let Some(leaf) = book.choose() {
        if book.moves(leaf).is_empty() {
            // An unknown end: it stays a leaf.
            continue;
        }
        book.expand(leaf, assess).unwrap();
    }
    book
}

fn value(book: &Book<TableGame>, key: u64) -> Assessment {
    book.graph().value(book.graph().find(key).unwrap())
}

fn view(book: &Book<TableGame>, key: u64) -> PartialValue {
    partial_values(book.graph())[book.graph().find(key).unwrap().index()]
}

/// Example 1.1, a maximum and minimum game with cycles. In negamax form the minimizer's positions are seen by
/// the minimizer.
#[test]
fn example_1_1() {
    // s0 max, s1 and s2 min, s3 and s4 max; s5 and s6 are ends. An end is seen by the player whose turn it
    // would be, so each exists twice: 5 and 6 after a move of the maximizer, 7 and 8 after one of the
    // minimizer.
    let text = "0: 1 2\n1: 3 8\n2: 3\n3: 4 5 6\n4: 2 6";
    // s3 moves to s4, both of the maximizer: a position between them hands the move over.
    let text = text.replace("3: 4 5 6", "3: 9 5 6\n9: 4");
    let ends = [(5, -3), (6, -1), (7, 3), (8, 1)];
    let book = whole_book(&text, &[], &ends);
    for (key, expected) in [(0, 3), (1, -1), (2, -3), (3, 3), (4, 3)] {
        assert_eq!(value(&book, key), Assessment::exact(expected), "s{key}");
    }
}

/// Figures 4.5 to 4.10 and 4.12: a draw beside an estimate.
#[test]
fn draws_beside_estimates() {
    let at_least = |a| PartialValue::AtLeastDraw(Some(a));
    // Figures 4.5 and 4.6: a draw in hand, and an estimate of 0.
    let book = whole_book("0: 1 2", &[(2, 0)], &[(1, 0)]);
    assert_eq!(value(&book, 0), Assessment { low: 0, high: 1_000, estimate: 0 });
    assert_eq!(view(&book, 0), at_least(0));
    // Figures 4.7 and 4.8: the opponent can choose between that and a draw.
    let book = whole_book("0: 1 2\n1: 3 4", &[(3, 0)], &[(2, 0), (4, 0)]);
    assert_eq!(value(&book, 0), Assessment::exact(0));
    assert_eq!(view(&book, 0), PartialValue::Draw);
    // Figures 4.9 and 4.10: an estimate of 9 beside a draw is worth more than one of 0.
    let book = whole_book("0: 1 2", &[(2, -9)], &[(1, 0)]);
    assert_eq!(value(&book, 0), Assessment { low: 0, high: 1_000, estimate: 9 });
    assert_eq!(view(&book, 0), at_least(9));
    // Figure 4.12: at-most-draw beside an estimate below 0.
    let book = whole_book("0: 1 2\n1: 3 4", &[(3, 5), (2, 4)], &[(4, 0)]);
    assert_eq!(view(&book, 1), PartialValue::AtLeastDraw(Some(-5)));
    assert_eq!(view(&book, 0), PartialValue::Estimate(-4).better_of(PartialValue::AtMostDraw(Some(5))));
}

/// Figure 4.13: values that support each other round a cycle are consistent, but not right.
#[test]
fn cycles_that_support_themselves() {
    let text = "0: 1 4\n1: 2 5\n2: 3 6\n3: 0 7";
    // Every exit is bad for the player who takes it.
    let ends: Vec<(u64, Hundredths)> = (4..8).map(|end| (end, 1)).collect();
    let book = whole_book(text, &ends, &[]);
    for key in 0..4 {
        assert_eq!(value(&book, key).estimate, 0);
        assert_eq!(view(&book, key), PartialValue::CycleDraw { stay: 1, leave: -1 });
    }
    // With known exits the draw is proved.
    let book = whole_book(text, &[], &ends);
    for key in 0..4 {
        assert_eq!(value(&book, key), Assessment::exact(0));
    }
}

fn cycle_draw(stay: Hundredths, leave: Hundredths) -> PartialValue {
    PartialValue::CycleDraw { stay, leave }
}

/// Figures 4.14, 4.16 and 4.17: the exits of cycles.
#[test]
fn exits_of_cycles() {
    // Figure 4.14: the values of exits are seen by the opponent of the player who leaves.
    let book = whole_book("0: 1\n1: 2 5\n2: 3 6\n3: 4 7\n4: 1 8", &[(5, 4), (6, 2), (7, 3), (8, 1)], &[]);
    for (key, expected) in [(1, (1, -3)), (3, (1, -3)), (2, (3, -1)), (4, (3, -1)), (0, (3, -1))] {
        assert_eq!(value(&book, key).estimate, 0);
        assert_eq!(view(&book, key), cycle_draw(expected.0, expected.1), "n{key}");
    }
    // Figures 4.15 and 4.16: two cycles, A at 1 to 4 and B at 5 to 8.
    let text = "0: 1 5\n1: 2 9\n2: 3 10\n3: 4 11\n4: 1 12\n5: 6 13\n6: 7 14\n7: 8 15\n8: 5 16";
    let exits = [(9, 3), (10, 2), (11, 2), (12, 1), (13, 9), (14, 8), (15, 8), (16, 7)];
    let book = whole_book(text, &exits, &[]);
    let expected = [
        (0, (2, -1)),
        (1, (1, -2)),
        (2, (2, -1)),
        (3, (1, -2)),
        (4, (2, -1)),
        (5, (7, -8)),
        (6, (8, -7)),
        (7, (7, -8)),
        (8, (8, -7)),
    ];
    for (key, (stay, leave)) in expected {
        assert_eq!(view(&book, key), cycle_draw(stay, leave), "figure 4.16, {key}");
    }
    // Figure 4.17: start 0, Y 1, C 2, A 3, B 4, D 5, Z 6, W 7.
    let text = "0: 1\n1: 2 8\n2: 3 9\n3: 4 5\n4: 1\n5: 6 10\n6: 7 11\n7: 3";
    let book = whole_book(text, &[(8, 3), (9, 3), (10, 1), (11, 2)], &[]);
    for (key, (stay, leave)) in
        [(0, (2, -1)), (4, (2, -1)), (2, (2, -1)), (5, (2, -1)), (7, (2, -1)), (1, (1, -2)), (3, (1, -2)), (6, (1, -2))]
    {
        assert_eq!(view(&book, key), cycle_draw(stay, leave), "figure 4.17, {key}");
    }
    // Figure 6.10: only one player can leave, for 41 or 42.
    let book = whole_book("0: 1 4\n1: 2\n2: 3 5\n3: 0", &[(4, 41), (5, 42)], &[]);
    assert_eq!(view(&book, 0), PartialValue::AtLeastDraw(Some(-41)));
    assert_eq!(view(&book, 1), PartialValue::AtMostDraw(Some(41)));
    // The proof that the view loses: staying is a draw in hand, so the lower bound is 0.
    assert_eq!((value(&book, 0).low, value(&book, 1).high), (0, 0));
}

/// Bounds are never looser than what the view of the thesis claims.
#[test]
fn bounds_are_as_tight_as_partial_values() {
    use super::random::{GameShape, game};
    for seed in 0..8_000 {
        let mut random = GameRandom(seed);
        let random_game = game(&mut random, 8, GameShape::TwoColored);
        let mut book = random_game.book(Strategy::BestFirst);
        random_game.expand_all(&mut book, &mut random, |_| {});
        let gains = book.graph().ids().any(|id| book.graph().moves(id).iter().any(|edge| edge.gain != 0));
        if gains {
            // The view has no captures.
            continue;
        }
        for (id, partial) in book.graph().ids().zip(partial_values(book.graph())) {
            let found = book.graph().value(id);
            let (low, high) = partial.bounds();
            assert!(low.is_none_or(|low| low <= found.low), "seed {seed}: {partial:?} {found:?}");
            assert!(high.is_none_or(|high| found.high <= high), "seed {seed}: {partial:?} {found:?}");
        }
    }
}

/// Two positions of a cycle, and the last leaf below them is closed: their priorities must not count up.
#[test]
fn priorities_do_not_count_to_infinity() {
    let game = TableGame::parse("0: 1\n1: 0 2", 1_000).unwrap();
    let mut book = Book::new(game.clone(), Strategy::DropOut(OMEGA_1), BookSides::Both);
    book.add_root(0, game.unknown(0));
    for key in [0, 1] {
        let leaf = book.graph().find(key).unwrap();
        book.expand(leaf, |_| Ok::<_, ()>(game.unknown(0))).unwrap();
    }
    let priorities_of = |book: &Book<TableGame>, key| book.priorities(book.graph().find(key).unwrap()).unwrap();
    assert_eq!(priorities_of(&book, 0).book, Priority(2 * Priority::PLY.0));
    let leaf = book.graph().find(2).unwrap();
    let begun = Instant::now();
    book.reassess(leaf, Assessment::exact(500));
    assert!(begun.elapsed() < Duration::from_millis(50));
    for key in 0..3 {
        assert_eq!(
            (priorities_of(&book, key).book, priorities_of(&book, key).opponent),
            (Priority::INFINITE, Priority::INFINITE),
            "{key}"
        );
    }
}

/// A chain of forty diamonds has 2^40 paths. A change at its end reaches the start through few positions.
#[test]
fn diamonds_are_cheap() {
    let text: String = (0..40)
        .map(|at| format!("{}: {} {}\n{1}: {3}\n{2}: {3}\n", at * 3, at * 3 + 1, at * 3 + 2, at * 3 + 3))
        .collect();
    let game = TableGame::parse(&text, 1_000).unwrap();
    let mut book = Book::new(game.clone(), Strategy::DropOut(OMEGA_1), BookSides::Both);
    book.add_root(0, game.unknown(0));
    let mut slowest = Duration::ZERO;
    for key in 0..120 {
        let leaf = book.graph().find(key).unwrap();
        let begun = Instant::now();
        book.expand(leaf, |_| Ok::<_, ()>(game.unknown(0))).unwrap();
        slowest = slowest.max(begun.elapsed());
    }
    let end = book.graph().find(120).unwrap();
    book.reassess(end, Assessment::exact(700));
    assert_eq!(book.graph().value(book.roots()[0]), Assessment::exact(700));
    // A walk of all paths would take hours.
    assert!(slowest < Duration::from_millis(500), "{slowest:?}");
}

/// A move that closes a cycle of long standing turns estimates that rest on nothing into draws.
#[test]
fn a_cycle_that_is_closed_late() {
    // 0 to 5 in a row, each with an exit that is bad for the player who leaves; then 5 leads back to 0.
    let text = "0: 1 6\n1: 2 7\n2: 3 8\n3: 4 9\n4: 5 10\n5: 0 11";
    let game = TableGame::parse(text, 1_000).unwrap();
    let mut book = Book::new(game.clone(), Strategy::BreadthFirst, BookSides::Both);
    let assess = |key: u64| Ok::<_, ()>(if key < 6 { game.unknown(-300) } else { Assessment::exact(100) });
    book.add_root(0, assess(0).unwrap());
    for key in 0..6 {
        let leaf = book.graph().find(key).unwrap();
        book.expand(leaf, assess).unwrap();
    }
    for key in 0..6 {
        assert_eq!(value(&book, key), Assessment::exact(0), "{key}");
    }
    assert_eq!(refresh::values(book.graph()).len(), book.graph().len());
}

/// A root with moves of which one stays best for ever.
struct Favourite;

/// The moves of the root, and of every other position.
const ROOT_MOVES: u64 = 4;

impl BookGame for Favourite {
    fn moves(&self, position: u64, found: &mut Vec<crate::BookMove>) {
        let moves = if position == 0 { ROOT_MOVES } else { 2 };
        // Positions of a tree, numbered so that the move of the root is known.
        let first = if position == 0 { 1 } else { position * 2 + 3 };
        found.extend((0..moves).map(|number| crate::BookMove {
            number: number as u8,
            gain: 0,
            successor: first + number,
        }));
    }

    fn level(&self, _: u64) -> u16 {
        0
    }

    fn value_max(&self, _: u64) -> Hundredths {
        1_000
    }

    fn text(&self, position: u64) -> String {
        position.to_string()
    }

    fn move_text(&self, number: u8) -> String {
        number.to_string()
    }
}

/// Best-first expansion never looks at the other moves; drop-out expansion does (section 3.4.1).
#[test]
fn best_first_starves_where_drop_out_does_not() {
    /// Returns the move of the root that leads to a position, and its depth.
    fn origin(mut position: u64) -> (u64, u32) {
        let mut depth = 1;
        while position > ROOT_MOVES {
            position = (position - 3) / 2;
            depth += 1;
        }
        (position, depth)
    }
    let gap = 100;
    let assess = |key: u64| {
        let (first, depth) = origin(key);
        let root_view = if first == 1 { gap } else { 0 };
        let estimate = if depth % 2 == 0 { root_view } else { -root_view };
        Ok::<_, ()>(Assessment { low: -1_000, high: 1_000, estimate })
    };
    let grow = |strategy| {
        let mut book = Book::new(Favourite, strategy, BookSides::Second);
        book.add_root(0, Assessment { low: -1_000, high: 1_000, estimate: 0 });
        for _ in 0..1_000 {
            let leaf = book.choose().unwrap();
            book.expand(leaf, assess).unwrap();
        }
        let depth_of = |first: u64| {
            let depths = book.graph().ids().map(|id: NodeId| book.graph().node(id).key).filter(|&key| key > 0);
            depths.map(origin).filter(|(ancestor, _)| *ancestor == first).map(|(_, depth)| depth).max().unwrap()
        };
        (1..=ROOT_MOVES).map(depth_of).collect::<Vec<u32>>()
    };
    let best_first = grow(Strategy::BestFirst);
    assert!(best_first[0] > 5 && best_first[1..] == [1, 1, 1], "{best_first:?}");
    let drop_out = grow(Strategy::DropOut(OMEGA_1));
    assert!(drop_out[1..].iter().all(|&depth| depth + 2 >= drop_out[0]), "{drop_out:?}");
}

/// The first player wins Hex on every board (Nash), and every strategy proves it on small ones.
#[test]
fn the_first_player_wins_hex() {
    for (size, strategies) in [
        (1, &[Strategy::BestFirst, Strategy::Proof][..]),
        (2, &[Strategy::BestFirst, Strategy::Proof, Strategy::BreadthFirst]),
        (3, &[Strategy::Proof, Strategy::BestFirst, Strategy::DropOut(DropOut { solves: true, ..OMEGA_1 })]),
    ] {
        for &strategy in strategies {
            let game = HexGame::new(size).unwrap();
            let mut book = Book::new(game, strategy, BookSides::Both);
            let assess = |key| Ok::<_, ()>(game.assess(key));
            book.add_root(game.empty(), game.assess(game.empty()));
            while let Some(leaf) = book.choose() {
                book.expand(leaf, assess).unwrap();
                if book.graph().is_closed(book.roots()[0]) {
                    break;
                }
            }
            let root = book.graph().value(book.roots()[0]);
            assert_eq!(root, Assessment::exact(100), "{size} x {size}, {strategy:?}");
        }
    }
}
