//! Books in games: against players of several levels, against an opponent that wants to leave the book, and against
//! the engine that made them.

use crate::{BookCheckArguments, DatabasesUpTo, assessor, drop_out, even, expand, score, show};
use book::{AssessmentLimits, AwariGame, Book, BookEdge, BookFile, BookGraph, NodeId, book_ends, drop_out_depth};
use game::notation::PositionText;
use game::play::Game;
use game::transcript::Transcript;
use game::{Board, Pit, Rules};
use rayon::prelude::*;
use search::{Evaluation, ExactScores, SearchLimits, SearchRequest, SearchStop, Searcher};
use std::collections::{HashMap, HashSet};
use tests::Random;

/// The most moves of a game.
const PLIES_MAX: u32 = 400;

/// Players of the opponent: the weight of a move halves with this number of stones lost, as in the levels of
/// the program.
const LEVELS: [(&str, Option<f64>); 5] =
    [("random", None), ("fair", Some(6.0)), ("good", Some(3.0)), ("strong", Some(1.5)), ("expert", Some(0.5))];

/// Loads the book of the arguments, or makes one by drop-out expansion, with the last of the databases.
fn book(arguments: &BookCheckArguments, databases: &DatabasesUpTo<'_>, roots: &[Board]) -> Book<AwariGame> {
    if let Some(path) = &arguments.book {
        let file = BookFile::open(path, &Rules::AWARI).expect("there is a book");
        return file.load_values().expect("the book is sound");
    }
    let assessor = assessor(databases, arguments.nodes);
    let limits = (arguments.positions, u64::MAX);
    expand(roots, drop_out(100, false), &assessor, limits, &mut |_| {})
}

fn databases<'a>(arguments: &BookCheckArguments, truth: &'a dyn ExactScores) -> DatabasesUpTo<'a> {
    DatabasesUpTo(truth, arguments.databases[arguments.databases.len() - 1])
}

/// Returns the true value of each move, in stones.
fn values(truth: &dyn ExactScores, board: &Board) -> Vec<(Pit, i32)> {
    let value = |(pit, played): (Pit, game::Played)| {
        (pit, i32::from(played.captured) - score(truth, AwariGame::key(&played.child)) / 100)
    };
    board.moves(&Rules::AWARI).map(value).collect()
}

/// Returns what a move of a position loses, in stones.
fn loss(truth: &dyn ExactScores, board: &Board, pit: Pit) -> i32 {
    let values = values(truth, board);
    let best = values.iter().map(|valued| valued.1).max().unwrap_or(0);
    best - values.iter().find(|valued| valued.0 == pit).map_or(best, |valued| valued.1)
}

/// Returns the move of a player of a level.
fn level_move<'a>(
    truth: &dyn ExactScores,
    graph: &'a BookGraph,
    id: NodeId,
    halving: Option<f64>,
    random: &mut Random,
) -> &'a BookEdge {
    let moves = graph.moves(id);
    let Some(halving) = halving else { return random.pick(moves) };
    let values = values(truth, &AwariGame::board(graph.node(id).key));
    let best = values.iter().map(|valued| valued.1).max().unwrap_or(0);
    let value = |edge: &BookEdge| {
        values.iter().find(|valued| valued.0.number() as u8 == edge.number).map_or(best, |valued| valued.1)
    };
    let weights: Vec<f64> = moves.iter().map(|edge| (f64::from(value(edge) - best) / halving).exp2()).collect();
    let mut left = random.below(1 << 20) as f64 / f64::from(1 << 20) * weights.iter().sum::<f64>();
    let chosen = weights.iter().position(|weight| {
        left -= weight;
        left <= 0.0
    });
    &moves[chosen.unwrap_or(moves.len() - 1)]
}

/// Returns a random move of the book player: one of the best, of proved value if there is one.
fn book_move<'a>(graph: &'a BookGraph, id: NodeId, random: &mut Random) -> Option<&'a BookEdge> {
    let best = graph.best(id)?;
    let mut moves: Vec<&'a BookEdge> = graph.moves(id).iter().filter(|edge| graph.estimate(edge) == best).collect();
    if moves.iter().any(|edge| graph.is_closed(edge.child)) {
        moves.retain(|edge| graph.is_closed(edge.child));
    }
    Some(random.pick::<&BookEdge>(&moves))
}

/// Returns a random one of the best moves.
fn perfect_move(truth: &dyn ExactScores, board: &Board, random: &mut Random) -> Pit {
    let values = values(truth, board);
    let best = values.iter().map(|valued| valued.1).max();
    let best: Vec<Pit> = values.iter().filter(|valued| Some(valued.1) == best).map(|valued| valued.0).collect();
    *random.pick(&best)
}

