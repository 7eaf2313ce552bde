//! What each player can force at oware, where a repetition gives each player the seeds of a side: against the
//! slow solver, the certificate, and games that are played to their end.

use check::{CheckError, Databases, certify_bounds, verify_bounds};
use disk::{Disk, MemoryDisk};
use game::notation::{PositionText, Seats, Side};
use game::play::{Game, GameEnd};
use game::reference::{self, ReferenceBounds};
use game::{Board, Index, Orientation, Pit, Played, PositionSet, Rules, Score};
use oracle::{Library, Oracle, SearchProbes};
use pipeline::{Manifest, Orchestrator, RunOptions};
use planner::{Settings, schema};
use search::{Evaluation, ExactScores, SearchLimits, SearchRequest, SearchStop, Searcher};
use solvers::capture::InMemory;
use solvers::sweep::{BoundCaptures, Guarantees};
use solvers::{Bytes, Kernel, Tables, capture};
use stages::Awari;
use std::path::{Path, PathBuf};
use store::Scores;
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

/// The table of `docs/rules.md`: stones, positions, the share of boards whose bounds are equal, and their
/// mean distance.
fn documented_shares() -> Vec<(usize, String)> {
    let guide = std::fs::read_to_string(tests::root().join("docs/rules.md")).unwrap();
    let (_, section) = guide.split_once("| stones | positions | exact | mean distance |\n").unwrap();
    let rows = section.lines().skip(1).take_while(|line| line.starts_with('|'));
    let stones = |row: &str| row.split('|').nth(1).unwrap().trim().parse().unwrap();
    rows.map(|row| (stones(row), row.to_owned())).collect()
}

/// Reachable boards have the bounds that all boards have, so one certificate is that of both.
#[test]
#[ignore = "slow tier: solves databases of 12 stones twice, and certifies those of 11"]
fn few_boards_are_exact() {
    let [all, reachable] = SETS.map(|set| solved(Rules::OWARE, set, 12, Kernel::detect()));
    let [low, high] = [&all.low, &all.high].map(|bounds| databases(Rules::OWARE, PositionSet::All, bounds));
    for stones in 0..=12 {
        let bounds = all.low[stones].iter().zip(&all.high[stones]);
        assert!(bounds.clone().all(|(low, high)| low <= high), "{stones}");
        let index = Index::new(stones as u32, PositionSet::All);
        let few = Index::new(stones as u32, PositionSet::REACHABLE);
        for position in 0..few.positions() {
            let at = index.rank(&few.unrank(position, ORDER), ORDER).unwrap() as usize;
            let found = (reachable.low[stones][position as usize], reachable.high[stones][position as usize]);
            assert_eq!(found, (all.low[stones][at], all.high[stones][at]), "{stones} {position}");
        }
        if stones <= 11 {
            assert!(verify_bounds(&low, &high, stones as u32).is_ok(), "{stones}");
            assert!(certify_bounds(&low, &high, stones as u32).is_ok(), "{stones}");
        }
        let positions = all.low[stones].len() as f64;
        let exact = bounds.clone().filter(|(low, high)| low == high).count() as f64 / positions;
        let distance = bounds.map(|(low, high)| f64::from(high - low)).sum::<f64>() / positions;
        if let Some((_, row)) = documented_shares().into_iter().find(|(documented, _)| *documented == stones) {
            assert!(row.ends_with(&format!("| {:.1} % | {distance:.1} |", 100.0 * exact)), "{exact} {distance} {row}");
        }
    }
    assert_eq!(documented_shares().iter().filter(|(stones, _)| *stones <= 12).count(), 6);
}

