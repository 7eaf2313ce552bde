//! Searches of every small position, with databases that are made to end below it, and a table that earlier
//! searches have filled.

use game::reference::{self, ReferenceScores, boards};
use game::{Board, Rules, Score};
use search::{Evaluation, ExactScores, NoScores, SearchLimits, SearchRequest, SearchStop, Searcher};

/// The positions of a search: a multiple of those between two looks at the limits.
const NODES: u64 = 256;

/// Databases that end at a number of stones.
struct PretendedEnd<'a> {
    solved: &'a [ReferenceScores],
    last: u32,
}

impl ExactScores for PretendedEnd<'_> {
    fn knows(&self, stones: u32) -> bool {
        stones <= self.last
    }

    fn score(&self, board: &Board) -> Option<Score> {
        assert!(board.stones() <= self.last, "only known positions are looked up");
        Some(self.solved[board.stones() as usize][&board.0])
    }
}

/// What the searches proved.
#[derive(Debug, Default)]
struct Tally {
    searches: u64,
    exact: u64,
    /// Neither bound is the widest one.
    bounded: u64,
}

/// Searches every position of up to `stones_max` stones, with databases that end at each of
/// `ends(n, position)` stones. One small table serves all searches, and is full of positions near the opening
/// at the start.
fn search_all(stones_max: u8, ends: impl Fn(u32, usize) -> Vec<u32>) -> Tally {
    let solved = reference::solve_up_to(stones_max);
    let searcher = Searcher::new(0, Evaluation::default()).unwrap();
    let limits = |nodes| SearchLimits { nodes: Some(nodes), ..SearchLimits::default() };
    let (stop, quiet) = (SearchStop::new(), &mut |_: &_| {});
    let filling = searcher.search(&SearchRequest::new(Board::OPENING, limits(8_000_000)), &NoScores, &stop, quiet);
    assert!(filling.table_permille > 990, "the table is full: {}", filling.table_permille);
    let mut tally = Tally::default();
    for stones in (0..=stones_max).rev() {
        for (at, pits) in boards(stones).into_iter().enumerate() {
            let (board, right) = (Board(pits), solved[usize::from(stones)][&pits]);
            for last in ends(stones.into(), at) {
                let scores = PretendedEnd { solved: &solved, last };
                let mut request = SearchRequest::new(board, limits(NODES));
                request.lines = 1 + at % 3;
                request.threads = if at % 1024 == 0 { 2 } else { 1 };
                let report = searcher.search(&request, &scores, &stop, quiet);
                let what = || format!("{pits:?} beyond {last} stones: {right}, {report:?}");
                assert_eq!(report.contradiction, None, "{}", what());
                assert!(report.low <= right && right <= report.high, "{}", what());
                assert!(!report.is_exact() || report.estimate == 100 * i32::from(right), "{}", what());
                for searched in &report.moves {
                    let played = board.play(&Rules::AWARI, searched.pit).unwrap();
                    let left = played.child.stones() as usize;
                    let value = played.captured as Score - solved[left][&played.child.0];
                    assert!(searched.low <= value && value <= searched.high, "{}: {value}", what());
                }
                let widest = stones as Score;
                tally.searches += 1;
                tally.exact += u64::from(report.is_exact());
                tally.bounded += u64::from(report.low > -widest && report.high < widest && !report.is_exact());
            }
        }
    }
    println!("{tally:?}");
    tally
}

/// The half of the stones, and all but one.
fn two_ends(stones: u32, _: usize) -> Vec<u32> {
    let mut ends = vec![stones / 2, stones.saturating_sub(1)];
    ends.dedup();
    ends.retain(|&last| last < stones);
    ends
}

#[test]
fn every_position_of_5_stones_is_within_its_bounds() {
    let tally = search_all(5, two_ends);
    assert!(tally.exact > tally.searches / 2 && tally.exact < tally.searches, "{tally:?}");
}

/// 419,808 searches: all 293,929 positions of 1 to 9 stones, with databases of up to half of the stones, and
/// of all but one; with 9 stones one of the two.
#[test]
#[ignore = "slow tier: 400,000 searches"]
fn every_position_of_9_stones_is_within_its_bounds() {
    let ends = |stones, position| {
        let ends = two_ends(stones, position);
        if stones < 9 { ends } else { vec![ends[position % 2]] }
    };
    let tally = search_all(9, ends);
    assert_eq!(tally.searches, 419_808);
    assert!(tally.exact > tally.searches / 4 && tally.bounded > 10_000, "{tally:?}");
}