fn engine_move(searcher: &Searcher, board: &Board, nodes: u64, databases: &dyn ExactScores) -> Pit {
    searcher.table().clear();
    let limits = SearchLimits { nodes: Some(nodes), ..SearchLimits::default() };
    let report = searcher.search(&SearchRequest::new(*board, limits), databases, &SearchStop::new(), &mut |_| {});
    report.moves[0].pit
}

fn searcher(arguments: &BookCheckArguments) -> Searcher {
    let limits = AssessmentLimits::Nodes(arguments.engine_nodes);
    Searcher::new(limits.table_bytes(), Evaluation::default()).expect("there is memory for the table")
}

/// Returns how likely a fair coin falls at least as unevenly, by the normal approximation with continuity correction.
fn sign_test(wins: usize, losses: usize) -> f64 {
    let count = (wins + losses) as f64;
    if wins == losses {
        return 1.0;
    }
    let z = ((wins as f64 - losses as f64).abs() - 1.0).max(0.0) / count.sqrt();
    // Abramowitz and Stegun 7.1.26, an error below 1.5e-7.
    let x = z / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let terms = [0.254_829_592, -0.284_496_736, 1.421_413_741, -1.453_152_027, 1.061_405_429];
    terms.iter().rev().fold(0.0, |sum, term| (sum + term) * t) * (-x * x).exp()
}

pub(crate) fn choice(arguments: &BookCheckArguments, truth: &dyn ExactScores) {
    let databases = databases(arguments, truth);
    let book = book(arguments, &databases, &[even(arguments.stones)]);
    let (graph, mut random) = (book.graph(), Random::new(6));
    let mut table =
        bench::table("opponent|positions|wrong: book|engine|lost a move: book|engine|only book wrong|only engine|p", 1);
    let mut all = [Vec::new(), Vec::new()];
    for (name, halving) in LEVELS {
        let (mut seen, mut choices) = (HashSet::new(), Vec::new());
        let most = arguments.games / LEVELS.len() as u64;
        for game in 0..20 * most {
            let (mut id, mut is_book) = (book.roots()[0], game % 2 == 0);
            // A game may go on for ever in the book.
            for _ in 0..PLIES_MAX {
                let Some(edge) = (match is_book {
                    true => book_move(graph, id, &mut random),
                    false if graph.is_interior(id) => Some(level_move(truth, graph, id, halving, &mut random)),
                    false => None,
                }) else {
                    break;
                };
                if is_book && (seen.len() as u64) < most && seen.insert(id) {
                    choices.push((AwariGame::board(graph.node(id).key), Pit::new(edge.number).expect("a pit")));
                }
                (id, is_book) = (edge.child, !is_book);
            }
            if seen.len() as u64 >= most {
                break;
            }
        }
        let losses_of = |searcher: &mut Searcher, (board, pit): (Board, Pit)| {
            let chosen = engine_move(searcher, &board, arguments.engine_nodes, &databases);
            (loss(truth, &board, pit), loss(truth, &board, chosen))
        };
        let losses: (Vec<i32>, Vec<i32>) = choices.into_par_iter().map_init(|| searcher(arguments), losses_of).unzip();
        let losses = [losses.0, losses.1];
        table.add_row(choice_row(name, &losses));
        all.iter_mut().zip(losses).for_each(|(all, losses)| all.extend(losses));
    }
    table.add_row(choice_row("all", &all));
    let BookCheckArguments { stones, nodes, engine_nodes, .. } = arguments;
    let title = format!(
        "choice: a book of {} positions of {stones} stones, databases 0..{}, searches of {nodes} positions, of the engine \
         {engine_nodes}",
        graph.len(),
        databases.1
    );
    show(&title, &table);
}

fn choice_row(name: &str, [book, engine]: &[Vec<i32>; 2]) -> [String; 9] {
    let count = book.len() as f64;
    let wrong = |losses: &[i32]| losses.iter().filter(|&&loss| loss > 0).count();
    let share = |losses: &[i32]| bench::ratio(wrong(losses) as f64 * 100.0, count, 1) + " %";
    let mean = |losses: &[i32]| bench::ratio(f64::from(losses.iter().sum::<i32>()), count, 3);
    let only =
        |these: &[i32], those: &[i32]| these.iter().zip(those).filter(|(this, that)| **this > 0 && **that == 0).count();
    let (only_book, only_engine) = (only(book, engine), only(engine, book));
    [
        name.to_owned(),
        book.len().to_string(),
        share(book),
        share(engine),
        mean(book),
        mean(engine),
        only_book.to_string(),
        only_engine.to_string(),
        format!("{:.0e}", sign_test(only_book, only_engine)),
    ]
}