/// Builds databases of oware by the stages of a run, each verified in full, and opens them.
fn built(rules: Rules, game: &str, stones: u32) -> Oracle {
    let rules = rules.name;
    let text =
        format!("[game]\nrules = \"{rules}\"\n{game}[build]\nstones = \"0..{stones}\"\n[check]\nverify = \"full\"");
    let disk = MemoryDisk::new();
    let work = Awari::new(Settings::new(&Manifest::parse(&text, "test", &schema(), &[]).unwrap()));
    Orchestrator::new(&disk, Path::new("run"), &work, RunOptions::default()).run().unwrap();
    let path = |stones: u32| PathBuf::from(format!("run/databases/{stones:02}.awari"));
    let files = (0..=stones).map(|stones| (path(stones), Scores::open(&disk as &dyn Disk, &path(stones))));
    Oracle::new(Library::new(files).unwrap(), 1 << 24)
}

/// The bounds in the files of a run are those of the slow solver, and so are the answers about all boards.
#[test]
fn a_run_builds_the_bounds_of_the_reference() {
    let mut expected: Vec<ReferenceBounds> = Vec::new();
    for stones in 0..=7 {
        let bounds = reference::solve_bounds(&Rules::OWARE, stones, &expected);
        expected.push(bounds);
    }
    for game in ["", "positions = \"reachable\"\n"] {
        let oracle = built(Rules::OWARE, game, 7);
        assert_eq!(oracle.rules(), &Rules::OWARE);
        for pits in (0..=7).flat_map(reference::boards) {
            let stones = pits.iter().sum::<u8>() as usize;
            let found = oracle.answer(&Board(pits)).unwrap().score;
            let bounds = (expected[stones].low[&pits], expected[stones].high[&pits]);
            assert_eq!((found.low(), found.high()), bounds, "{pits:?} {game}");
        }
    }
}

/// How an opponent of the guaranteed player chooses moves.
#[derive(Clone, Copy, Debug)]
enum OpponentPolicy {
    Random,
    /// A move of the highest lower bound.
    Best,
    /// A quiet move, to a position as near to those of the game so far as possible.
    Delaying,
}

fn reply(oracle: &Oracle, game: &Game, by: OpponentPolicy, random: &mut Random) -> Pit {
    let moves = game.moves();
    let now = game.now().board;
    let chosen = match by {
        OpponentPolicy::Random => None,
        OpponentPolicy::Best => {
            let answer = oracle.answer(&now).unwrap();
            answer.moves.iter().max_by_key(|valued| valued.value.low()).map(|valued| valued.pit)
        }
        OpponentPolicy::Delaying => {
            let seen = game.positions_since_capture();
            let distance = |board: &Board| {
                let distance_to = |other: &Board| -> u32 {
                    board.0.iter().zip(other.0).map(|(&a, b)| u32::from(a.abs_diff(b))).sum()
                };
                seen.iter().map(distance_to).min().unwrap_or(0)
            };
            let quiet = moves.iter().filter(|(_, played)| played.captured == 0);
            quiet.min_by_key(|(_, played)| distance(&played.child)).map(|(pit, _)| *pit)
        }
    };
    chosen.unwrap_or_else(|| random.pick(&moves).0)
}

/// The positions that a search of a game visits.
const NODES: u64 = 500;

