//! Searches of small positions against their scores, solved from the rule text by [`game::reference`].

use crate::{
    Evaluation, ExactScores, MoveEstimate, NoScores, OpenEstimates, SearchLimits, SearchReport, SearchRequest,
    SearchStop, Searcher,
};
use game::reference::{self, ReferenceBounds, ReferenceScores, boards};
use game::{Board, Rules, Score};
use std::sync::LazyLock;
use std::time::Duration;

const STONES_MAX: u8 = 7;

static SOLVED: LazyLock<Vec<ReferenceScores>> = LazyLock::new(|| reference::solve_up_to(STONES_MAX));

/// Databases that end at a number of stones.
struct UpTo(u32);

impl ExactScores for UpTo {
    fn knows(&self, stones: u32) -> bool {
        stones <= self.0
    }

    fn score(&self, board: &Board) -> Option<Score> {
        assert!(board.stones() <= self.0, "only known positions are looked up");
        Some(score(board))
    }
}

fn score(board: &Board) -> Score {
    SOLVED[board.stones() as usize][&board.0]
}

fn searcher() -> Searcher {
    Searcher::new(0, Evaluation::default()).unwrap()
}

fn nodes(nodes: u64) -> SearchLimits {
    SearchLimits { nodes: Some(nodes), ..SearchLimits::default() }
}

fn search(searcher: &Searcher, request: &SearchRequest<'_>, scores: &dyn ExactScores) -> SearchReport {
    searcher.search(request, scores, &SearchStop::new(), &mut |_| {})
}

/// Asserts that the score and the values of all moves lie within their bounds, and the estimates as well.
fn assert_sound(board: &Board, report: &SearchReport) {
    let right = score(board);
    assert!(report.low <= right && right <= report.high, "{board:?}: {right} is not in {report:?}");
    assert_eq!(report.contradiction, None, "{board:?}");
    let within =
        |hundredths: i32| i32::from(report.low) * 100 <= hundredths && hundredths <= i32::from(report.high) * 100;
    assert!(within(report.estimate), "{board:?}: {report:?}");
    let legal: Vec<_> = board.moves(&Rules::AWARI).collect();
    assert_eq!(report.moves.len(), legal.len());
    for (pit, played) in legal {
        let found = report.moves.iter().find(|candidate| candidate.pit == pit).unwrap();
        let value = played.captured as i8 - score(&played.child);
        assert!(found.low <= value && value <= found.high, "{board:?} {pit}: {value} is not in {found:?}");
        assert_eq!(found.captured, played.captured);
        assert_eq!(found.line.first(), Some(&pit));
    }
}

/// All positions, with databases of every size: a table shared by all searches, full of other positions at the start.
#[test]
fn bounds_contain_the_score() {
    let searcher = searcher();
    let filling = search(&searcher, &SearchRequest::new(Board::OPENING, nodes(8_000_000)), &NoScores);
    assert!(filling.table_permille > 990, "the table is full: {}", filling.table_permille);
    let (mut exact, mut all) = (0, 0);
    for (known, step) in [(5, 1), (3, 2), (0, 3)] {
        for stones in 0..=STONES_MAX {
            for (at, pits) in boards(stones).into_iter().enumerate().step_by(step * 3_usize.pow(u32::from(stones / 3)))
            {
                let board = Board(pits);
                let mut request = SearchRequest::new(board, nodes(700));
                request.threads = if at % 64 == 0 { 2 } else { 1 };
                request.lines = 1 + at % 3;
                let report = search(&searcher, &request, &UpTo(known));
                assert_sound(&board, &report);
                exact += u32::from(report.is_exact());
                all += 1;
            }
        }
    }
    assert!(exact > all / 3 && exact < all, "{exact} of {all} are exact");
}