/// Games of the engine with the book against the engine without it, from all openings of two plies. Where the
/// game reaches a database that both have, its score is the result.
pub(crate) fn contest(arguments: &BookCheckArguments, truth: &dyn ExactScores) {
    let databases = databases(arguments, truth);
    let root = even(arguments.stones);
    // The stones that the first player has more, and the position.
    let mut openings: Vec<(i32, Board)> = Vec::new();
    for (_, first) in root.moves(&Rules::AWARI) {
        let second = first.child.moves(&Rules::AWARI);
        openings.extend(second.map(|(_, reply)| (i32::from(first.captured) - i32::from(reply.captured), reply.child)));
    }
    openings.sort_unstable_by_key(|opening| (opening.0, opening.1.0));
    openings.dedup();
    let roots: Vec<Board> =
        if arguments.openings { openings.iter().map(|opening| opening.1).collect() } else { vec![root] };
    let book = book(arguments, &databases, &roots);
    let mut starts = Vec::new();
    for &(ahead, board) in &openings {
        for is_book_first in [true, false] {
            let ahead = if is_book_first { ahead } else { -ahead };
            starts.extend((0..arguments.seeds).map(|_| ContestStart { board, ahead, is_book_first }));
        }
    }
    let random = Random::new(7);
    let play = |searcher: &mut Searcher, (number, start): (usize, ContestStart)| {
        contest_game(arguments, &book, searcher, &databases, start, &mut random.branch(number as u64))
    };
    let played = starts.into_par_iter().enumerate().map_init(|| searcher(arguments), play);
    let played: Vec<ContestGame> = played.collect();
    if let Some(path) = &arguments.out {
        let text =
            |finished: &ContestGame| Transcript { tags: Vec::new(), game: finished.game.clone() }.text() + "*\n\n";
        std::fs::write(path, played.iter().map(text).collect::<String>())
            .expect("the file of the games can be written");
    }
    let results: Vec<i32> = played.iter().map(|finished| finished.ahead).collect();
    let in_book: u32 = played.iter().map(|finished| finished.in_book).sum();
    let count = |is: &dyn Fn(i32) -> bool| results.iter().filter(|&&stones| is(stones)).count();
    let (wins, losses) = (count(&|stones| stones > 0), count(&|stones| stones < 0));
    let games = results.len() as f64;
    let mut table = bench::table("openings|games|won|drawn|lost|points|stones a game|book moves a game|p", 0);
    table.add_row([
        openings.len().to_string(),
        results.len().to_string(),
        wins.to_string(),
        (results.len() - wins - losses).to_string(),
        losses.to_string(),
        bench::ratio((games + wins as f64 - losses as f64) * 50.0, games, 1) + " %",
        bench::ratio(f64::from(results.iter().sum::<i32>()), games, 2),
        bench::ratio(f64::from(in_book), games, 1),
        format!("{:.0e}", sign_test(wins, losses)),
    ]);
    let BookCheckArguments { stones, nodes, engine_nodes, .. } = arguments;
    let player = if arguments.perfect {
        "the database".to_owned()
    } else {
        format!("a book of {} positions from {} roots", book.graph().len(), book.roots().len())
    };
    let title = format!(
        "contest: {player}, {stones} stones, databases 0..{}, searches of {nodes} positions; in games about {engine_nodes}",
        databases.1
    );
    show(&title, &table);
}

struct ContestStart {
    board: Board,
    /// The stones that the book player has more.
    ahead: i32,
    is_book_first: bool,
}

/// A game of a contest.
struct ContestGame {
    game: Game,
    /// The stones that the book player has more at its end.
    ahead: i32,
    /// Its moves from the book.
    in_book: u32,
}

fn contest_game(
    arguments: &BookCheckArguments,
    book: &Book<AwariGame>,
    searcher: &Searcher,
    databases: &DatabasesUpTo<'_>,
    start: ContestStart,
    random: &mut Random,
) -> ContestGame {
    let ContestStart { mut board, mut ahead, is_book_first: mut is_book } = start;
    let graph = book.graph();
    let (mut seen, mut in_book) = (HashSet::new(), 0);
    let mut game = Game::from(Rules::AWARI, &PositionText::of_board(board));
    for _ in 0..PLIES_MAX {
        let sign = if is_book { 1 } else { -1 };
        if board.moves(&Rules::AWARI).next().is_none() {
            ahead += sign * i32::from(Rules::AWARI.terminal_score(&board));
            break;
        }
        if databases.knows(board.stones()) {
            ahead += sign * score(databases, AwariGame::key(&board)) / 100;
            break;
        }
        if !seen.insert((board, is_book)) {
            break;
        }
        // Searches of unequal length make games differ.
        let nodes = arguments.engine_nodes / 2 + random.below(arguments.engine_nodes.max(1));
        let from_book = match (is_book, arguments.perfect) {
            (false, _) => None,
            (true, true) => Some(perfect_move(databases.0, &board, random)),
            (true, false) => graph
                .find(AwariGame::key(&board))
                .and_then(|id| book_move(graph, id, random))
                .and_then(|edge| Pit::new(edge.number)),
        };
        in_book += u32::from(from_book.is_some());
        let pit = from_book.unwrap_or_else(|| engine_move(searcher, &board, nodes, databases));
        let turn = game.play(pit).expect("the move is legal");
        if turn.captured > 0 {
            seen.clear();
        }
        ahead += sign * i32::from(turn.captured);
        (board, is_book) = (turn.after.board, !is_book);
    }
    // A repetition shares the rest, and so does a game without an end.
    ContestGame { game, ahead, in_book }
}

