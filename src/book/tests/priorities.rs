//! Priorities against the identity with the drop-out view, and against everything derived again.

use super::random::{GameRandom, GameShape, RandomGame, game};
use super::values::assert_refreshed;
use crate::{
    Assessment, Book, BookSides, DropOut, Hundredths, NodeId, Priority, Strategy, TableGame, book_ends, least_cost,
    refresh,
};
use std::collections::HashMap;

fn drop_out(omega: u64) -> DropOut {
    DropOut { omega, forced: None, solves: false }
}

/// The example of the specification of priorities: a root with two best moves, and an end after one move.
fn worked_example(omega: u64) -> Book<TableGame> {
    let text = "0: 1 2 3\n1: 4 5\n4: 6\n6: 7\n2: 8 9\n8: 10 11";
    let game = TableGame::parse(text, 1_000).unwrap();
    // Seen from the player to move there.
    let ends = HashMap::from([(3, -1), (7, 3), (5, 5), (10, -3), (11, -2), (9, 4)]);
    let assess = |key: u64| {
        let estimate = ends.get(&key).map_or(0, |stones| stones * 100);
        Ok::<_, ()>(game.unknown(estimate))
    };
    let mut book = Book::new(game.clone(), Strategy::DropOut(drop_out(omega)), BookSides::First);
    book.add_root(0, assess(0).unwrap());
    for key in [0, 1, 2, 4, 8, 6] {
        let leaf = book.graph().find(key).unwrap();
        book.expand(leaf, assess).unwrap();
    }
    book
}

#[test]
fn priorities_of_the_worked_example() {
    for (omega, book_plies, opponent_plies) in
        [(0, 2.0, 1.0), (25, 2.25, 1.5), (50, 2.5, 2.0), (100, 3.0, 3.0), (200, 3.0, 3.0), (10_000, 3.0, 3.0)]
    {
        let book = worked_example(omega);
        let found = book.priorities(book.roots()[0]).unwrap();
        assert_eq!((found.book.plies(), found.opponent.plies()), (book_plies, opponent_plies), "omega {omega}");
        assert_eq!(book.graph().value(book.roots()[0]).estimate, 300);
    }
    let book = worked_example(50);
    let priorities_of = |key| book.priorities(book.graph().find(key).unwrap()).unwrap();
    let inner = [
        priorities_of(1).opponent,
        priorities_of(2).opponent,
        priorities_of(8).book,
        priorities_of(4).opponent,
        priorities_of(1).book,
        priorities_of(2).book,
    ];
    assert_eq!(inner.map(Priority::plies), [2.0, 1.5, 1.0, 2.0, 3.0, 2.0]);
    let ends = book_ends(book.graph(), book.roots()[0], true);
    let found: Vec<(u32, Hundredths)> = ends.iter().map(|end| (end.depth, end.price + 300)).collect();
    assert_eq!(found, [(2, 400), (2, 500), (3, 300), (4, 300)]);
    // The leaves that are chosen.
    for (omega, expected) in [(0, 5), (25, 9), (50, 9), (200, 10), (10_000, 10)] {
        let mut book = worked_example(omega);
        let leaf = book.choose().unwrap();
        assert_eq!(book.graph().node(leaf).key, expected, "omega {omega}");
    }
}

/// The leaf that both players reach by local decisions is the one that a line of slope omega through the
/// drop-out diagram meets first, in trees and graphs without cycles; omega 0 takes the nearest, a large one
/// the nearest that costs nothing.
#[test]
fn priorities_are_least_costs_of_drop_outs() {
    for seed in 0..20_000 {
        let mut random = GameRandom(seed);
        let mut random_game = game(&mut random, 16, GameShape::Acyclic);
        for end in &mut random_game.assessments {
            // All ends are unknown, far from their bounds.
            *end = Assessment { low: -1_000, high: 1_000, estimate: random.within(-200, 200) };
        }
        let omega = [0, 30, 100, 400, DropOut::OMEGA_MAX][seed as usize % 5];
        let mut book = random_game.book(Strategy::DropOut(drop_out(omega)));
        let mut left = random.below(8);
        while left > 0 {
            left -= 1;
            let graph = book.graph();
            let root = book.roots()[0];
            let found = book.priorities(root).unwrap();
            let costs = [true, false].map(|is_book| least_cost(&book_ends(graph, root, is_book), omega));
            assert_eq!([found.book, found.opponent], costs, "seed {seed}");
            let is_book = book.choices().is_multiple_of(2);
            let ends = book_ends(graph, root, is_book);
            let Some(leaf) = book.choose() else { break };
            let cost = |price: Hundredths, depth| {
                least_cost(&[crate::BookEnd { depth, price, id: leaf, is_closed: false }], omega)
            };
            let costs = ends.iter().filter(|end| end.id == leaf).map(|end| cost(end.price, end.depth));
            assert_eq!(costs.min(), Some(least_cost(&ends, omega)), "seed {seed}");
            if book.moves(leaf).is_empty() {
                break;
            }
            random_game.expand(&mut book, leaf);
        }
    }
}