/// Plays games from random boards of up to `stones`: moves that keep the lower bound, with the game so far,
/// against opponents of all kinds. The player gets at least the lower bound of the first board, and of each
/// later one. Where nothing was played before, the bounds of a search are those of the databases; elsewhere
/// the game may add what a repetition yields.
fn guaranteed_games(stones: u32, games: u32) {
    let oracle = built(Rules::OWARE, "", stones);
    let searcher = Searcher::by(Rules::OWARE, 0, Evaluation::default()).unwrap();
    let limits = SearchLimits { nodes: Some(NODES), ..SearchLimits::default() };
    let mut random = Random::new(7);
    let (mut repeated, mut wider, mut raised, mut searched) = (0, 0, 0, 0);
    for number in 0..games {
        let by = [OpponentPolicy::Random, OpponentPolicy::Best, OpponentPolicy::Delaying][number as usize % 3];
        let board = random.board(1 + number / 3 % stones);
        let bounds = oracle.answer(&board).unwrap().score;
        wider += u32::from(bounds.low() < bounds.high());
        let seats = Seats { south_store: 0, north_store: 0, side: Side::South };
        let mut game = Game::from(Rules::OWARE, &PositionText::of_game(board, seats));
        let mut guaranteed = bounds.low();
        while game.outcome().is_none() {
            let now = game.now();
            let pit = if now.seats.side == Side::South {
                let before = game.positions_since_capture();
                let request = SearchRequest { before: &before, ..SearchRequest::new(now.board, limits) };
                let report = oracle.analyze(&searcher, &request, &SearchStop::new(), &mut |_| {}).unwrap();
                let bounds = oracle.score(&now.board).unwrap();
                if before.is_empty() {
                    assert_eq!((report.low, report.high), (bounds.low(), bounds.high()), "{report:?}");
                }
                searched += u32::from(report.nodes > 0);
                let lead = now.seats.south_store as Score - now.seats.north_store as Score;
                guaranteed = guaranteed.max(bounds.low() + lead);
                let needed = guaranteed - lead;
                let followed = match needed > -(now.board.stones() as Score) {
                    true => oracle.guaranteed_move(&now.board, &before, needed).unwrap(),
                    // Any move keeps that.
                    false => Some(report.moves[0].pit),
                };
                followed.unwrap_or_else(|| panic!("{board:?} {by:?}: {report:?}"))
            } else {
                reply(&oracle, &game, by, &mut random)
            };
            game.play(pit).unwrap();
        }
        let outcome = game.outcome().unwrap();
        assert!(outcome.lead >= guaranteed, "{board:?} guarantees {guaranteed}, got {outcome:?} from {by:?}");
        raised += u32::from(guaranteed > bounds.low());
        repeated += u32::from(matches!(outcome.end, GameEnd::Repeats { .. }));
    }
    println!(
        "{games} games, {repeated} end with a repetition, {wider} begin with two bounds, {raised} come to a higher one"
    );
    assert!(repeated * 100 > games && wider * 10 > games && raised * 10 > games, "{repeated} {wider} {raised}");
    assert!(searched > games, "{searched} searches of open boards");
}

/// The analysis of open boards takes estimates from the databases; scores need none. A search with these databases
/// alone visits other positions.
#[test]
fn analyses_look_open_boards_up() {
    struct BoundsAlone<'a>(SearchProbes<'a>);
    impl ExactScores for BoundsAlone<'_> {
        fn knows(&self, stones: u32) -> bool {
            self.0.knows(stones)
        }
        fn score(&self, board: &Board) -> Option<Score> {
            self.0.score(board)
        }
        fn bounds(&self, board: &Board) -> Option<(Score, Score)> {
            self.0.bounds(board)
        }
        fn ready_bounds(&self, board: &Board) -> Option<(Score, Score)> {
            self.0.ready_bounds(board)
        }
    }
    let limits = SearchLimits { depth: Some(9), ..SearchLimits::default() };
    let (stop, stones) = (SearchStop::new(), 6);
    for rules in [Rules::OWARE, Rules::AWARI] {
        let oracle = built(rules, "", stones);
        let probes = BoundsAlone(SearchProbes::new(&oracle, stones));
        let mut random = Random::new(3);
        let mut fewer = 0;
        for _ in 0..40 {
            let request = SearchRequest::new(random.board(stones + 3), limits);
            let [by_analysis, by_bounds] = [true, false].map(|is_analysis| {
                let searcher = Searcher::by(rules, 0, Evaluation::default()).unwrap();
                match is_analysis {
                    true => oracle.analyze(&searcher, &request, &stop, &mut |_| {}).unwrap(),
                    false => searcher.search(&request, &probes, &stop, &mut |_| {}),
                }
            });
            fewer += u32::from(by_analysis.nodes < by_bounds.nodes);
            assert!(!rules.has_scores() || by_analysis.nodes == by_bounds.nodes, "{request:?}");
        }
        assert_eq!(fewer > 10, !rules.has_scores(), "{fewer} searches of 40 visit fewer positions by {}", rules.name);
    }
}