pub(crate) fn opponents(arguments: &BookCheckArguments, truth: &dyn ExactScores) {
    let databases = databases(arguments, truth);
    let book = book(arguments, &databases, &[even(arguments.stones)]);
    let (graph, root) = (book.graph(), book.roots()[0]);
    let mut table = bench::table("opponent|mean plies, book first|second|least, book first|second|D first|second", 1);
    let mut random = Random::new(8);
    for (name, halving) in LEVELS {
        let played = [true, false].map(|is_first| {
            let plies = (0..arguments.games / 2).map(|_| {
                let (mut id, mut is_book, mut count) = (root, is_first, 0);
                while graph.is_interior(id) && !graph.is_closed(id) && count < PLIES_MAX {
                    let edge = if is_book {
                        book_move(graph, id, &mut random).expect("an interior position has moves")
                    } else {
                        level_move(truth, graph, id, halving, &mut random)
                    };
                    (id, is_book, count) = (edge.child, !is_book, count + 1);
                }
                count
            });
            plies.collect::<Vec<u32>>()
        });
        table.add_row(opponent_row(name.to_owned(), &played, ["", ""].map(str::to_owned)));
    }
    for price in [0, 50, 100, 200] {
        let mut depths = HashMap::new();
        let earliest = [true, false].map(|is_first| drop_out_depth(&book_ends(graph, root, is_first), price));
        let played = [true, false].map(|is_first| {
            let games = (0..arguments.games / 20)
                .filter_map(|_| breaker_plies(&book, is_first, price, &mut depths, &mut random));
            games.collect::<Vec<u32>>()
        });
        for (plies, earliest) in played.iter().zip(earliest) {
            assert!(plies.iter().all(|&plies| Some(plies) >= earliest), "no leaf is nearer than D({price})");
        }
        let shown = earliest.map(|depth| depth.map_or_else(|| "-".to_owned(), |depth| depth.to_string()));
        table.add_row(opponent_row(format!("leaves for {:.1} stones", f64::from(price) / 100.0), &played, shown));
    }
    let BookCheckArguments { stones, nodes, .. } = arguments;
    let title = format!(
        "opponents: a book of {} positions of {stones} stones, databases 0..{}, searches of {nodes} positions",
        graph.len(),
        databases.1
    );
    show(&title, &table);
}

fn opponent_row(name: String, played: &[Vec<u32>; 2], earliest: [String; 2]) -> [String; 7] {
    let mean = |plies: &[u32]| match plies.len() {
        0 => "-".to_owned(),
        count => bench::ratio(f64::from(plies.iter().sum::<u32>()), count as f64, 1),
    };
    let least = |plies: &[u32]| plies.iter().min().map_or_else(|| "-".to_owned(), u32::to_string);
    let [first, second] = played;
    let [d_first, d_second] = earliest;
    [name, mean(first), mean(second), least(first), least(second), d_first, d_second]
}

/// Plays a game against an opponent that leaves the book as early as it can for a price; it knows the book. Returns the
/// plies up to a leaf, or `None` if the game ends at a proved value or goes on for ever.
fn breaker_plies(
    book: &Book<AwariGame>,
    is_first: bool,
    price: i16,
    depths: &mut HashMap<(NodeId, i16), Option<u32>>,
    random: &mut Random,
) -> Option<u32> {
    let graph = book.graph();
    let (mut id, mut is_book, mut left) = (book.roots()[0], is_first, price);
    for count in 0..PLIES_MAX {
        if graph.is_closed(id) {
            return None;
        }
        let Some(best) = graph.best(id) else { return Some(count) };
        if is_book {
            id = book_move(graph, id, random)?.child;
        } else {
            let mut depth = |edge: &BookEdge| {
                let rest = left - (best - graph.estimate(edge));
                let found = depths.entry((edge.child, rest));
                let found = *found.or_insert_with(|| drop_out_depth(&book_ends(graph, edge.child, true), rest));
                found.unwrap_or(u32::MAX)
            };
            let edge = graph
                .moves(id)
                .iter()
                .filter(|edge| best - graph.estimate(edge) <= left)
                .min_by_key(|edge| depth(edge))?;
            left -= best - graph.estimate(edge);
            id = edge.child;
        }
        is_book = !is_book;
    }
    None
}
