//! Bounds and estimates against all assignments of values to unknown ends, and against everything derived again.

use super::random::{GameRandom, GameShape, RandomGame, VALUE_MAX, game};
use crate::{Assessment, Book, Hundredths, Strategy, TableGame, refresh};

/// Asserts that repairing gave what deriving everything again gives.
pub(crate) fn assert_refreshed(book: &Book<TableGame>, seed: u64) {
    let graph = book.graph();
    let expected = refresh::values(graph);
    let found: Vec<Assessment> = graph.ids().map(|id| graph.value(id)).collect();
    assert_eq!(found, expected, "seed {seed}");
}

/// Returns all values that the ends can have.
fn assignments(random_game: &RandomGame) -> Vec<Vec<Hundredths>> {
    let mut all = vec![Vec::new()];
    for assessment in &random_game.assessments {
        let is_end = assessment.low == -VALUE_MAX && assessment.high == VALUE_MAX;
        let values = if is_end { vec![-VALUE_MAX, 0, VALUE_MAX] } else { vec![assessment.estimate] };
        all = all.iter().flat_map(|before| values.iter().map(|&value| [&before[..], &[value]].concat())).collect();
    }
    all
}

/// Bounds contain every value that some assignment gives. Where no position occurs with both players at the
/// move, they are the least and the largest of these values: a leaf cannot be at its worst for both players
/// at once, otherwise. The order of expansions does not matter.
#[test]
fn bounds_are_the_best_possible() {
    let mut positions = 0;
    for seed in 0..100_000 {
        let mut random = GameRandom(seed);
        let shape = if seed % 4 == 0 { GameShape::Any } else { GameShape::TwoColored };
        let random_game = game(&mut random, 7, shape);
        let mut book = random_game.book(Strategy::BestFirst);
        random_game.expand_all(&mut book, &mut random, |_| {});
        let solved: Vec<Vec<Hundredths>> =
            assignments(&random_game).iter().map(|ends| random_game.solve(ends)).collect();
        let graph = book.graph();
        for id in graph.ids() {
            let at = graph.node(id).key as usize;
            let over = solved.iter().map(|values| values[at]);
            let (least, most) = (over.clone().min().unwrap(), over.max().unwrap());
            let found = graph.value(id);
            assert!(found.low <= least && most <= found.high, "seed {seed}, position {at}");
            if shape == GameShape::TwoColored {
                assert_eq!((found.low, found.high), (least, most), "seed {seed}, position {at}");
            }
            positions += 1;
        }
        // Another order of expansions gives the same.
        let mut other = random_game.book(Strategy::BestFirst);
        random_game.expand_all(&mut other, &mut GameRandom(!seed), |_| {});
        for id in graph.ids() {
            let same = other.graph().find(graph.node(id).key).unwrap();
            assert_eq!(other.graph().value(same), graph.value(id), "seed {seed}");
        }
    }
    assert!(positions > 50_000, "{positions}");
}

/// Estimates are the values of the game if each leaf has its estimate.
#[test]
fn estimates_are_values_of_estimated_leaves() {
    for seed in 0..3_000 {
        let mut random = GameRandom(seed);
        let random_game = game(&mut random, 12, GameShape::Any);
        let mut book = random_game.book(Strategy::BestFirst);
        random_game.expand_all(&mut book, &mut random, |_| {});
        let ends: Vec<Hundredths> = random_game.assessments.iter().map(|end| end.estimate).collect();
        let expected = random_game.solve(&ends);
        for id in book.graph().ids() {
            let node = book.graph().node(id);
            assert_eq!(book.graph().value(id).estimate, expected[node.key as usize], "seed {seed}");
        }
    }
}

/// Values after each of many expansions and new assessments are those derived again.
#[test]
fn repaired_values_are_derived_values() {
    for seed in 0..4_000 {
        let mut random = GameRandom(seed);
        let random_game = game(&mut random, if seed % 10 == 0 { 60 } else { 14 }, GameShape::ALL[seed as usize % 3]);
        let mut book = random_game.book(Strategy::BestFirst);
        random_game.expand_all(&mut book, &mut random, |book| assert_refreshed(book, seed));
        // Assessments that hold for one assignment of the ends, as those of searches do.
        let ends = random_game
            .assessments
            .iter()
            .map(|end| if end.is_exact() { end.estimate } else { random.within(-VALUE_MAX, VALUE_MAX) });
        let ends: Vec<Hundredths> = ends.collect();
        let truth = random_game.solve(&ends);
        for _ in 0..8 {
            let graph = book.graph();
            let id = graph.ids().nth(random.below(graph.len() as u64) as usize).unwrap();
            let (right, now) = (truth[graph.node(id).key as usize], graph.node(id).assessment);
            let low = right - random.within(0, 3);
            let high = right + random.within(0, 3);
            let (low, high) = (low.max(now.low), high.min(now.high));
            book.reassess(id, Assessment { low, high, estimate: random.within(low, high) });
            assert_refreshed(&book, seed);
            let graph = book.graph();
            for id in graph.ids() {
                let (right, found) = (truth[graph.node(id).key as usize], graph.value(id));
                assert!(found.low <= right && right <= found.high, "seed {seed}: {right} is not in {found:?}");
            }
        }
    }
}