/// Most scores are proved if databases hold what captures lead to, also those that rest on repetitions.
#[test]
fn scores_are_proved() {
    // What is proved depends on the order of moves, and so on estimates.
    let searcher = Searcher::new(0, Evaluation::MATERIAL).unwrap();
    let (mut proved, mut all) = (0, 0);
    for pits in boards(6).into_iter().step_by(17) {
        let board = Board(pits);
        let limits = SearchLimits { depth: Some(60), nodes: Some(200_000), ..SearchLimits::default() };
        let report = search(&searcher, &SearchRequest::new(board, limits), &UpTo(5));
        assert_sound(&board, &report);
        all += 1;
        if let Some(best) = report.moves.first().filter(|_| report.is_exact()) {
            assert_eq!(report.estimate, i32::from(score(&board)) * 100, "{board:?}");
            assert_eq!(
                (best.low, best.estimate),
                (score(&board), MoveEstimate::About(report.estimate)),
                "{board:?} {report:?}"
            );
            proved += 1;
        }
    }
    // The others need lines of more moves than the longest that is searched.
    assert!(proved * 100 > all * 80, "{proved} of {all}");
}

/// By every rule: bounds hold the scores of the slow solver, and captures prove some of them.
#[test]
fn bounds_contain_the_score_by_all_rules() {
    struct Smaller<'a>(&'a [ReferenceScores]);
    impl ExactScores for Smaller<'_> {
        fn knows(&self, stones: u32) -> bool {
            stones < 5
        }
        fn score(&self, board: &Board) -> Option<Score> {
            self.0[board.stones() as usize].get(&board.0).copied()
        }
    }
    for rules in Rules::with_scores() {
        let solved = reference::solve_up_to_by(&rules, 5);
        let searcher = Searcher::by(rules, 0, Evaluation::default()).unwrap();
        let (mut exact, mut all) = (0, 0);
        for pits in boards(5).into_iter().step_by(5) {
            let score = solved[5][&pits];
            let report = search(&searcher, &SearchRequest::new(Board(pits), nodes(100)), &Smaller(&solved));
            assert!(report.low <= score && score <= report.high, "{}: {pits:?}: {score} {report:?}", rules.name);
            assert_eq!(report.contradiction, None);
            assert_eq!(report.moves.len(), Board(pits).moves(&rules).count());
            exact += u32::from(report.is_exact());
            all += 1;
        }
        assert!(exact > all / 4, "{}: {exact} of {all}", rules.name);
    }
}

/// Where a board has two bounds: what is proved holds both of the slow solver, and smaller databases prove some of it.
#[test]
fn bounds_contain_those_of_oware() {
    struct SmallerBounds<'a> {
        solved: &'a [ReferenceBounds],
        /// The most stones of a position whose bounds are known.
        stones_max: u32,
        estimates: Option<OpenEstimates>,
    }
    impl ExactScores for SmallerBounds<'_> {
        fn knows(&self, stones: u32) -> bool {
            stones <= self.stones_max
        }
        fn score(&self, board: &Board) -> Option<Score> {
            self.bounds(board).filter(|(low, high)| low == high).map(|(low, _)| low)
        }
        fn bounds(&self, board: &Board) -> Option<(Score, Score)> {
            let ReferenceBounds { low, high } = &self.solved[board.stones() as usize];
            Some((low[&board.0], high[&board.0]))
        }
        fn ready_bounds(&self, board: &Board) -> Option<(Score, Score)> {
            self.bounds(board)
        }
        fn open_estimates(&self) -> Option<&OpenEstimates> {
            self.estimates.as_ref()
        }
    }
    let mut solved = Vec::new();
    for stones in 0..=5 {
        let bounds = reference::solve_bounds(&Rules::OWARE, stones, &solved);
        solved.push(bounds);
    }
    let rightly = |board: &Board| {
        let ReferenceBounds { low, high } = &solved[board.stones() as usize];
        Some((low[&board.0], high[&board.0]))
    };
    // A database that turned out to be wrong after estimates had been made from it.
    let wrongly = |board: &Board| if board.stones() == 4 { Some((4, 4)) } else { rightly(board) };
    let estimated = |bounds: &dyn Fn(&Board) -> Option<(Score, Score)>| {
        Some(OpenEstimates::new(&Rules::OWARE, &Evaluation::default(), 4, bounds))
    };
    let searched = |stones_max: u32, estimates: Option<OpenEstimates>| {
        let smaller = SmallerBounds { solved: &solved, stones_max, estimates };
        let searcher = Searcher::by(Rules::OWARE, 0, Evaluation::default()).unwrap();
        let (mut narrowed, mut all, mut visited) = (0, 0, 0);
        for pits in boards(5).into_iter().step_by(3) {
            let (low, high) = (solved[5].low[&pits], solved[5].high[&pits]);
            let report = search(&searcher, &SearchRequest::new(Board(pits), nodes(300)), &smaller);
            assert!(report.low <= low && high <= report.high, "{pits:?}: {low} {high} {report:?}");
            assert_eq!(report.contradiction, None);
            assert_eq!(report.moves.len(), Board(pits).moves(&Rules::OWARE).count());
            narrowed += u32::from((report.low, report.high) != (-5, 5));
            all += 1;
            visited += report.nodes;
        }
        assert!(narrowed > all / 2, "{narrowed} of {all}");
        visited
    };
    let visited = searched(4, None);
    assert_ne!(searched(4, estimated(&rightly)), visited, "the search looks the estimates up");
    searched(3, estimated(&wrongly));
}