#[test]
fn guaranteed_moves_get_what_databases_guarantee() {
    guaranteed_games(6, 600);
}

#[test]
#[ignore = "slow tier: solves 12 stones, and plays 10,000 games"]
fn guaranteed_moves_get_what_databases_of_12_stones_guarantee() {
    guaranteed_games(12, 10_000);
}

/// Games that begin with moves of any kind, so that positions of the game are in the way of a guarantee. A
/// move that is proved keeps it all the same, and so do all later ones.
#[test]
fn a_proved_move_keeps_the_guarantee_after_any_moves() {
    const STONES_MAX: u32 = 6;
    let oracle = built(Rules::OWARE, "", STONES_MAX);
    let mut random = Random::new(8);
    let (mut proved, mut unproved, mut repeated) = (0, 0, 0);
    for number in 0..3_000 {
        let board = random.board(1 + number % STONES_MAX);
        let seats = Seats { south_store: 0, north_store: 0, side: Side::South };
        let mut game = Game::from(Rules::OWARE, &PositionText::of_game(board, seats));
        for _ in 0..2 * random.below(12) {
            let quiet: Vec<_> = game.moves().into_iter().filter(|(_, played)| played.captured == 0).collect();
            if !quiet.is_empty() {
                game.play(random.pick(&quiet).0).unwrap();
            }
        }
        let mut guaranteed: Option<Score> = None;
        while game.outcome().is_none() {
            let (now, before) = (game.now(), game.positions_since_capture());
            if now.seats.side == Side::North {
                game.play(random.pick(&game.moves()).0).unwrap();
                continue;
            }
            let lead = now.seats.south_store as Score - now.seats.north_store as Score;
            let needed = match guaranteed {
                Some(guaranteed) => guaranteed - lead,
                None => oracle.score(&now.board).unwrap().low(),
            };
            // All stones are lost at worst: any move keeps that.
            let is_nothing = needed <= -(now.board.stones() as Score);
            let found = if is_nothing { None } else { oracle.guaranteed_move(&now.board, &before, needed).unwrap() };
            // Without positions of the game in the way there is a proof, and a proof leads to the next one.
            let must_be = !is_nothing && (guaranteed.is_some() || before.is_empty());
            assert!(found.is_some() || !must_be, "{board:?} {now:?} {before:?} {guaranteed:?}");
            match found {
                Some(_) => guaranteed = Some(needed + lead),
                None => unproved += u32::from(!is_nothing),
            }
            game.play(found.unwrap_or_else(|| random.pick(&game.moves()).0)).unwrap();
        }
        let outcome = game.outcome().unwrap();
        proved += u32::from(guaranteed.is_some());
        assert!(guaranteed.is_none_or(|guaranteed| outcome.lead >= guaranteed), "{board:?} {guaranteed:?} {outcome:?}");
        repeated += u32::from(guaranteed.is_some() && matches!(outcome.end, GameEnd::Repeats { .. }));
    }
    println!("{proved} games with a proof, {repeated} of them end with a repetition; {unproved} moves without");
    assert!(proved > 1_000 && repeated > 50 && unproved > 5, "{proved} {repeated} {unproved}");
}

/// All stones of a game of one stone a pit: the last position of the reachable database is the opening.
#[test]
#[ignore = "slow tier: solves 12 stones"]
fn the_opening_has_bounds() {
    let oracle = built(Rules::OWARE, "positions = \"reachable\"\nopening = 1\n", 12);
    let opening = Board([1; 12]);
    let answer = oracle.answer(&opening).unwrap();
    let all = built(Rules::OWARE, "", 12).answer(&opening).unwrap();
    assert_eq!((answer.score, answer.source), (all.score, oracle::AnswerSource::Database));
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

/// Games in which one player makes guaranteed moves, and the other any. Of the moves that keep what is
/// guaranteed, the first player makes one that did so in the earliest round: this comes to an end before a
/// position is repeated.
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
                let kept = moves.iter().filter_map(|legal| Some((round(&legal.1)?, legal)));
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