fn assert_priorities(book: &Book<TableGame>, rule: &DropOut, seed: u64) {
    let graph = book.graph();
    let found: Vec<_> = graph.ids().map(|id| book.priorities(id).unwrap()).collect();
    assert_eq!(found, refresh::priorities(graph, rule, |_| true), "seed {seed}");
}

/// Priorities after each of many expansions are those derived again, in games with cycles.
#[test]
fn repaired_priorities_are_derived_priorities() {
    for seed in 0..4_000 {
        let mut random = GameRandom(seed);
        let random_game = game(&mut random, 20, GameShape::ALL[seed as usize % 3]);
        let forced = (seed % 2 == 0).then_some(3);
        let rule = DropOut { omega: [0, 100, 5_000][seed as usize % 3], forced, solves: seed % 5 == 0 };
        let mut book = random_game.book(Strategy::DropOut(rule));
        random_game.expand_all(&mut book, &mut random, |book| assert_priorities(book, &rule, seed));
        let ids: Vec<NodeId> = book.graph().ids().collect();
        for _ in 0..4 {
            let id = ids[random.below(ids.len() as u64) as usize];
            let now = book.graph().value(id);
            book.reassess(id, Assessment { estimate: random.within(now.low, now.high), ..now });
            assert_refreshed(&book, seed);
            assert_priorities(&book, &rule, seed);
        }
    }
}

/// Every strategy expands until nothing is left that it wants, and each repairs what it derives.
#[test]
fn strategies_end() {
    let strategies = [
        Strategy::DropOut(DropOut { omega: 100, forced: None, solves: true }),
        Strategy::BestFirst,
        Strategy::BreadthFirst,
        Strategy::Proof,
    ];
    let (mut proved, mut all) = (0, 0);
    for seed in 0..2_000 {
        let strategy = strategies[seed as usize % 4];
        let mut random = GameRandom(seed / 4);
        let mut random_game = game(&mut random, 30, GameShape::ALL[(seed / 4) as usize % 3]);
        close_ends(&mut random_game);
        let mut book = random_game.book(strategy);
        let mut expansions = 0;
        while let Some(leaf) = book.choose() {
            assert!(!book.graph().is_interior(leaf) && !book.graph().is_closed(leaf), "seed {seed}");
            random_game.expand(&mut book, leaf);
            book.assert_derived();
            expansions += 1;
            assert!(expansions <= random_game.game.positions(), "seed {seed}");
        }
        // All ends are known, so a strategy that has nothing left to expand has proved the value of the root.
        let value = book.graph().value(book.roots()[0]);
        all += 1;
        proved += usize::from(value.is_exact());
        let ends: Vec<Hundredths> = random_game.assessments.iter().map(|end| end.estimate).collect();
        assert!(value.is_exact(), "seed {seed}: {strategy:?}");
        assert_eq!(value.low, random_game.solve(&ends)[0], "seed {seed}");
    }
    assert_eq!(proved, all);
}

fn close_ends(random_game: &mut RandomGame) {
    let mut moves = Vec::new();
    for at in 0..random_game.assessments.len() {
        moves.clear();
        crate::BookGame::moves(&random_game.game, at as u64, &mut moves);
        if moves.is_empty() {
            random_game.assessments[at] = Assessment::exact(random_game.assessments[at].estimate);
        }
    }
}