/// At oware a move back to a position of the game, with the same player to move, gives each player the stones
/// of a side. The same board with the other player to move ends no game.
#[test]
fn repetitions_at_oware_give_each_player_a_side() {
    let searcher = Searcher::by(Rules::OWARE, 0, Evaluation::MATERIAL).unwrap();
    let (mut count, mut unequal) = (0, 0);
    for pits in boards(4).into_iter().step_by(3) {
        let board = Board(pits);
        for (pit, played) in board.moves(&Rules::OWARE).filter(|(_, played)| played.captured == 0) {
            if played.child.moves(&Rules::OWARE).next().is_none() {
                continue;
            }
            let rest = Rules::OWARE.repetition_score(&played.child);
            let found = |before: &[Board]| {
                let request = SearchRequest { before, lines: 6, ..SearchRequest::new(board, nodes(200)) };
                let report = search(&searcher, &request, &NoScores);
                report.moves.into_iter().find(|candidate| candidate.pit == pit).unwrap()
            };
            let repeated = found(&[played.child]);
            assert_eq!((repeated.low, repeated.high), (-rest, -rest), "{board:?} {pit}");
            // Other moves lie between: the position came before with the other player to move.
            let other = found(&[played.child, board]);
            count += 1;
            unequal += u32::from((other.low, other.high) != (-rest, -rest));
        }
    }
    assert!(count > 100 && unequal * 2 > count, "{unequal} of {count}");
}

/// However many positions a search may visit: the estimates of its lines are in order, and belong to one iteration.
#[test]
fn a_stopped_iteration_leaves_no_estimates() {
    let request = |limit| SearchRequest { lines: 6, ..SearchRequest::new(Board::OPENING, nodes(limit)) };
    for limit in (5_000..60_000).step_by(2_500) {
        let searcher = searcher();
        let mut completed = None;
        let stop = SearchStop::new();
        let last = searcher.search(&request(limit), &NoScores, &stop, &mut |report| completed = Some(report.clone()));
        let completed = completed.unwrap();
        let estimates = |report: &SearchReport| -> Vec<_> {
            report.moves.iter().map(|candidate| (candidate.pit, candidate.estimate)).collect()
        };
        assert_eq!(estimates(&last), estimates(&completed), "{limit}");
        assert!(last.moves.is_sorted_by_key(|candidate| -candidate.estimate.hundredths()), "{last:?}");
    }
}

#[test]
fn limits_are_kept() {
    let searcher = searcher();
    let depth = |depth| SearchLimits { depth: Some(depth), ..SearchLimits::default() };
    for wanted in [1, 2, 7] {
        let report = search(&searcher, &SearchRequest::new(Board::OPENING, depth(wanted)), &NoScores);
        assert_eq!(report.depth, wanted);
    }
    // Of any other size: as deep as the other limits allow.
    for most in [i32::MAX as u32 + 1, u32::MAX] {
        let limits = SearchLimits { nodes: Some(10_000), ..depth(most) };
        assert!(search(&searcher, &SearchRequest::new(Board::OPENING, limits), &NoScores).depth > 2);
    }
    let report = search(&searcher, &SearchRequest::new(Board::OPENING, nodes(10_000)), &NoScores);
    assert!((10_000..10_600).contains(&report.nodes), "{}", report.nodes);
    let time = SearchLimits { time: Some(Duration::from_millis(20)), ..SearchLimits::default() };
    let report = search(&searcher, &SearchRequest::new(Board::OPENING, time), &NoScores);
    assert!(report.time >= Duration::from_millis(20) && report.depth > 0);
    // A search that is stopped before it begins still has a legal move.
    let stopped = SearchStop::new();
    stopped.stop();
    let report =
        searcher.search(&SearchRequest::new(Board::OPENING, SearchLimits::default()), &NoScores, &stopped, &mut |_| {});
    assert_eq!(report.moves.len(), 6);
}

#[test]
fn a_flag_stops_all_threads() {
    let searcher = searcher();
    let stop = SearchStop::new();
    let (deep, is_deep) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let flag = &stop;
        scope.spawn(move || {
            is_deep.recv().unwrap();
            flag.stop();
        });
        let mut request = SearchRequest::new(Board::OPENING, SearchLimits::default());
        request.threads = 3;
        let report = searcher.search(&request, &NoScores, &stop, &mut |report| {
            if report.depth == 6 {
                deep.send(()).unwrap();
            }
        });
        assert!(report.depth >= 6 && stop.is_set());
    });
}

/// One thread and an empty table: the same search gives the same report.
#[test]
fn searches_are_repeatable() {
    let run = |threads| {
        let mut request = SearchRequest::new(Board::OPENING, nodes(300_000));
        (request.lines, request.threads) = (2, threads);
        let mut reports = Vec::new();
        let report =
            searcher().search(&request, &NoScores, &SearchStop::new(), &mut |report| reports.push(report.clone()));
        reports.push(report);
        reports.iter_mut().for_each(|report| report.time = Duration::ZERO);
        reports
    };
    let reports = run(1);
    assert_eq!(reports, run(1));
    assert!(reports.len() > 8, "a report for each depth");
    let (best, second) = (&reports[8].moves[0], &reports[8].moves[1]);
    assert!(
        matches!((best.estimate, second.estimate), (MoveEstimate::About(best), MoveEstimate::About(second)) if best >= second)
    );
    assert!(best.line.len() > 3, "{best:?}");
    assert_eq!(run(2).last().unwrap().moves.len(), 6);
}

/// A move back to a position of the game ends the game: it gains nothing and proves nothing.
#[test]
fn repetitions_of_the_game_are_worth_nothing() {
    let mut count = 0;
    for pits in boards(4).into_iter().step_by(3) {
        let board = Board(pits);
        for (pit, played) in board.moves(&Rules::AWARI).filter(|(_, played)| played.captured == 0) {
            if played.child.mover_starves() {
                continue;
            }
            let before = [played.child, board];
            let mut request = SearchRequest::new(board, nodes(2_000));
            (request.before, request.lines) = (&before[..1], 6);
            let report = search(&searcher_of(&mut count), &request, &UpTo(3));
            let found = report.moves.iter().find(|candidate| candidate.pit == pit).unwrap();
            assert_eq!((found.low, found.high), (-4, 4), "{board:?} {pit}");
            assert_eq!(found.estimate, MoveEstimate::About(0), "{board:?} {pit}");
        }
    }
    assert!(count > 100);
}

fn searcher_of(count: &mut u32) -> Searcher {
    *count += 1;
    searcher()
}

/// Databases that contradict what was proved by other databases are reported, not believed.
#[test]
fn contradictory_scores_are_reported() {
    struct Wrong;
    impl ExactScores for Wrong {
        fn knows(&self, stones: u32) -> bool {
            stones <= 5
        }
        fn score(&self, board: &Board) -> Option<Score> {
            Some((score(board) + 3).min(board.stones() as Score))
        }
    }
    let searcher = searcher();
    let (mut contradictory, mut all) = (0, 0);
    for pits in boards(6).into_iter().step_by(41) {
        let request = SearchRequest::new(Board(pits), nodes(5_000));
        let wrong = search(&searcher, &request, &Wrong);
        let right = search(&searcher, &request, &UpTo(5));
        all += 1;
        contradictory += u32::from(wrong.contradiction.or(right.contradiction).is_some());
    }
    assert!(contradictory > 5, "{contradictory} of {all}");
}
